"""`jepatlas certify`: test whether latents are the world's own coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from jepatlas.cli.options import parse
from jepatlas.cli.output import console_for, defer_interrupts, emit, say, show_verdicts
from jepatlas.core.errors import InputError

if TYPE_CHECKING:
    from jepatlas.workflows.certify import CertificateRecord

SAMPLES = 40_000


@dataclass(frozen=True)
class Certify:
    """Compare latents with the true states of a world, and test the conditions of linear identifiability.

    Example: jepatlas certify runs/spiral-lejepa-s0

    Example: jepatlas certify latents.npz --rho 0.9

    A run is certified on fresh samples of its world, a world model on its held-out episodes. A file may hold anybody's
    latents, with or without the true states.
    """

    subject: tyro.conf.Positional[Path]
    """A run folder, or a file (npz, safetensors, csv, parquet) of h, h_next and, if known, z, groups, x, x_next. In a
    table, the columns of a matrix are h.0, h.1, …"""
    samples: int | None = None
    """Number of pairs to certify a run by (40,000; for a world model all held-out pairs). Half of them fit maps, half
    score them."""
    rho: float | None = None
    """Correlation of the pairs in a file, for the error bound. By default it is estimated. A run knows its own."""
    require: bool = False
    """Exit with code 1 unless the certificate passes. Undecided is not a pass."""
    full: bool = False
    """Show all metrics, not only those with a threshold."""
    seed: int = 0
    """Seed of sampling, splits and bootstrap."""
    out: Path | None = None
    """Where to save the record; by default in the run folder, and not at all for a file."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Certify, "certify", args)
    if not options.subject.exists():
        raise InputError(f"There is no run folder and no file {options.subject}.")
    record = _certify_run(options) if options.subject.is_dir() else _certify_file(options)
    console = console_for(options.json)
    emit(options.json, {"subject": str(options.subject)} | record.to_json())
    diagnosis = record.diagnosis.sentence if record.diagnosis else ""
    if diagnosis:
        console.print(diagnosis, style="bold", highlight=False, markup=False, soft_wrap=True)
    say(console, record.summary.removeprefix(diagnosis).strip())
    show_verdicts(console, record.title, record.verdicts, full=options.full)
    return 1 if options.require and record.passed is not True else 0


def _certify_run(options: Certify) -> CertificateRecord:
    if options.rho is not None:
        raise InputError("--rho is for files of latents. A run knows the correlation of its own pairs.")
    from jepatlas.recipes import WorldModelRecipe, any_recipe

    recipe = any_recipe(options.subject)
    with defer_interrupts():
        if recipe.kind == WorldModelRecipe.kind:
            from jepatlas.workflows.plan import certify_world_model as certify
        else:
            from jepatlas.workflows.runs import certify_run as certify

    samples = SAMPLES if options.samples is None else options.samples
    return certify(options.subject, samples=samples, seed=options.seed, out=options.out, audited=True)


def _certify_file(options: Certify) -> CertificateRecord:
    if options.samples is not None:
        raise InputError("--samples is for runs. All rows of a file are used.")
    with defer_interrupts():
        from jepatlas.workflows.certify import certify_file

    record = certify_file(options.subject, rho=options.rho, seed=options.seed)
    if options.out is not None:
        record.save(options.out, "certificate")
    return record
