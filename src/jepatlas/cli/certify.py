"""Are these latents the world's own coordinates?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from jepatlas.cli.options import console_for, emit, parse, say, say_advice, verdict_table
from jepatlas.core.errors import InputError
from jepatlas.recipes import WorldModelRecipe, any_recipe
from jepatlas.workflows.certify import Certificate, certify_file
from jepatlas.workflows.runs import certify_run


@dataclass(frozen=True)
class Certify:
    """Hold latents against the true states of a world, and against what theory says of them.

    Example: jepatlas certify runs/spiral-lejepa-s0

    Example: jepatlas certify latents.npz --rho 0.9

    The first is of a run, on fresh samples of its world (a world model: on the episodes that it has not learned from);
    the second of anybody's latents, with the truth or without.
    """

    subject: tyro.conf.Positional[Path]
    """A run folder; or a file (npz, safetensors, csv, parquet) of h, h_next and, if known, z, groups, x, x_next. In a
    table, the columns of a matrix are h.0, h.1, …"""
    samples: int | None = None
    """Pairs to judge a run by (40,000; of a world model as many as were held out): half of them to fit maps, half to
    score them."""
    rho: float | None = None
    """Correlation of the pairs in a file, for the bound (estimated if not given); a run knows its own."""
    require: bool = False
    """Exit with code 1 unless the certificate passes: for scripts. Undecided is no pass."""
    full: bool = False
    """Show every number, not only those with a threshold."""
    seed: int = 0
    """Which samples are drawn, split and resampled."""
    out: Path | None = None
    """Where to keep the record; by default in the run folder, and for a file nowhere."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Certify, "certify", words)
    console = console_for(options.json)
    if not options.subject.exists():
        raise InputError(f"There is no run folder and no file {options.subject}.")
    record = _of_run(options) if options.subject.is_dir() else _of_file(options)
    emit(options.json, {"subject": str(options.subject)} | record.to_json())
    decided = [verdict for verdict in record.verdicts if options.full or verdict.threshold is not None]
    found = record.diagnosis.sentence if record.diagnosis else ""
    console.print(found, style="bold", highlight=False, markup=False, soft_wrap=True) if found else None
    say(console, record.summary.removeprefix(found).strip())
    console.print(verdict_table(record.title, decided))
    say_advice(console, record.verdicts)
    if hidden := len(record.verdicts) - len(decided):
        say(console, f"{hidden} more numbers inform: --full shows them.")
    return 1 if options.require and record.passed is not True else 0


def _of_run(options: Certify) -> Certificate:
    if options.rho is not None:
        raise InputError("--rho is for files of latents: a run knows the correlation of its own pairs.")
    samples = 40_000 if options.samples is None else options.samples
    certify = _certify_world_model if isinstance(any_recipe(options.subject), WorldModelRecipe) else certify_run
    return certify(options.subject, samples=samples, seed=options.seed, out=options.out, audited=True)


def _certify_world_model(*given: Any, **options: Any) -> Certificate:
    from jepatlas.workflows.plan import certify_world_model

    return certify_world_model(*given, **options)


def _of_file(options: Certify) -> Certificate:
    if options.samples is not None:
        raise InputError("--samples is for runs: of a file, all rows are used.")
    record = certify_file(options.subject, rho=options.rho, seed=options.seed)
    if options.out is not None:
        record.save(options.out, "certificate")
    return record
