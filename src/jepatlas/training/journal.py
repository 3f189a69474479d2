"""Where metrics go: `metrics.jsonl`, one object a line, and through extras TensorBoard and Weights & Biases."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import Any, Self

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import write_text

__all__ = ["Journal", "last_metrics"]


class Journal:
    """Appends; on resume it is first cut back to the checkpoint, so no step stands in it twice."""

    def __init__(self, folder: Path, start: int, track: Iterable[str] = ()) -> None:
        self.path = folder / "metrics.jsonl"
        kept = [line for line in _lines(self.path) if line["step"] <= start]
        write_text(self.path, "".join(_dump(line) for line in kept))
        self.sinks = [_SINKS[name](folder, start) for name in track]

    def __enter__(self) -> Self:
        self.file = open(self.path, "ab", buffering=0)
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()
        for sink in self.sinks:
            sink.close()

    def write(self, step: int, values: dict[str, float]) -> None:
        try:
            self._append(_dump({"step": step} | values).encode())
            for sink in self.sinks:
                sink.write(step, values)
        except OSError as error:
            raise InputError(
                f"Could not write metrics to {self.path.parent}: {error.strerror or error}. The checkpoints are whole: "
                f"free some space, then go on with: jepatlas train --resume {quote(str(self.path.parent))}"
            ) from error

    def _append(self, line: bytes) -> None:
        while line:  # a disk that is nearly full takes a part and refuses the rest
            line = line[self.file.write(line) :]


def last_metrics(folder: Path) -> dict[str, float]:
    """The last entry of a run's metrics that is whole, as numbers ("nan" and "inf" are texts in it); nothing where
    there is none."""
    entries = _lines(folder / "metrics.jsonl")
    return {name: float(value) for name, value in entries[-1].items()} if entries else {}


class _TensorBoard:
    def __init__(self, folder: Path, start: int) -> None:
        module: Any = require("torch.utils.tensorboard", "track", "Tracking with TensorBoard")
        # What a killed run has written beyond its checkpoint is not to be shown twice.
        self.writer = module.SummaryWriter(str(folder / "tensorboard"), purge_step=start + 1 if start else None)

    def write(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


class _WandB:
    def __init__(self, folder: Path, start: int) -> None:
        wandb: Any = require("wandb", "track", "Tracking with Weights & Biases")
        try:
            self.run = wandb.init(
                project="jepatlas", name=folder.name, dir=str(folder), id=_own_id(folder / "wandb-id"), resume="allow"
            )
        except wandb.Error as error:
            raise InputError(
                f"Weights & Biases: {str(error).rstrip('.')}. To track without its server set WANDB_MODE=offline."
            ) from error

    def write(self, step: int, values: dict[str, float]) -> None:
        self.run.log(values, step=step)

    def close(self) -> None:
        self.run.finish()


def _own_id(path: Path) -> str:
    """One id for a run folder, however often it is resumed; folder names need not differ between projects."""
    if not path.exists():
        write_text(path, uuid.uuid4().hex)
    return path.read_text()


_SINKS = {"tensorboard": _TensorBoard, "wandb": _WandB}


def _dump(line: dict[str, Any]) -> str:
    finite = {k: v if not isinstance(v, float) or math.isfinite(v) else str(v) for k, v in line.items()}
    return json.dumps(finite) + "\n"


def _lines(path: Path) -> list[dict[str, Any]]:
    """The entries; one that a kill cut short is dropped."""
    *whole, last = path.read_bytes().split(b"\n") if path.exists() else [b""]
    lines = [_entry(path, number, line) for number, line in enumerate(whole, start=1)]
    try:
        json.loads(last)
    except ValueError:  # the end of the line is missing, and more
        return lines
    return [*lines, _entry(path, len(lines) + 1, last)]


def _entry(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if not isinstance(entry, dict) or type(entry.get("step")) is not int:
        raise InputError(
            f"{path}, line {number}: this is no entry of the metrics, which is an object with a whole number 'step'. "
            "Mend or remove that line, then resume."
        )
    return entry
