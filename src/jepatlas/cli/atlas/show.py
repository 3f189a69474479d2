"""Which models, probes and energies an atlas holds, what it is worth, and how large it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from jepatlas.alignment import Atlas, Chart, exchanged, load_atlas
from jepatlas.cli.options import console_for, emit, parse, say, verdict_table
from jepatlas.core.files import read_json
from jepatlas.workflows.align import not_identified_note, translations_summary

__all__ = ["present"]


@dataclass(frozen=True)
class Show:
    """Check every file of an atlas against its hash, say what the atlas holds, and what held-out states said of it.

    Example: jepatlas atlas show runs/atlas
    """

    atlas: tyro.conf.Positional[Path]
    """The folder of an atlas."""
    seal: str | None = None
    """What the sender says the seal is: another one is refused."""
    json: str | None = None
    """Write it as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Show, "atlas show", words)
    atlas = load_atlas(options.atlas, seal=options.seal)
    sealed = read_json(options.atlas / "atlas.json")  # loaded, so it is there and fits
    present(atlas, options.atlas, json=options.json, seal=sealed["seal"])
    if foreign := _foreign(options.atlas, {"atlas.json", *sealed["files"]}):
        say(console_for(options.json), f"Not part of the atlas, and not checked: {', '.join(foreign)}")
    return 0


def _foreign(folder: Path, known: set[str]) -> list[str]:
    files = (one.relative_to(folder).as_posix() for one in folder.rglob("*") if not one.is_dir())
    return sorted(set(files) - known)


def present(atlas: Atlas, place: Path, *, json: str | None, seal: str) -> None:
    """The answer that travels with it; a table of charts, what was judged of them, the size of what would be sent."""
    console, sizes, summary = console_for(json), exchanged(atlas), translations_summary(atlas.names, atlas.judged)
    judged, said = [*(atlas.judged or ()), *atlas.verdicts()], not_identified_note(atlas.charts)
    emit(
        json,
        {
            "atlas": str(place),
            "seal": seal,
            "summary": summary,
            "width": atlas.width,
            "bytes": sizes,
            "charts": [_plain(chart) for chart in atlas.charts],
            "certificates": said,
            "verdicts": [verdict.to_json() for verdict in judged],
        },
    )
    say(console, f"{summary} {said}".strip())
    title = f"{len(atlas.charts)} charts in a frame of {atlas.width} dimensions"
    columns = ("chart", "width", "tied", "states", "identified", "bound", "carries", "kB")
    table = Table(
        *(Column(name, overflow="fold") for name in columns), box=SIMPLE_HEAD, title=title, title_justify="left"
    )
    for chart in atlas.charts:
        table.add_row(*_cells(chart), f"{sizes[chart.name] / 1e3:.1f}")
    console.print(table)
    console.print(verdict_table("What the atlas is worth", judged))
    for verdict in judged:
        if verdict.passed is False:
            say(console, f"✗ {verdict.name}: {verdict.advice}")
    total, maps = sum(sizes.values()), len(atlas.charts)
    say(console, f"{maps} maps serve {maps * (maps - 1)} translations. Exchanged: {total / 1e3:.1f} kB in all.")
    say(console, f"Atlas: {place} (seal {seal})")


def _cells(chart: Chart) -> list[str]:
    known = chart.certificate
    bound = f"{known.bound.value:.3g} ≤ {known.bound.high:.3g}" if known else ""
    identified = {True: "yes", False: "no", None: "undecided"}[known.identified] if known else "not certified"
    carries = ", ".join(f"{one.kind} {one.name}" for one in chart.attachments)
    return [chart.name, str(chart.width), str(chart.tied), str(chart.states), identified, bound, carries]


def _plain(chart: Chart) -> dict[str, Any]:
    known = chart.certificate
    return {
        "name": chart.name,
        "width": chart.width,
        "tied": chart.tied,
        "states": chart.states,
        "certified": known is not None,
        "identified": known.identified if known else None,
        "bound": known.bound.value if known else None,
        "carries": [{"kind": one.kind, "name": one.name, "sha256": one.sha256} for one in chart.attachments],
    }
