"""The recursion of the edit distance, compiled: one row of the table at a time. Its plain twin is in the tests."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["all_edits"]


@numba.njit(cache=True)
def all_edits(x: np.ndarray, x_first: np.ndarray, y: np.ndarray, y_first: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Words end to end, word i from first[i] to first[i + 1]; cost over symbols, and last the empty one."""
    m, n = len(x_first) - 1, len(y_first) - 1
    found = np.empty((m, n))
    for i in range(m):
        for j in range(n):
            found[i, j] = _edits(x[x_first[i] : x_first[i + 1]], y[y_first[j] : y_first[j + 1]], cost)
    return found


@numba.njit(cache=True)
def _edits(x: np.ndarray, y: np.ndarray, cost: np.ndarray) -> float:
    empty = len(cost) - 1
    row = np.zeros(len(y) + 1)
    for j in range(len(y)):
        row[j + 1] = row[j] + cost[empty, y[j]]
    for a in x:
        corner = row[0]
        row[0] += cost[a, empty]
        for j in range(len(y)):
            b = y[j]
            above = row[j + 1]
            row[j + 1] = min(above + cost[a, empty], row[j] + cost[empty, b], corner + cost[a, b])
            corner = above
    return row[-1]
