"""Is an energy a quasimetric, on the scale of the truth, and does it know the one-way doors?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from jepatlas.base.errors import InputError
from jepatlas.base.records import Record
from jepatlas.energies import audit_file, judge_run
from jepatlas.verbs.energy.shown import show
from jepatlas.verbs.options import console_for, emit, parse, say


@dataclass(frozen=True)
class Audit:
    """Audit anybody's energy: the one of a run, or a matrix of energies in a file.

    Example: jepatlas energy audit runs/energy

    Example: jepatlas energy audit distances.npy --repair repaired.npy

    A file holds a square matrix, E from row to column, as `energies` (or as its only array); beside it there may be
    the `points` that rows and columns stand for, and the exact `truth`. Where there is no way, write inf.
    """

    subject: tyro.conf.Positional[Path]
    """A run folder of 'jepatlas energy fit', or a file: npy, npz, safetensors, csv or parquet."""
    states: int = 256
    """Of a larger matrix so many states are audited, drawn by the seed."""
    repair: Path | None = None
    """Write the nearest quasimetric from below, the closure of the matrix, to this file (.npy or .npz)."""
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
    if options.repair is not None:
        raise InputError("--repair is for a matrix in a file: the energy of a run is not one.")
    return judge_run(options.subject, seed=options.seed, out=options.out).record


def _of_file(options: Audit) -> Record:
    record = audit_file(options.subject, states=options.states, seed=options.seed, repaired=options.repair)
    if options.out is not None:
        record.save(options.out, "audit")
    return record
