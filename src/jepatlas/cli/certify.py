"""`jepatlas certify`: test whether latents are the world's own coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from jepatlas.cli.options import parse
from jepatlas.cli.output import console_for, defer_interrupts, emit, say, show_verdicts
from jepatlas.core.errors import InputError


@dataclass(frozen=True)
class Certify:
    """Compare latents with the true states of a world, and test the conditions of linear identifiability.

    Example: jepatlas certify runs/spiral-lejepa-s0

    Example: jepatlas certify h.npy h_next.npy --out certified

    Example: jepatlas certify latents.npz --rho 0.9

    A run is certified on fresh samples of its world, a world model on its held-out episodes. A file may hold the
    latents of any model, with or without the true states.
    """

    subject: tyro.conf.Positional[Path]
    """A run folder, or a file (npz, safetensors, csv, parquet) of h, h_next and, if known, z, groups, x, x_next,
    and for steps with actions u and z_next. In a table, the columns of a matrix are h.0, h.1, …"""
    h_next: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="H_NEXT")] = None
    """If the first file holds h alone: the file with the latents of the other view (or of the next step) of each
    row."""
    z: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="Z")] = None
    """The file with the true states, if they are known."""
    samples: int | None = None
    """Number of pairs to certify a run by (40,000; for a world model all held-out pairs). Half of them fit maps, half
    score them."""
    rho: float | None = None
    """Correlation of the pairs in a file, for the error bound. By default it is estimated. Not for runs."""
    quick: bool = False
    """Answer within seconds: fewer resamples and no spectrum search."""
    require: bool = False
    """Exit with code 1 unless the certificate passes. Undecided is not a pass."""
    full: bool = False
    """Show all metrics, not only those with a threshold."""
    seed: int = 0
    """Seed of sampling, splits and bootstrap."""
    out: Path | None = None
    """Folder for the record and a page with figures. By default the record is saved in the run folder, and not at all
    for files."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Certify, "certify", args)
    if not options.subject.exists():
        raise InputError(f"There is no run folder and no file {options.subject}.")
    with defer_interrupts():
        from jepatlas.api.latent_functions import certify

    console = console_for(options.json)
    certificate = certify(
        options.subject,
        options.h_next,
        options.z,
        rho=options.rho,
        samples=options.samples,
        quick=options.quick,
        seed=options.seed,
        title=f"Certificate of {options.subject.name}",
        out=options.out,
    )
    record = certificate.record
    emit(options.json, {"subject": str(options.subject)} | record.to_json())
    diagnosis = record.diagnosis.sentence if record.diagnosis else ""
    if diagnosis:
        console.print(diagnosis, style="bold", highlight=False, markup=False, soft_wrap=True)
    say(console, record.summary.removeprefix(diagnosis).strip())
    show_verdicts(console, record.title, record.verdicts, full=options.full)
    if options.out is not None:
        from jepatlas.reporting import write_report

        page = write_report([options.out], options.out / "report.html", title=record.title, seed=options.seed)
        say(console, f"Report: {page}")
    return 1 if options.require and certificate.passed is not True else 0
