"""Two models' latents as a person gives them, and what came of carrying something from one to the other."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from jepatlas.alignment import PairedLatents
from jepatlas.cli.options import say, verdict_table
from jepatlas.cli.pairing import Pairing
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Record
from jepatlas.reporting import write_report
from jepatlas.workflows.align import read_pair

__all__ = ["keep", "read_models", "tell"]


def read_models(
    latents: tuple[Path, ...], pairing: Pairing, groups: Path | None, labels: Path | None = None
) -> PairedLatents:
    """The rows that A and B share; groups and labels are those of A's rows."""
    if len(latents) != 2:
        were = "file was" if len(latents) == 1 else "files were"
        raise InputError(f"give the latents of both models, A and B, but {len(latents)} {were} given.")
    return read_pair(*latents, ids=pairing.id_files, groups=groups, labels=labels, intersect=pairing.intersect)


def keep(record: Record, through: LinearMap, folder: Path, seed: int) -> Path:
    """The map, the record and a page, which is named."""
    through.save(folder / "map.safetensors")
    record.save(folder, "migrate")
    return write_report([folder], folder / "report.html", title=record.title, seed=seed)


def tell(console: Console, record: Record) -> None:
    """The answer, the numbers, and of what failed what to do."""
    say(console, record.summary)
    console.print(verdict_table(record.title, record.verdicts))
    for verdict in record.verdicts:
        if verdict.passed is False:
            say(console, f"✗ {verdict.name}: {verdict.advice}")
