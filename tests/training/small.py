"""Small runs, and the command line in this process or a separate one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from forked import Forked, forked_script
from torch import Tensor

from jepatlas.cli import main
from jepatlas.nn import MLPConfig
from jepatlas.recipes import Recipe
from jepatlas.training import ConstantSchedule, TrainingConfig, latest_checkpoint

__all__ = [
    "ENV",
    "WORDS",
    "call",
    "children",
    "command",
    "forked_command",
    "gone",
    "metrics",
    "recipe",
    "same",
    "tensors",
    "until",
]

WORDS = ["--encoder.width", "16", "--encoder.depth", "1", "--batch-size", "32", "--schedule", "constant"]
ENV = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "COLUMNS": "80"}


def recipe(seed: int = 0, **training: Any) -> Recipe:
    """The recipe that `WORDS` describe."""
    config = replace(TrainingConfig(batch_size=32, schedule=ConstantSchedule()), **training)
    return Recipe(seed=seed, encoder=MLPConfig(width=16, depth=1), training=config)


def call(*words: str | Path) -> int:
    """Run the command line in this process; return its exit code."""
    try:
        return main([str(word) for word in words])
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


def command(*words: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start the command line in a separate process."""
    line = [sys.executable, "-m", "jepatlas", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENV}
    return subprocess.Popen(line, **(pipes | options))


def forked_command(*words: str | Path, env: Mapping[str, str] = ENV) -> Forked:
    """Fork the command line from this process, which has imported torch; faster than `command`."""
    return forked_script(f"import sys; from jepatlas.cli import main; sys.exit(main({[*map(str, words)]}))", env=env)


def until(condition: Callable[[], Any], seconds: float = 120) -> Any:
    """Wait until a condition holds and return its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "Timed out waiting for the condition."
        time.sleep(0.001)
    return value


def children(pid: int) -> list[int]:
    """Child processes of a process, on Linux."""
    return [
        int(word) for file in Path("/proc", str(pid), "task").glob("*/children") for word in file.read_text().split()
    ]


def gone(pid: int) -> bool:
    status = Path("/proc", str(pid), "status")
    return not status.exists() or "\nState:\tZ" in status.read_text()


def tensors(run: Path) -> dict[str, Tensor]:
    """All tensors of the newest checkpoint."""
    newest = latest_checkpoint(run / "checkpoints")
    assert newest is not None
    return safetensors.torch.load_file(newest / "state.safetensors")


def same(first: Path, second: Path) -> bool:
    """Whether the final checkpoints of two runs are bitwise equal."""
    a, b = tensors(first), tensors(second)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
