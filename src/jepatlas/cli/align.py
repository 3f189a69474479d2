"""Can one model's latents be translated into another's?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from jepatlas.alignment import METRICS, Evidence, PairedLatents
from jepatlas.alignment.stress import Protocol
from jepatlas.cli.options import console_for, emit, parse, progress_bar, say, verdict_table
from jepatlas.cli.pairing import Pairing
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import CONDITION_LIMIT
from jepatlas.core.records import Record
from jepatlas.core.seeding import numpy_generator
from jepatlas.reporting import write_report
from jepatlas.workflows.align import (
    HALF,
    MAIN,
    PCA,
    RANDOM,
    UNTRAINED,
    Alignment,
    MapKind,
    Study,
    align,
    control_names,
    read_pair,
    stress,
    study_split,
)

CONTROLS = {PCA: "PCA of raw input", UNTRAINED: "the same, untrained", RANDOM: "random net on raw"}
"""As a narrow terminal heads them."""
ALWAYS = ("r2_trusted",)
"""What informs, and is shown unasked."""
RECORDS = ("align", "stress")
"""What this verb writes, and clears away."""


@dataclass(frozen=True)
class Align(Pairing):
    """Fit a linear map between two models' latents of the same states, and say what it is worth.

    Example: jepatlas align ada.npy ben.npy

    Example: jepatlas align left.npz right.npz --raw-a left_pixels.npy --raw-b right_pixels.npy --blocks 100

    Every number is of held-out rows and stands beside what shuffled pairs give. Controls stand below it: the same
    networks before their first step, where both files hold their latents as 'untrained' (as 'jepatlas encode' writes
    them), and principal components of the raw inputs, where these are given. With raw inputs alone, a random network on
    them stands in for the untrained ones: it shows what the input gives, not what training adds.
    """

    a: tyro.conf.Positional[Path]
    """The source: latents h in npy, npz, safetensors, csv or parquet; perhaps with ids, groups, labels, held, raw,
    untrained, layer0…
    In a table h is all numeric columns but those called so, or h.0, h.1, …"""
    b: tyro.conf.Positional[Path]
    """The target, in the same way; what it says of groups and labels must agree with A, or A need not say it."""
    groups: Path | None = None
    """File (txt, too) with a group for each row of A (an object, an episode): never split, drawn and shuffled as a
    whole."""
    blocks: int | None = None
    """Rows are a series in time: split into blocks of so many rows, and shift pairs in time instead of shuffling."""
    labels: Path | None = None
    """File (txt, too) with a label for each row of A, for the colours of the figures."""
    raw_a: Path | None = None
    """Raw inputs of A, one for each row: plain rows or images, for the controls."""
    raw_b: Path | None = None
    """Raw inputs of B."""
    map: MapKind = "ridge"
    """How the map is fitted; ridge and robust standardise both sides and choose their penalty by held-out score."""
    share: float | None = None
    """Share of the rows (groups, time blocks) that is held out; by default what the files mark as held, or half."""
    permutations: int = 99
    """How often pairs are shuffled; p-values cannot be below 1 / (permutations + 1), and 5% decides: at least 19."""
    rows: int = 500
    """Held-out rows at most that are measured: many metrics compare every row with every other one."""
    limit: float = CONDITION_LIMIT
    """Condition number above which the map's inverse leaves directions out; it brings the target into the source's
    coordinates (metrics with *)."""
    umap: bool = False
    """Show UMAP projections, too (needs jepatlas[interop])."""
    stress: bool = False
    """Also draw what the map withstands: few, mismatched, shifted pairs, narrower models (minutes for wide latents)."""
    full: bool = False
    """Measure and show every metric, not only the main ones, and all that is known of the map; takes longer."""
    seed: int = 0
    """Which rows are held out, shuffled and drawn."""
    out: Path = Path("runs/align")
    """Where map.safetensors, the record and report.html go."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Align, "align", words)
    console = console_for(options.json)
    matched = _read(options)
    study = _study(matched, options)
    rounds = study.rounds * (1 + len(control_names(matched)))
    if not console.is_terminal:  # where there is no bar; the answer alone goes to standard output
        print(f"measuring: {rounds} rounds", file=sys.stderr, flush=True)
    with progress_bar(console, "shuffling pairs, drawing halves", rounds) as advance:
        metrics = tuple(METRICS) if options.full else MAIN
        found = align(matched, options.map, replace(study, advance=advance), umap=options.umap, metrics=metrics)
    records = {"align": found.record}
    if options.stress:
        records["stress"] = _stressed(console, matched, study, options.share or HALF)
    found.map.save(place := options.out / "map.safetensors")
    _save(records, options.out)
    page = write_report([options.out], options.out / "report.html", title=found.record.title, seed=options.seed)
    _show(console, found, options.full)
    say(console, f"Map ({_size(place.stat().st_size)}): {place}\nReport: {page}")
    metrics = [one.verdict.to_json() for one in found.evidence.values()]
    emit(options.json, {"map": str(place), "report": str(page), "metrics": metrics} | found.record.to_json())
    return 0


