"""Latents of two models of one world, and files that hold them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.alignment import Latents, PairedLatents
from jepatlas.core.arrays import write_arrays
from jepatlas.core.linear import hold_out
from jepatlas.workflows.align import Study

__all__ = ["FORMATS", "Models", "matched", "study", "write"]

FORMATS = ("npy", "npz", "safetensors", "csv", "parquet")


@dataclass(frozen=True)
class Models:
    """Latents of the same states. `label` is the sign of the first state variable; a `group` has eight rows."""

    a: np.ndarray
    b: np.ndarray
    raw: np.ndarray
    label: np.ndarray
    group: np.ndarray

    @classmethod
    def draw(cls, rows: int = 160, noise: float = 0.1, seed: int = 0) -> Models:
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((rows, 3))
        a, b = (z @ rng.standard_normal((3, 4)) + noise * rng.standard_normal((rows, 4)) + shift for shift in (2, -5))
        raw = rng.standard_normal((rows, 6, 5)) + z[:, :1, None]
        return cls(a, b, raw, np.array(["left", "right"])[(z[:, 0] > 0).astype(int)], np.arange(rows) // 8)


def matched(a: np.ndarray, b: np.ndarray, **given: Any) -> PairedLatents:
    return PairedLatents(Latents("ada", a, **given), Latents("ben", b))


def study(rows: int, groups: np.ndarray | None = None, *, permutations: int = 19, replicates: int = 10) -> Study:
    """Half of the rows are held out."""
    split = hold_out(rows, np.random.default_rng(0), groups=groups)
    return Study(split, groups, permutations=permutations, replicates=replicates)


def write(path: Path | str, **arrays: np.ndarray) -> Path:
    """Write the arrays to a file."""
    write_arrays(path, arrays)
    return Path(path)
