"""Carry an energy from one model to another, through the map between them, with no training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from jepatlas.alignments import MapKind, match, read_latents
from jepatlas.base.errors import InputError
from jepatlas.energies import MigratedEnergy, load_energy_file, migrate_energy, save_energy
from jepatlas.report import write_report
from jepatlas.verbs.options import console_for, emit, parse, say, verdict_table


@dataclass(frozen=True)
class Energy:
    """Make an energy on A's latents take B's, through the map B → A.

    Example: jepatlas migrate energy ada.npz ben.npz --energy runs/energy/energy.safetensors

    The map is fitted on some of the shared rows. On the others both energies are held against each other, and the
    carried one is audited: it is a quasimetric wherever the other one is.
    """

    latents: tyro.conf.Positional[tuple[Path, ...]]
    """Paired latents of A and B, with ids where their rows are not in the same order. In csv and parquet h is all
    numeric columns but ids, groups and labels, or h.0, h.1, …"""
    energy: Path
    """A saved energy on A's latents, such as energy.safetensors in a run folder of 'jepatlas energy fit'."""
    groups: Path | None = None
    """File with a group for each row of A (an object, an episode): never split."""
    blocks: int | None = None
    """Rows are a series in time: split into blocks of so many rows."""
    ids: tuple[Path, ...] = ()
    """Two files with the ids of the rows of A and of B, also as txt with one a line."""
    fit: MapKind = "ridge"
    """How the map is fitted."""
    share: float = 0.5
    """Share of the rows (groups, time blocks) that is held out."""
    states: int = 256
    """So many of the held-out rows, at most, are judged: all pairs of them."""
    seed: int = 0
    """Which rows are held out."""
    out: Path = Path("runs/migrate-energy")
    """Where energy.safetensors, map.safetensors, the record and report.html go."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Energy, "migrate energy", words)
    found = _between_models(options)
    save_energy(found.saved, place := options.out / "energy.safetensors")
    found.map.save(options.out / "map.safetensors")
    found.record.save(options.out, "migrate")
    page = write_report([options.out], options.out / "report.html", title=found.record.title, seed=options.seed)
    console = console_for(options.json)
    say(console, found.record.summary)
    console.print(verdict_table(found.record.title, found.record.verdicts))
    for verdict in found.record.verdicts:
        if verdict.passed is False:
            say(console, f"✗ {verdict.name}: {verdict.advice}")
    say(console, f"Energy: {place}\nReport: {page}")
    emit(options.json, {"energy": str(place), "report": str(page)} | found.record.to_json())
    return 0


def _between_models(options: Energy) -> MigratedEnergy:
    if len(options.latents) != 2:
        raise InputError(f"give the latents of both models, A and B: 2 files, but {len(options.latents)} given.")
    if len(options.ids) not in (0, 2):
        raise InputError(f"--ids takes two files, of A and of B, but {len(options.ids)} was given.")
    ids = options.ids or (None, None)
    a = read_latents(options.latents[0], ids=ids[0], groups=options.groups)
    b = read_latents(options.latents[1], ids=ids[1])
    return migrate_energy(
        match(a, b), load_energy_file(options.energy), options.fit, seed=options.seed, blocks=options.blocks,
        share=options.share, states=options.states,
    )  # fmt: skip
