"""One page that shows what was run and what came out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from jepatlas.cli.options import console_for, emit, parse, say
from jepatlas.core.errors import InputError
from jepatlas.reporting import write_report


@dataclass(frozen=True)
class Report:
    """Draw run folders as one self-contained HTML page.

    Example: jepatlas report runs/spiral-lejepa-s0 runs/coupling-lejepa-s0 --out reports
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders; several are set side by side."""
    title: str | None = None
    """The page's title; by default the names of the runs."""
    seed: int = 0
    """Which samples are shown where there are too many for a figure."""
    out: Path | None = None
    """Where to put report.html; by default in the run folder (for several runs: here)."""
    json: str | None = None
    """Write where the page is as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Report, "report", words)
    if not options.runs:
        raise InputError("name at least one run folder, as in: jepatlas report runs/spiral-lejepa-s0")
    folder = options.out or (options.runs[0] if len(options.runs) == 1 else Path())
    title = options.title or ", ".join(run.name for run in options.runs)
    page = write_report(options.runs, folder / "report.html", title=title, seed=options.seed)
    say(console_for(options.json), f"Report: {page}")
    emit(options.json, {"report": str(page)})
    return 0
