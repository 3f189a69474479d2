"""Shortest ways between sampled states, compiled: all of them, and the best by way of one other state."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["best_detours", "relax"]


@numba.njit(cache=True)
def relax(ways: np.ndarray) -> None:
    """Floyd and Warshall, in place."""
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
