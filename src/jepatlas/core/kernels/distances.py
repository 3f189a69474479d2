"""Squared distances from inner products of rows, recomputed from the rows if cancellation would lose digits.

    ‖xᵢ − xⱼ‖² = ‖xᵢ‖² + ‖xⱼ‖² − 2xᵢ·xⱼ

is inaccurate if two rows lie much closer to each other than to the origin. Only for these the difference of the rows is
computed. The numpy equivalent is in `jepatlas.alignment.similarity.distance_structure`.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.kernels import compiled

__all__ = ["squared_distance", "squared_distances"]


@compiled(fastmath=True)  # allows vectorised sums
def squared_distance(one: np.ndarray, other: np.ndarray) -> float:
    """‖x − y‖² of two rows."""
    total = 0.0
    for k in range(len(one)):
        total += (one[k] - other[k]) ** 2
    return total


@compiled
def squared_distances(
    products: np.ndarray, corner: tuple[int, int], x: np.ndarray, norms: np.ndarray, limits: tuple[float, float]
) -> None:
    """Convert a tile of inner products, whose first entry is at `corner`, to squared distances in place.

    `limits` are (close, lowest). For j > i, distances below close · (‖xᵢ‖² + ‖xⱼ‖²) are recomputed from the rows; all
    are raised to at least `lowest`.
    """
    rows, columns = products.shape
    (row, column), (close, lowest) = corner, limits
    for i in range(row, row + rows):
        for j in range(column, column + columns):
            norm = norms[i] + norms[j]
            distance = norm - 2 * products[i - row, j - column]
            if distance < close * norm and j > i:
                distance = squared_distance(x[i], x[j])
            products[i - row, j - column] = max(distance, lowest)
