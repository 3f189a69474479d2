"""Where metrics go: `metrics.jsonl`, one object a line, and through extras TensorBoard and Weights & Biases."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from jepatlas.base.errors import require
from jepatlas.base.files import write_text

__all__ = ["Journal"]


class Journal:
    """Appends; on resume it is first cut back to the checkpoint, so no step stands in it twice."""

    def __init__(self, folder: Path, start: int, track: Iterable[str] = ()) -> None:
        self.path = folder / "metrics.jsonl"
        kept = [line for line in _lines(self.path) if line["step"] <= start]
        write_text(self.path, "".join(_dump(line) for line in kept))
        self.sinks = [_SINKS[name](folder) for name in track]

    def __enter__(self) -> Self:
        self.file = open(self.path, "a")
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()
        for sink in self.sinks:
            sink.close()

    def write(self, step: int, values: dict[str, float]) -> None:
        self.file.write(_dump({"step": step} | values))
        self.file.flush()
        for sink in self.sinks:
            sink.write(step, values)


class _TensorBoard:
    def __init__(self, folder: Path) -> None:
        require("tensorboard", "track", "Tracking with TensorBoard")
        module: Any = require("torch.utils.tensorboard", "track", "Tracking with TensorBoard")
        self.writer = module.SummaryWriter(str(folder / "tensorboard"))

    def write(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


class _WandB:
    def __init__(self, folder: Path) -> None:
        wandb: Any = require("wandb", "track", "Tracking with Weights & Biases")
        self.run = wandb.init(project="jepatlas", name=folder.name, dir=str(folder), resume="allow", id=folder.name)

    def write(self, step: int, values: dict[str, float]) -> None:
        self.run.log(values, step=step)

    def close(self) -> None:
        self.run.finish()


_SINKS = {"tensorboard": _TensorBoard, "wandb": _WandB}


def _dump(line: dict[str, Any]) -> str:
    finite = {k: v if not isinstance(v, float) or math.isfinite(v) else str(v) for k, v in line.items()}
    return json.dumps(finite) + "\n"


def _lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines; one that a kill cut short is dropped."""
    lines = []
    for text in path.read_text().splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            break
    return lines
