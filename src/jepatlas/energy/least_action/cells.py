"""Cells of observed latents: their distinct values if these are few, else k-means clusters.

    cell(h) = argmin_k ‖h − c_k‖

Clusters are fitted by Lloyd's algorithm on a subsample. With few centres, distances are products of matrices, in tiles
that fit a cache; with many, a compiled search skips most centres (`core/kernels/nearest_centres.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.seeding import numpy_generator

__all__ = ["Cells", "CentreSearch", "choose_cells", "nearest_centres"]

ROUNDS = 10  # of Lloyd's algorithm
ROWS_PER_CELL = 40  # of the subsample that clusters are fitted to
MANY = 256  # centres above which they are searched in groups
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
    return CentreSearch(centres_kd)(h_nd)


class CentreSearch:
    """Finds the nearest of these centres (k, d)."""

    def __init__(self, centres_kd: np.ndarray) -> None:
        self.centres = np.ascontiguousarray(centres_kd, dtype=np.float32)
        count = len(self.centres)
        if count <= MANY:
            return
        hubs = self.centres[:: max(1, count // round(count**0.5))].astype(np.float64)
        for _ in range(3):
            group = _by_products(self.centres, hubs.astype(np.float32))
            hubs = _means(self.centres, group, hubs).astype(np.float64)
        group = _by_products(self.centres, hubs.astype(np.float32))
        radius = np.linalg.norm(self.centres - hubs[group], axis=1)
        self._order = np.lexsort((radius, group))
        self._hubs = hubs
        self._starts = np.searchsorted(group[self._order], np.arange(len(hubs) + 1))
        self._radii = radius[self._order]
        self._sorted = self.centres[self._order]

    def __call__(self, h_nd: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(h_nd, dtype=np.float32)
        if len(self.centres) <= MANY or not len(rows):
            return _by_products(rows, self.centres)
        from jepatlas.core.kernels.nearest_centres import nearest_in_groups  # noqa: PLC0415  (numba takes a second)

        found = np.empty(len(rows), dtype=np.int64)
        size = max(1, TILE // len(self._hubs))
        for begin in range(0, len(rows), size):
            tile = rows[begin : begin + size]
            distances = self._hub_distances(tile.astype(np.float64))
            near = nearest_in_groups(tile, distances, self._starts, self._radii, self._sorted)
            found[begin : begin + size] = self._order[near]
        return found

    def _hub_distances(self, rows: np.ndarray) -> np.ndarray:
        squares = np.square(rows).sum(1)[:, None] + np.square(self._hubs).sum(1) - 2 * rows @ self._hubs.T
        return np.sqrt(np.maximum(squares, 0.0))


def _by_products(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The nearest centre by all distances. ‖h‖² does not change the order of the centres, so it is left out."""
    half_norms = np.square(centres).sum(1) / 2
    size = max(1, TILE // len(centres))
    found = np.empty(len(rows), dtype=np.int64)
    for begin in range(0, len(rows), size):
        tile = rows[begin : begin + size]
        found[begin : begin + size] = (half_norms - tile @ centres.T).argmin(1)
    return found


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
    return np.where(count[:, None] > 0, means, centres).astype(centres.dtype)
