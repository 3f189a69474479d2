"""Nearest neighbours in two steps: rough products say who may be near, exact distances who is.

A product in float32 bounds a squared distance from below. A few more than k rows with the lowest bounds are kept for
each row (`offer`). Of these the k nearest are taken by the distances of the rows themselves, in float64 (`settle`);
where the last of them is not below all bounds that were left out, all rows are looked at. So neighbours are those of
exact distances, and of rows that are equally far the earlier one is nearer. The plain twin is in
`jepatlas.alignment.similarity.neighbours`.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["offer", "settle"]


@numba.njit(cache=True)
def offer(
    products: np.ndarray, corner: tuple[int, int], norms: np.ndarray, bounds: np.ndarray, candidates: np.ndarray
) -> None:
    """Offer the rows of the tile that begins at a corner to its columns, and the columns to the rows, where j > i.

    `norms` are lower bounds of ‖x‖²/2. `bounds` (n, m) are the lowest bounds of ‖xᵢ − xⱼ‖²/2 so far, ascending, and
    `candidates` (n, m) the j whose they are.
    """
    (rows, columns), (row, column) = products.shape, corner
    last = bounds[:, -1].copy()  # side by side in memory
    for i in range(row, row + rows):
        for j in range(max(column, i + 1), column + columns):
            bound = norms[i] + norms[j] - products[i - row, j - column]
            if bound < last[i]:
                _insert(bounds[i], candidates[i], bound, j)
                last[i] = bounds[i, -1]
            if bound < last[j]:
                _insert(bounds[j], candidates[j], bound, i)
                last[j] = bounds[j, -1]


@numba.njit(cache=True)
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


@numba.njit(cache=True)
def _nearest(x: np.ndarray, i: int, ascending: np.ndarray, far: np.ndarray, near: np.ndarray) -> None:
    for j in ascending:
        distance = _squared_distance(x[i], x[j])
        if distance < far[-1] and j != i:  # not ≤: the earlier one stays
            _insert(far, near, distance, j)


@numba.njit(cache=True, fastmath=True)  # so that sums are made several at a time
def _squared_distance(one: np.ndarray, other: np.ndarray) -> float:
    total = 0.0
    for k in range(len(one)):
        total += (one[k] - other[k]) ** 2
    return total


@numba.njit(cache=True)
def _insert(values: np.ndarray, rows: np.ndarray, value: float, row: int) -> None:
    """Into its place in an ascending order, after its equals; the last one falls out."""
    place = len(values) - 1
    while place > 0 and values[place - 1] > value:
        values[place], rows[place] = values[place - 1], rows[place - 1]
        place -= 1
    values[place], rows[place] = value, row
