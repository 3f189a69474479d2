"""`jepatlas report`: one HTML page with the results of runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from jepatlas.cli.options import parse
from jepatlas.cli.output import console_for, emit, say
from jepatlas.core.errors import InputError


@dataclass(frozen=True)
class Report:
    """Write one self-contained HTML page with the results of runs.

    Example: jepatlas report runs/spiral-lejepa-s0 runs/coupling-lejepa-s0 --out reports
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders. Several are shown side by side."""
    figures: Literal["svg", "pdf", "png"] | None = None
    """Also write each figure to the folder figures beside the page: as vector graphics (svg, pdf), or with 300 dots per
    inch (png)."""
    title: str | None = None
    """The title of the page; by default the names of the runs."""
    seed: int = 0
    """Seed of the choice of samples in figures with too many."""
    out: Path | None = None
    """The page, if the name ends with .html, or else the folder for report.html; by default the run folder, or for
    several runs the current folder."""
    json: str | None = None
    """Write the path of the page as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Report, "report", args)
    if not options.runs:
        raise InputError("name at least one run folder. Example: jepatlas report runs/spiral-lejepa-s0")
    from jepatlas.api.report_function import PAGE, report

    out = options.out
    if out is not None and (out.suffix != ".html" or out.is_dir()):
        out = out / PAGE
    page = report(*options.runs, out=out, title=options.title, figures=options.figures, seed=options.seed)
    figures = None if options.figures is None else str(page.parent / "figures")
    say(console_for(options.json), f"Report: {page}" + ("" if figures is None else f"\nFigures: {figures}"))
    emit(options.json, {"report": str(page), "figures": figures})
    return 0