def _save(records: Mapping[str, Record], folder: Path) -> None:
    """Records of an earlier alignment go first: a page must not mix two."""
    for name in RECORDS:
        for ending in ("json", "npz"):
            (folder / "records" / f"{name}.{ending}").unlink(missing_ok=True)
    for name, record in records.items():
        record.save(folder, name)


def _size(count: int) -> str:
    return f"{count / 1e3:.1f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def _stressed(console: Console, matched: PairedLatents, study: Study, share: float) -> Record:
    with progress_bar(console, "stress", None) as advance:
        protocol = Protocol(held=share, progress=lambda done, total: advance())
        return stress(matched, study.groups, seed=study.seed, protocol=protocol)


def _show(console: Console, found: Alignment, full: bool) -> None:
    """The answer, then the numbers, each beside its null."""
    say(console, found.record.summary)
    rivals = found.evidence["r2"].null_name
    caption = (
        f"↑ higher is better, ↓ lower; effect in standard deviations of {rivals}\n"
        "* in the source's coordinates, by the inverse of the map\n→ in the target's, by the map"
    )
    columns = (Column("held out", overflow="fold"), "value", "95% interval", rivals, "p", "effect")
    table = Table(
        *columns,
        box=SIMPLE_HEAD,
        title=found.record.title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
    )
    for one in found.evidence.values():
        table.add_row(*_short(one))
    for name, control in found.controls.items():
        table.add_section()
        table.add_row(f"[italic]{CONTROLS[name]}")
        for one in control.values():
            table.add_row(*_short(one))
    console.print(table)
    if lost := [name for name, one in found.evidence.items() if one.passed is False]:
        say(console, f"✗ No better than chance: {', '.join(lost)}.")
    others = [verdict for verdict in found.record.verdicts if verdict.name not in found.evidence]
    if shown := [verdict for verdict in others if full or verdict.passed is False or verdict.name in ALWAYS]:
        console.print(verdict_table("The map", shown))
    for verdict in others:
        if verdict.passed is False:
            say(console, f"✗ {verdict.name}: {verdict.advice}")
    for one in found.evidence.values():
        if not np.isfinite([one.estimate.value, one.estimate.low, one.estimate.high]).all():
            say(console, f"· {one.metric.name}: {one.verdict.advice}")
    if not full:
        say(console, f"{len(METRICS) - len(MAIN)} more metrics, and more of the map: --full.")


def _short(one: Evidence) -> list[str]:
    """A line whose name leaves room for the numbers."""
    name, *numbers = one.line
    return [name.replace("_common", "*").replace("_target", " →"), *numbers]


def _read(options: Align) -> PairedLatents:
    if (options.raw_a is None) != (options.raw_b is None):
        raise InputError("The controls need the raw input of both models: give --raw-a and --raw-b.")
    return read_pair(
        options.a,
        options.b,
        ids=options.id_files,
        groups=options.groups,
        labels=options.labels,
        raw=(options.raw_a, options.raw_b),
        intersect=options.intersect,
    )


def _study(pairs: PairedLatents, options: Align) -> Study:
    rng = numpy_generator(options.seed, "align split")
    split, groups = study_split(pairs, rng, share=options.share, blocks=options.blocks)
    return Study(
        split,
        groups,
        options.blocks,
        options.seed,
        options.permutations,
        rows=options.rows,
        limit=options.limit,
    )
