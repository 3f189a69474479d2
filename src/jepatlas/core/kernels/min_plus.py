"""The min-plus product of a matrix with itself: the cheapest path of two legs between all pairs.

    D(x, z) = min_y E(x, y) + E(y, z)

Rows are processed in blocks and columns in tiles, so that a tile of E serves several rows from the cache. 2,000 states
take 8·10⁹ sums.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.kernels import compiled

__all__ = ["min_plus_square"]

ROWS, COLUMNS = 8, 512


@compiled
def min_plus_square(energies: np.ndarray) -> np.ndarray:
    """D (n, n) of contiguous energies (n, n), in their own precision."""
    n = len(energies)
    found = np.full((n, n), np.inf, energies.dtype)
    for first in range(0, n, ROWS):
        last = min(first + ROWS, n)
        for left in range(0, n, COLUMNS):
            right = min(left + COLUMNS, n)
            for middle in range(n):
                second = energies[middle, left:right]
                for row in range(first, last):
                    _lower(found[row, left:right], energies[row, middle], second)
    return found


@compiled(inline="always")
def _lower(found: np.ndarray, leg: float, second: np.ndarray) -> None:
    """found ← min(found, leg + second)."""
    for column in range(len(found)):
        found[column] = min(found[column], leg + second[column])
