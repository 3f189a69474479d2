"""Carry an energy from one model to another, through the map between them, with no training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from jepatlas.cli.migrate.models import keep, read_models, tell
from jepatlas.cli.options import console_for, emit, parse, say
from jepatlas.cli.pairing import Pairing
from jepatlas.workflows.align import MapKind
from jepatlas.workflows.energy import load_energy_file, migrate_energy, save_energy


@dataclass(frozen=True)
class Energy(Pairing):
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
    found = migrate_energy(
        read_models(options.latents, options, options.groups),
        load_energy_file(options.energy),
        options.fit,
        seed=options.seed,
        blocks=options.blocks,
        share=options.share,
        states=options.states,
    )
    save_energy(found.saved, place := options.out / "energy.safetensors")
    page = keep(found.record, found.map, options.out, options.seed)
    console = console_for(options.json)
    tell(console, found.record)
    say(console, f"Energy: {place}\nReport: {page}")
    emit(options.json, {"energy": str(place), "report": str(page)} | found.record.to_json())
    return 0
