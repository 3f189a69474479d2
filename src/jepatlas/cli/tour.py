"""`jepatlas tour`: a guided run with two agents, one world, and the map between them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jepatlas.cli.options import parse
from jepatlas.cli.output import console_for, defer_interrupts, emit, say, verdict_table
from jepatlas.core.records import Verdict


@dataclass(frozen=True)
class Tour:
    """Train two agents, certify them, map one to the other and move a probe and an energy; about three minutes.

    Example: jepatlas tour --seed 1 --out runs/tour-1
    """

    seed: int = 0
    """Seed of the world's samples and of the agents."""
    workers: int = os.cpu_count() or 1
    """Number of agents that are trained at the same time."""
    out: Path = Path("runs/tour")
    """Folder for runs, records and the report. Trained agents are not trained again."""
    json: str | None = None
    """Write all verdicts as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Tour, "tour", args)
    with defer_interrupts():
        from jepatlas.reporting import write_report
        from jepatlas.tour import CHAPTERS, Stage

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
        judged = [verdict for verdict in record.verdicts if verdict.passed is not None]
        if judged:
            console.print(verdict_table(record.title, judged, console.width))
    page = write_report(
        [options.out],
        options.out / "report.html",
        title="jepatlas: the tour",
        headline=_headline([verdict for record in records for verdict in record.verdicts]),
        seed=options.seed,
    )
    say(console, f"Report: {page}")
    emit(options.json, {"report": str(page), "chapters": [record.to_json() for record in records]})
    return 0  # a claim that fails is a result, not an error


def _headline(verdicts: Sequence[Verdict]) -> str:
    (r2,) = (verdict.value for verdict in verdicts if verdict.name == "map.r2")
    return f"Between two agents that never met, a linear map predicts latents with held-out R² {r2:.3f}."
