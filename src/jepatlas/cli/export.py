"""`jepatlas export`: write a trained encoder as a file that runs without jepatlas."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from jepatlas.cli.options import parse
from jepatlas.cli.output import console_for, defer_interrupts, emit, say


@dataclass(frozen=True)
class Export:
    """Write the encoder of a run as ONNX, or as a torch.export program.

    Example: jepatlas export runs/spiral-lejepa-s0 --out encoder.onnx

    The file takes x with any number of rows, and gives the latents h.
    """

    run: tyro.conf.Positional[Path]
    """A run folder."""
    out: Path | None = None
    """The file: .onnx, or .pt2 for a torch.export program; by default encoder.onnx in the run folder."""
    json: str | None = None
    """Write the path of the file as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Export, "export", args)
    with defer_interrupts():
        from jepatlas.api.export_function import export

    path = export(options.run, options.out or options.run / "encoder.onnx")
    say(console_for(options.json), f"Encoder: {path}")
    emit(options.json, {"run": str(options.run), "out": str(path)})
    return 0
