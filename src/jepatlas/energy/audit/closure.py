"""The closure of a matrix of energies: the least that any way through the sampled states costs (Floyd and Warshall).

    D(x, z) = min over x = y_0, y_1, …, y_k = z of Σ E(y_{i−1}, y_i)

It is the largest quasimetric that is nowhere above E, and E itself where E is one already.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["best_detours", "closure"]


def closure(energies: np.ndarray) -> np.ndarray:
    """The closure of energies (n, n): zero from a state to itself, and nothing negative.

    scipy's would take an energy of zero in a dense matrix for a missing edge.

    >>> closure(np.array([[0, 1, 5], [1, 0, 1], [np.inf, 1, 0]]))
    array([[0., 1., 2.],
           [1., 0., 1.],
           [2., 1., 0.]])
    """
    ways = np.maximum(energies, 0.0).astype(np.float64)
    np.fill_diagonal(ways, 0.0)
    _relax(ways)
    return ways


@numba.njit(cache=True)
def _relax(ways: np.ndarray) -> None:
    n = len(ways)
    for via in range(n):
        for row in range(n):
            first = ways[row, via]
            if first < np.inf:
                for column in range(n):
                    ways[row, column] = min(ways[row, column], first + ways[via, column])


@numba.njit(cache=True)
def best_detours(energies: np.ndarray) -> np.ndarray:
    """For each pair the third state by way of which it is cheapest; −1 where there is none at a finite energy."""
    n = len(energies)
    via = np.full((n, n), -1)
    for row in range(n):
        least = np.full(n, np.inf)
        for between in range(n):
            first = energies[row, between]
            if between != row and first < np.inf:
                for column in range(n):
                    detour = first + energies[between, column]
                    if detour < least[column] and column != between:
                        least[column], via[row, column] = detour, between
    return via
