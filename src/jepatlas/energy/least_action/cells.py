"""Cells of observed latents: their distinct values if these are few, else k-means clusters.

    cell(h) = argmin_k ‖h − c_k‖

Clusters are fitted by Lloyd's algorithm on a subsample. Distances are products of matrices, in tiles that fit a cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.seeding import numpy_generator

__all__ = ["Cells", "choose_cells", "nearest_cells", "nearest_centres"]

ROUNDS = 10  # of Lloyd's algorithm
ROWS_PER_CELL = 40  # of the subsample that clusters are fitted to
TILE = 2**22  # distances computed at once
SAMPLE = 20_000  # states among which repetitions are looked for


@dataclass(frozen=True)
class Cells:
    """`exact` if every cell is a single value, so that no two different states share a cell."""

    centres: np.ndarray  # (k, d) float32
    label: np.ndarray  # (n,) the cell of each state
    exact: bool


def choose_cells(h_nd: np.ndarray, count: int | None, *, per_cell: int, most: int, seed: int) -> Cells:
    """The distinct states if they are visited twice or more on average; else `count` clusters, by default so many that
    a cell holds about `per_cell` states, at most `most`."""
    rng = numpy_generator(seed, "least action cells")
    if count is None:
        distinct = _distinct(h_nd, most, rng)
        if distinct is not None:
            return distinct
        count = int(np.clip(len(h_nd) // per_cell, 2, most))
    sample = h_nd[np.sort(rng.permutation(len(h_nd))[: ROWS_PER_CELL * count])]
    centres = np.unique(sample[rng.permutation(len(sample))[:count]], axis=0)
    for _ in range(ROUNDS):
        centres = _means(sample, nearest_centres(sample, centres), centres)
    label = nearest_centres(h_nd, centres)
    used, label = np.unique(label, return_inverse=True)
    return Cells(centres[used], label, exact=False)


def nearest_centres(h_nd: np.ndarray, centres_kd: np.ndarray) -> np.ndarray:
    """The index of the nearest centre of each row, (n,)."""
    return nearest_cells(torch.from_numpy(np.ascontiguousarray(h_nd)), torch.from_numpy(centres_kd)).numpy()


@torch.no_grad()
def nearest_cells(h_nd: Tensor, centres_kd: Tensor) -> Tensor:
    """The same for tensors. ‖h‖² does not change the order of the centres, so it is left out."""
    half_norms = centres_kd.square().sum(1) / 2
    rows = max(1, TILE // len(centres_kd))
    parts = [torch.addmm(half_norms, tile, centres_kd.T, alpha=-1).argmin(1) for tile in h_nd.split(rows)]
    return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)


def _distinct(h_nd: np.ndarray, most: int, rng: np.random.Generator) -> Cells | None:
    sample = h_nd[rng.permutation(len(h_nd))[:SAMPLE]]
    if len(np.unique(sample, axis=0)) > 0.9 * len(sample) and len(sample) > 1:
        return None
    values, label = np.unique(h_nd, axis=0, return_inverse=True)
    if len(values) > min(most, len(h_nd) / 2):
        return None
    return Cells(values, label.ravel(), exact=True)


def _means(rows: np.ndarray, label: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The mean of each cell; a cell without rows keeps its centre."""
    count = np.bincount(label, minlength=len(centres))
    total = np.zeros(centres.shape)
    order = np.argsort(label, kind="stable")
    filled = np.flatnonzero(count)
    starts = np.cumsum(count)[filled] - count[filled]
    total[filled] = np.add.reduceat(rows[order].astype(np.float64), starts, axis=0)
    means = total / np.maximum(count, 1)[:, None]
    return np.where(count[:, None] > 0, means, centres).astype(np.float32)
