"""Exact nearest neighbours in two steps: candidates by float32 products, then distances in float64.

A product in float32 gives a lower bound of a squared distance. For each row, a few more than k rows with the lowest
bounds are kept as candidates (`offer`). The k nearest of these are found by exact distances (`settle`). If the last of
them is not below all bounds that were left out, all rows are searched. Of equally distant rows the earlier one is
nearer. The numpy equivalent is in `jepatlas.alignment.similarity.nearest_neighbours`.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.kernels import compiled
from jepatlas.core.kernels.distances import squared_distance

__all__ = ["offer", "settle"]


@compiled
def offer(
    products: np.ndarray, corner: tuple[int, int], norms: np.ndarray, bounds: np.ndarray, candidates: np.ndarray
) -> None:
    """Update the candidates of rows and columns with a tile of products whose first entry is at `corner`, for j > i.

    `norms` are lower bounds of ‖x‖²/2. `bounds` (n, m) are the lowest bounds of ‖xᵢ − xⱼ‖²/2 so far, in ascending
    order, and `candidates` (n, m) their j.
    """
    (rows, columns), (row, column) = products.shape, corner
    last = bounds[:, -1].copy()  # contiguous in memory
    for i in range(row, row + rows):
        for j in range(max(column, i + 1), column + columns):
            bound = norms[i] + norms[j] - products[i - row, j - column]
            if bound < last[i]:
                _insert(bounds[i], candidates[i], bound, j)
                last[i] = bounds[i, -1]
            if bound < last[j]:
                _insert(bounds[j], candidates[j], bound, i)
                last[j] = bounds[j, -1]


@compiled
def settle(x: np.ndarray, bounds: np.ndarray, candidates: np.ndarray, k: int) -> np.ndarray:
    """The k nearest other rows of each row of x, nearest first, (n, k)."""
    n, near = len(x), np.full((len(x), k), -1)
    everyone = np.arange(n)
    for i in range(n):
        far = np.full(k, np.inf)
        _nearest(x, i, np.sort(candidates[i]), far, near[i])
        if bounds.shape[1] < n - 1 and not far[-1] < 2 * bounds[i, -1]:
            far[:] = np.inf
            _nearest(x, i, everyone, far, near[i])
    return near


@compiled
def _nearest(x: np.ndarray, i: int, ascending: np.ndarray, far: np.ndarray, near: np.ndarray) -> None:
    for j in ascending:
        distance = squared_distance(x[i], x[j])
        if distance < far[-1] and j != i:  # strict, so that the earlier of equals stays
            _insert(far, near, distance, j)


@compiled
def _insert(values: np.ndarray, rows: np.ndarray, value: float, row: int) -> None:
    """Insert a value into an ascending list, after equal values; the last one is dropped."""
    place = len(values) - 1
    while place > 0 and values[place - 1] > value:
        values[place], rows[place] = values[place - 1], rows[place - 1]
        place -= 1
    values[place], rows[place] = value, row
