"""Carry a linear probe from one model to another, through the map between them, with no training."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from jepatlas.alignment import LinearProbe, migrate, support
from jepatlas.cli.migrate.models import keep, read_models, tell
from jepatlas.cli.options import console_for, emit, parse, say
from jepatlas.cli.pairing import Pairing
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.workflows.align import MapKind, Migration, Through, migrate_between


@dataclass(frozen=True)
class Probe(Pairing):
    """Make a probe of A's latents read B's: analytically, through a map between them.

    Example: jepatlas migrate probe ada.npz ben.npz --labels labels.npy

    Example: jepatlas migrate probe --probe colour.safetensors --map runs/align/map.safetensors

    With paired latents and labels, accuracies are reported on held-out rows: of the source, of the head as it is, of
    the migrated one, of one that is distilled from the source's logits, and of a probe trained on B. Without latents,
    the probe is carried through a saved map. What is given, probe or map, may have seen the rows: it is scored on all
    of them, and that is said. Where neither is given, the probe is trained on one half of the rows that are not held
    out, and the map fitted on the other. Where the map tells B from A no better than chance, or the migrated probe is
    surely no better than the commonest class, no probe is written.
    """

    latents: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Paired latents of A and B, with ids where their rows are not in the same order. In csv and parquet h is all
    numeric columns but ids, groups and labels, or h.0, h.1, …"""
    labels: Path | None = None
    """File (txt, too) with a label for each row of A, where neither A's file nor B's has any."""
    groups: Path | None = None
    """File with a group for each row of A (an object, an episode): never split."""
    blocks: int | None = None
    """Rows are a series in time: split into blocks of so many rows."""
    probe: Path | None = None
    """A saved probe on A's latents; by default one is trained on rows that are not held out."""
    map: Path | None = None
    """A saved map A → B; by default one is fitted on rows that are not held out."""
    fit: MapKind = "ridge"
    """How that map is fitted."""
    through: Through | None = None
    """The way from B's latents to what the probe reads: a map B → A fitted on the same rows, or the inverse of the map
    A → B, which blows up what that map shrinks. By default backwards; a saved --map has only its inverse."""
    limit: float = CONDITION_LIMIT
    """Of an inverse: directions that the map carries less than 1/limit of the most are not carried back."""
    share: float | None = None
    """Share of the rows (groups, time blocks) that is held out; by default what the files mark as held, or half."""
    seed: int = 0
    """Which rows are held out."""
    out: Path = Path("runs/migrate")
    """Where probe.safetensors (for B), source_probe.safetensors (of A), map.safetensors (A → B), back.safetensors
    (B → A, where it was fitted), record and report go."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Probe, "migrate probe", words)
    if len(options.latents) == 0:
        return _through_saved_map(options)
    found = _between_models(options)
    if found.failure:
        emit(options.json, {"probe": None, "source_probe": None, "report": None} | found.record.to_json())
        print(f"jepatlas migrate probe: {found.record.summary} No probe is written. {found.remedy}", file=sys.stderr)
        return 1
    found.probe.save(place := options.out / "probe.safetensors")
    found.source.save(source := options.out / "source_probe.safetensors")
    (back := options.out / "back.safetensors").unlink(missing_ok=True)  # of an earlier probe
    if found.back is not None:
        found.back.save(back)
    page = keep(found.record, found.map, options.out, options.seed)
    emit(options.json, {"probe": str(place), "source_probe": str(source), "report": str(page)} | found.record.to_json())
    console = console_for(options.json)
    tell(console, found.record)
    say(console, f"Probe for B: {place}\nSource probe, of A: {source}\nReport: {page}")
    return 0


def _between_models(options: Probe) -> Migration:
    matched = read_models(options.latents, options, options.groups, options.labels)
    return migrate_between(
        matched,
        options.fit,
        limit=options.limit,
        seed=options.seed,
        through=options.through,
        blocks=options.blocks,
        share=options.share,
        probe=None if options.probe is None else LinearProbe.load(options.probe),
        fitted=None if options.map is None else LinearMap.load(options.map),
    )


def _through_saved_map(options: Probe) -> int:
    if options.probe is None or options.map is None:
        raise InputError("give paired latents of two models, or a saved --probe and a saved --map.")
    if options.through == "backwards":
        raise InputError(
            "without latents there is only the inverse of the saved map. Leave out --through backwards, "
            "or give paired latents and no --map."
        )
    probe, fitted = LinearProbe.load(options.probe), LinearMap.load(options.map)
    carried = support(probe, fitted, limit=options.limit)
    migrate(probe, fitted, limit=options.limit).save(place := options.out / "probe.safetensors")
    say(
        console_for(options.json),
        f"The map carries {carried.carried} of {carried.width} directions (κ = {carried.condition:.3g}); "
        f"{carried.lost:.1%} of what the probe reads is lost. Its accuracy is not known: give latents and labels.\n"
        f"Probe: {place}",
    )
    emit(
        options.json,
        {
            "probe": str(place),
            "condition": carried.condition,
            "carried": carried.carried,
            "width": carried.width,
            "lost": carried.lost,
        },
    )
    return 0
