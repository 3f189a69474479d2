"""Is an energy a quasimetric, on the scale of the truth, and does it know the one-way doors?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from jepatlas.cli.energy.shown import show
from jepatlas.cli.options import console_for, emit, parse, say
from jepatlas.core.errors import InputError
from jepatlas.core.records import Record
from jepatlas.workflows.energy import audit_file, audit_saved, evaluate_run, is_energy_file


@dataclass(frozen=True)
class Audit:
    """Audit anybody's energy: the one of a run, a matrix of energies in a file, or a saved energy at given points.

    Example: jepatlas energy audit runs/energy

    Example: jepatlas energy audit distances.npy --repair repaired.npy

    Example: jepatlas energy audit runs/energy/energy.safetensors --points latents.npz

    A file holds a square matrix, E from row to column, as `energies` (or as its only array); beside it there may be
    the `points` that rows and columns stand for, and the exact `truth`. Where there is no way, write inf.
    """

    subject: tyro.conf.Positional[Path]
    """A run folder of 'jepatlas energy fit', or a file: npy, npz, safetensors, csv or parquet."""
    points: Path | None = None
    """File with the states to audit a saved energy at, as `points`, `h` or its only array, and the exact `truth` where
    there is one; for a matrix, what its rows stand for."""
    states: int = 256
    """Of a larger matrix, or of more points, so many states are audited, drawn by the seed; a run has its own."""
    tolerance: float | None = None
    """What still counts as rounding, as a share of an energy: for those that a solver gives to so many digits only. By
    default it follows from the numbers' precision."""
    repair: Path | None = None
    """Write the nearest quasimetric from below, the closure of the matrix, to this file; beside it (in .npz or
    .safetensors) all else that the matrix's own file holds, such as points and truth."""
    require: bool = False
    """Exit with code 1 if anything fails: for scripts."""
    full: bool = False
    """Show every number, not only those with a threshold."""
    seed: int = 0
    """Which states and triples are drawn."""
    out: Path | None = None
    """Where to keep the record; by default in the run folder, and for a file nowhere."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Audit, "energy audit", words)
    console = console_for(options.json)
    if not options.subject.exists():
        raise InputError(f"There is no run folder and no file {options.subject}.")
    record = _of_run(options) if options.subject.is_dir() else _of_file(options)
    show(console, record, full=options.full)
    if options.repair is not None:
        say(console, f"Repaired: {options.repair}")
    emit(options.json, {"subject": str(options.subject)} | record.to_json())
    return 1 if options.require and any(verdict.passed is False for verdict in record.verdicts) else 0


def _of_run(options: Audit) -> Record:
    _refuse_repair(options)
    if options.points is not None:
        raise InputError(
            "--points is for what comes in a file: a run is audited at states of what it was learned from."
        )
    return evaluate_run(options.subject, seed=options.seed, out=options.out, tolerance=options.tolerance).record


def _of_file(options: Audit) -> Record:
    sample: Any = {"states": options.states, "seed": options.seed, "tolerance": options.tolerance}
    if not is_energy_file(options.subject):
        record = audit_file(options.subject, points=options.points, repaired=options.repair, **sample)
    elif options.points is None:
        raise InputError(
            f"{options.subject} is a saved energy, which is audited at points: give a file of them with --points."
        )
    else:
        _refuse_repair(options)
        record = audit_saved(options.subject, options.points, **sample)
    if options.out is not None:
        record.save(options.out, "audit")
    return record


def _refuse_repair(options: Audit) -> None:
    if options.repair is not None:
        raise InputError("--repair is for a matrix in a file, and this energy is not one.")
