"""What the verbs that train agents in company say at the end, and leave behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console

from jepatlas.cli.options import say
from jepatlas.core.errors import InputError
from jepatlas.recipes import read_images
from jepatlas.workflows.vision import graduate, judge_latents
from jepatlas.workflows.vision.progress import agents_on_images, judge_progress

__all__ = ["check_beside", "tell"]


def check_beside(runs: Sequence[Path]) -> None:
    """What is to be drawn at the end is looked for before an hour of training."""
    if missing := [str(run) for run in runs if not (run / "recipe.yaml").is_file()]:
        raise InputError(f"--beside names runs, but there is none in {', '.join(missing)}.")
    for run in runs:
        for agent in agents_on_images(run).values():
            read_images(agent)


def tell(console: Console, folder: Path, _: int, beside: Sequence[Path] = ()) -> dict[str, Any]:
    """Agents of a finished run become runs of their own; their latents are judged like those of any agent. That, and
    how they came along, is kept for the run's page."""
    agents, verdicts = graduate(folder), []
    for name, place in agents.items():
        record = judge_latents(place)
        replace(record, title=f"Latents of the {name}").save(folder, f"latents-{name}")
        verdicts += [verdict.to_json() for verdict in record.verdicts]
        say(console, f"{name}: {record.summary} Next: jepatlas encode {quote(str(place))}")
    if (progress := judge_progress(folder, beside)) is not None:
        say(console, f"{progress.summary} See it with: jepatlas report {quote(str(folder))}")
    return {"agents": {name: str(place) for name, place in agents.items()}, "verdicts": verdicts}
