"""Fit of a map to a million pairs streamed from disk, compared with the matrix products alone.

The baseline computes S_xx, S_xy and S_yy with sums in float64; the fit also centres, checks, merges and solves. Both
read float32 rows in chunks. The fit may take at most 1.5 times as long, a ratio of 0.67.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measurement import Comparison, compare
from jepatlas.alignment.maps import LeastSquaresMap
from jepatlas.core.linear_moments import Products
from jepatlas.core.seeding import numpy_generator

__all__ = ["run"]

ROWS, WIDTH, CHUNK, TURNS = 1_000_000, 384, 16_384, 3


def run(rows: int = ROWS, width: int = WIDTH, turns: int = TURNS) -> Iterator[Comparison]:
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        x, y = write_pairs(Path(folder), rows, width)
        for products in ("float64", "float32"):
            yield compare(
                f"map of {rows:,}×{width} float32 pairs from disk, {products}: bare matrix products, ours",
                lambda products=products: bare(x, y, products),
                lambda products=products: streamed(x, y, products),
                turns,
            )


def write_pairs(folder: Path, rows: int, width: int) -> list[np.ndarray]:
    """Two files of rows: y is a rotation of x with noise, and both have non-zero means."""
    rng = numpy_generator(0, "pairs")
    turn = np.linalg.qr(rng.standard_normal((width, width)))[0].astype(np.float32)
    paths = [folder / "x.bin", folder / "y.bin"]
    with paths[0].open("wb") as x_file, paths[1].open("wb") as y_file:
        for start in range(0, rows, CHUNK):
            x, noise = rng.standard_normal((2, min(CHUNK, rows - start), width), np.float32)
            (x + 3).tofile(x_file)
            (x @ turn + np.float32(0.1) * noise - 2).tofile(y_file)
    return [np.memmap(path, np.float32, "r", shape=(rows, width)) for path in paths]


def bare(x: np.ndarray, y: np.ndarray, products: Products) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    xx, xy, yy = np.zeros((3, x.shape[1], x.shape[1]))
    for start in range(0, len(x), CHUNK):
        a, b = (side[start : start + CHUNK].astype(products, copy=False) for side in (x, y))
        xx += a.T @ a
        xy += a.T @ b
        yy += b.T @ b
    return xx, xy, yy


def streamed(x: np.ndarray, y: np.ndarray, products: Products) -> np.ndarray:
    found = LeastSquaresMap(products=products)
    for start in range(0, len(x), CHUNK):
        found.partial_fit(x[start : start + CHUNK], y[start : start + CHUNK])
    return found.map_.weight
