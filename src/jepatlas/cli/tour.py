"""A guided run: two agents, one world, the map between them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from jepatlas.cli.options import console_for, emit, parse, say, verdict_table
from jepatlas.reporting import write_report
from jepatlas.tour import CHAPTERS, Stage


@dataclass(frozen=True)
class Tour:
    """The main job from end to end, on a built-in world, in about three minutes on two cores.

    Example: jepatlas tour --seed 1 --out runs/tour-1
    """

    seed: int = 0
    """Seed of the world's samples and of the agents."""
    workers: int = os.cpu_count() or 1
    """Agents that train at the same time."""
    out: Path = Path("runs/tour")
    """Where runs, records and the report go. Agents that are trained there already are not trained again."""
    json: str | None = None
    """Write all verdicts as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Tour, "tour", words)
    console = console_for(options.json)
    stage = Stage(options.out, options.seed, options.workers, console)
    records = []
    for number, chapter in enumerate(CHAPTERS, start=1):
        console.rule(f"[bold]{number}. {chapter.title}", align="left")
        record = chapter.play(stage)
        record.save(options.out, f"{number:02d}-{chapter.name}")
        say(console, record.summary)
        records.append(record)
    for record in records:
        if judged := [v for v in record.verdicts if v.passed is not None]:
            console.print(verdict_table(record.title, judged))
    page = write_report([options.out], options.out / "report.html", title="jepatlas: the tour", seed=options.seed)
    say(console, f"Report: {page}")
    emit(options.json, {"report": str(page), "chapters": [record.to_json() for record in records]})
    return 0  # a statement that does not hold is a result, not an error
