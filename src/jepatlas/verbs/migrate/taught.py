"""What the verbs that train agents in company say at the end, and leave behind."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console

from jepatlas.social import graduate, judge_latents
from jepatlas.verbs.options import say

__all__ = ["tell"]


def tell(console: Console, folder: Path, _: int) -> dict[str, Any]:
    """Agents of a finished run become runs of their own; their latents are judged like those of any agent."""
    agents, verdicts = graduate(folder), []
    for name, place in agents.items():
        record = judge_latents(place)
        verdicts += [verdict.to_json() for verdict in record.verdicts]
        say(console, f"{name}: {record.summary} Next: jepatlas encode {quote(str(place))}")
    return {"agents": {name: str(place) for name, place in agents.items()}, "verdicts": verdicts}
