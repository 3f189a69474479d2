"""Metrics log `metrics.jsonl` (one JSON object per line), with optional TensorBoard and Weights & Biases."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import Any, Protocol, Self

from jepatlas.core.errors import InputError, did_you_mean, require
from jepatlas.core.files import write_text
from jepatlas.core.parsing import parse_json

__all__ = ["METRICS_FILE", "MetricsLog", "Tracker", "last_metrics", "open_tracker"]

METRICS_FILE = "metrics.jsonl"


class MetricsLog:
    """Appends metrics. On resume, entries after the checkpoint are removed first."""

    def __init__(self, folder: Path, start: int, track: Iterable[str] = ()) -> None:
        self.path = folder / METRICS_FILE
        kept = [entry for entry in _read_entries(self.path) if entry["step"] <= start]
        write_text(self.path, "".join(_to_line(entry) for entry in kept))
        self.trackers = [open_tracker(name, folder, start) for name in track]

    def __enter__(self) -> Self:
        self.file = open(self.path, "ab", buffering=0)
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()
        for tracker in self.trackers:
            tracker.close()

    def write(self, step: int, values: dict[str, float]) -> None:
        try:
            line = _to_line({"step": step} | values).encode()
            while line:  # on a nearly full disk a write may be partial
                line = line[self.file.write(line) :]
            for tracker in self.trackers:
                tracker.write(step, values)
        except OSError as error:
            raise InputError(
                f"Cannot write metrics to {self.path.parent}: {error.strerror or error}. The checkpoints are intact. "
                f"Free some space, then resume with: jepatlas train --resume {quote(str(self.path.parent))}"
            ) from error


def last_metrics(folder: Path) -> dict[str, float]:
    """The last complete entry of a run's metrics; empty if there is none."""
    entries = _read_entries(folder / METRICS_FILE)
    return {name: float(value) for name, value in entries[-1].items()} if entries else {}


class Tracker(Protocol):
    """Shows metrics in another program."""

    def write(self, step: int, values: dict[str, float]) -> None: ...

    def close(self) -> None: ...


class _TensorBoard:
    def __init__(self, folder: Path, start: int) -> None:
        module = require("torch.utils.tensorboard", "track", "Tracking with TensorBoard")
        # Hide the entries that a killed run wrote after its last checkpoint.
        self.writer = module.SummaryWriter(str(folder / "tensorboard"), purge_step=start + 1 if start else None)

    def write(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


class _WandB:
    def __init__(self, folder: Path, start: int) -> None:
        wandb = require("wandb", "track", "Tracking with Weights & Biases")
        self.own = wandb.run is None
        if not self.own:  # a run that the user started, and also ends
            self.run = wandb.run
            return
        id_file = folder / "wandb-id"  # folder names may repeat between projects
        if not id_file.exists():
            write_text(id_file, uuid.uuid4().hex)
        try:
            self.run = wandb.init(
                project="jepatlas", name=folder.name, dir=str(folder), id=id_file.read_text(), resume="allow"
            )
        except wandb.Error as error:
            raise InputError(
                f"Weights & Biases: {str(error).rstrip('.')}. Set WANDB_MODE=offline to track without the server."
            ) from error

    def write(self, step: int, values: dict[str, float]) -> None:
        self.run.log(values, step=step)

    def close(self) -> None:
        if self.own:
            self.run.finish()


_TRACKERS = {"tensorboard": _TensorBoard, "wandb": _WandB}


def open_tracker(name: str, folder: Path, start: int = 0) -> Tracker:
    """A tracker by name; TensorBoard hides what an earlier process wrote after step `start`."""
    if name not in _TRACKERS:
        raise InputError(f"track has '{name}', which is unknown. {did_you_mean(name, _TRACKERS)}")
    return _TRACKERS[name](folder, start)


def _to_line(entry: dict[str, Any]) -> str:
    """JSON, with non-finite numbers as strings."""
    values = {}
    for name, value in entry.items():
        values[name] = str(value) if isinstance(value, float) and not math.isfinite(value) else value
    return json.dumps(values) + "\n"


def _read_entries(path: Path) -> list[dict[str, Any]]:
    """All entries; an incomplete last line is dropped."""
    if not path.exists():
        return []
    *complete, last = path.read_bytes().split(b"\n")
    entries = [_parse_entry(path, number, line) for number, line in enumerate(complete, start=1)]
    try:
        parse_json(last, path)
    except InputError:
        return entries
    return [*entries, _parse_entry(path, len(entries) + 1, last)]


def _parse_entry(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry = parse_json(line, path)
    except InputError:
        entry = None
    if not isinstance(entry, dict) or type(entry.get("step")) is not int:
        raise InputError(
            f"{path}, line {number}: expected a JSON object with an integer 'step'. Correct or remove the line, then "
            "resume."
        )
    return entry
