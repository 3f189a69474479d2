"""`jepatlas align`: test whether one model's latents can be translated into another's."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import tyro
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table
from rich.text import Text

from jepatlas.cli.options import Pairing, parse
from jepatlas.cli.output import (
    console_for,
    defer_interrupts,
    emit,
    named,
    progress_bar,
    say,
    say_advice,
    verdict_table,
)
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import CONDITION_LIMIT
from jepatlas.core.verdict_names import plain_name
from jepatlas.workflows.align import MapKind

if TYPE_CHECKING:
    from rich.console import Console

    from jepatlas.alignment import Evidence, PairedLatents
    from jepatlas.core.records import Record, Verdict
    from jepatlas.workflows.align import Alignment, Study

MOST_ADVICE = 2
"""Failed checks of the map whose advice is shown without --full."""
SIGNS = {"_common": "*", "_target": "→"}
"""Where a metric is computed, if not in the latents' own coordinates."""
RECORDS = ("align", "stress")
"""Names of the records that this command writes."""


@dataclass(frozen=True)
class Align(Pairing):
    """Fit a linear map between two models' latents of the same states, and measure how well it works.

    Example: jepatlas align ada.npy ben.npy

    Example: jepatlas align left.npz right.npz --raw-a left_pixels.npy --raw-b right_pixels.npy --blocks 100

    All metrics are computed on held-out rows and compared with shuffled pairs. Controls are the untrained networks, if
    both files hold their latents as 'untrained' (as 'jepatlas encode' writes them), and principal components of the raw
    inputs, if these are given. With raw inputs only, a random network on them replaces the untrained ones: it shows
    what the input gives, not what training adds.
    """

    most_used: ClassVar[str] = "raw-a raw-b ids groups blocks map permutations full seed out"

    a: tyro.conf.Positional[Path]
    """The source: latents h in npy, npz, safetensors, csv or parquet, optionally with ids, groups, labels, held, raw,
    untrained, layer0… In a table, h is all other numeric columns, or h.0, h.1, …"""
    b: tyro.conf.Positional[Path]
    """The target, in the same form. Its groups and labels must agree with those of A, or may be missing."""
    groups: Path | None = None
    """File (also txt) with a group for each row of A (an object, an episode). Groups are held out and shuffled as a
    whole."""
    blocks: int | None = None
    """Rows are a time series: split it into blocks of this many rows, and shift pairs in time instead of shuffling."""
    labels: Path | None = None
    """File (also txt) with a label for each row of A, for the colours of the figures."""
    raw_a: Path | None = None
    """Raw inputs of A, one for each row: vectors or images, for the controls."""
    raw_b: Path | None = None
    """Raw inputs of B."""
    map: MapKind = "ridge"
    """How the map is fitted. Ridge and robust standardise both sides and choose their penalty by held-out score."""
    within: str | None = None
    """A column that both sides share, such as the light or the time: what it explains is removed from both before the
    map is fitted. The name of an array or column of A or B, or a file with a value for each row of A."""
    independent: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Rows are independent: do not look for near copies or a time series among rows without --groups or --blocks."""
    share: float | None = None
    """Share of held-out rows (groups, time blocks). By default the rows that the files mark as held out, or half."""
    permutations: int = 99
    """Number of permutations, at least 19. The smallest p-value is 1 / (permutations + 1), and 5% decides."""
    rows: int = 500
    """Maximal number of held-out rows for the metrics; many compare all pairs of rows."""
    limit: float = CONDITION_LIMIT
    """Condition number of the map's inverse: smaller singular values are dropped. The inverse gives the metrics marked
    with *, in the source's coordinates."""
    umap: bool = False
    """Also draw UMAP projections (needs jepatlas[interop])."""
    stress: bool = False
    """Also measure how the map degrades with few, mismatched or shifted pairs and narrower models (takes minutes for
    wide latents)."""
    full: bool = False
    """Compute and show all metrics and all properties of the map; slower."""
    seed: int = 0
    """Seed of held-out rows, permutations and figures."""
    out: Path = Path("runs/align")
    """Folder for map.safetensors, the record and report.html."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Align, "align", args)
    with defer_interrupts():
        from jepatlas.alignment import METRICS
        from jepatlas.reporting import write_report
        from jepatlas.workflows.align import HALF, MAIN, align, control_names, make_study

    console = console_for(options.json)
    pairs = _read(options)
    study = make_study(
        pairs,
        share=options.share,
        blocks=options.blocks,
        permutations=options.permutations,
        rows=options.rows,
        limit=options.limit,
        seed=options.seed,
        independent=options.independent,
    )
    rounds = study.rounds * (1 + len(control_names(pairs)))
    if not console.is_terminal:  # no progress bar; standard output is for the answer
        print(f"measuring: {rounds} rounds", file=sys.stderr, flush=True)
    metrics = tuple(METRICS) if options.full else MAIN
    with progress_bar(console, "permutations and bootstrap", rounds) as advance:
        found = align(pairs, options.map, replace(study, advance=advance), umap=options.umap, metrics=metrics)
    records = {"align": found.record}
    if options.stress:
        records["stress"] = _stress(console, pairs, study, options.share or HALF)
    place = options.out / "map.safetensors"
    found.map.save(place)
    _save(records, options.out)
    page = write_report([options.out], options.out / "report.html", title=found.record.title, seed=options.seed)
    _show(console, found, options.full)
    say(console, f"Map ({_size(place.stat().st_size)}): {place}\nReport: {page}")
    verdicts = [one.verdict.to_json() for one in found.evidence.values()]
    emit(options.json, {"map": str(place), "report": str(page), "metrics": verdicts} | found.record.to_json())
    return 0


def _read(options: Align) -> PairedLatents:
    from jepatlas.workflows.align import read_pair

    if (options.raw_a is None) != (options.raw_b is None):
        raise InputError("The controls need the raw input of both models: give --raw-a and --raw-b.")
    return read_pair(
        options.a,
        options.b,
        ids=options.id_files,
        groups=options.groups,
        labels=options.labels,
        raw=(options.raw_a, options.raw_b),
        within=options.within,
        intersect=options.intersect,
    )


def _stress(console: Console, pairs: PairedLatents, study: Study, share: float) -> Record:
    from jepatlas.alignment.stress import Protocol
    from jepatlas.workflows.align import stress

    with progress_bar(console, "stress", None) as advance:
        protocol = Protocol(held=share, progress=lambda done, total: advance())
        return stress(pairs, study.groups, seed=study.seed, protocol=protocol)


def _save(records: Mapping[str, Record], folder: Path) -> None:
    """Save the records. Those of an earlier alignment are removed, because the report shows all records."""
    for name in RECORDS:
        for suffix in ("json", "npz"):
            (folder / "records" / f"{name}.{suffix}").unlink(missing_ok=True)
    for name, record in records.items():
        record.save(folder, name)


def _size(count: int) -> str:
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def _show(console: Console, found: Alignment, full: bool) -> None:
    """The summary, the metrics with their nulls and controls, and the properties of the map."""
    from jepatlas.alignment import METRICS
    from jepatlas.workflows.align import MAIN

    say(console, found.record.summary)
    console.print(_evidence_table(found, full))
    failed = [name for name, one in found.evidence.items() if one.passed is False]
    if failed:
        say(console, f"✗ No better than chance: {', '.join(failed)}.")
    others = [verdict for verdict in found.record.verdicts if verdict.name not in found.evidence]
    say(console, _directions(others))
    failing = [one for one in others if one.passed is False]
    if full:
        console.print(verdict_table("The map", others, console.width))
    say_advice(console, others if full else failing[:MOST_ADVICE])
    if not full and len(failing) > MOST_ADVICE:
        names = ", ".join(plain_name(one.name) for one in failing[MOST_ADVICE:])
        say(console, f"✗ Also: {names}. Advice: --full.")
    for one in found.evidence.values():
        if not np.isfinite([one.estimate.value, one.estimate.low, one.estimate.high]).all():
            say(console, f"· {one.metric.name}: {one.verdict.advice}")
    if not full:
        say(console, f"{len(METRICS) - len(MAIN)} further metrics and properties of the map: show with --full.")


def _directions(verdicts: Sequence[Verdict]) -> str:
    """R² that counts all directions alike, and effective ranks."""
    by_name = {one.name: one for one in verdicts}
    unweighted = by_name["r2_unweighted"]
    trusted = by_name.get("r2_trusted")
    more = "" if trusted is None else f" On trusted pairs R² is {trusted.value:.3f}."
    return (
        f"By direction: R² {unweighted.value:z.3f} [{unweighted.low:z.3f}, {unweighted.high:z.3f}] unweighted; about "
        f"{by_name['predicted_directions'].value:.1f} directions are predicted; effective ranks "
        f"{by_name['rank_a'].value:.1f} and {by_name['rank_b'].value:.1f}.{more}"
    )


def _evidence_table(found: Alignment, full: bool) -> Table:
    """The metrics of the map and of the controls; with `full`, also their distance from chance."""
    from jepatlas.workflows.align import PCA, RANDOM, UNTRAINED

    titles = {PCA: "PCA of raw input", UNTRAINED: "untrained networks", RANDOM: "random network"}
    null = found.evidence["r2"].null_name
    caption = "↑ higher is better, ↓ lower; → in the target's coordinates, by the map"
    if any(name.endswith("_common") for name in found.evidence):
        caption += "\n* in the source's coordinates, by the inverse of the map"
    columns = [Column("held out", overflow="fold"), "value", "95% interval", null, "p"]
    if full:
        columns.append("effect")
        caption += f"\neffect in standard deviations of {null}"
    table = Table(
        *columns,
        box=SIMPLE_HEAD,
        pad_edge=False,
        title=found.record.title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
    )
    for one in found.evidence.values():
        table.add_row(*_row(one)[: len(columns)])
    for name, control in found.controls.items():
        table.add_section()
        table.add_row(f"[italic]{titles[name]}")
        for one in control.values():
            table.add_row(*_row(one)[: len(columns)])
    return table


def _row(evidence: Evidence) -> list[Text | str]:
    """The cells of a row, with a short name, so that the numbers fit a narrow terminal."""
    name, *numbers = evidence.line
    arrow, code = name.split(" ", 1)
    for suffix, sign in SIGNS.items():
        if code.endswith(suffix):
            code = code.removesuffix(suffix)
            arrow = f"{arrow} {sign}"
    return [Text(f"{arrow} ").append_text(named(code)), *numbers]
