"""Squared distances from products of rows, and from the rows themselves where products cannot tell.

    ‖xᵢ − xⱼ‖² = ‖xᵢ‖² + ‖xⱼ‖² − 2xᵢ·xⱼ

loses digits where rows lie much closer to each other than to the origin: in far clusters, and beside an outlier. Only
there is the difference of rows taken. The plain twin is in `jepatlas.alignment.similarity.distance_structure`.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["squared_distances"]


@numba.njit(cache=True)
def squared_distances(
    products: np.ndarray, corner: tuple[int, int], x: np.ndarray, norms: np.ndarray, limits: tuple[float, float]
) -> None:
    """Turn the tile of products that begins at a corner into squared distances, none below the second limit.

    What is below the share of ‖xᵢ‖² + ‖xⱼ‖² that is the first limit is taken from the difference of rows, where j > i.
    """
    rows, columns = products.shape
    (row, column), (close, lowest) = corner, limits
    for i in range(row, row + rows):
        for j in range(column, column + columns):
            norm = norms[i] + norms[j]
            distance = norm - 2 * products[i - row, j - column]
            if distance < close * norm and j > i:
                distance = _squared_distance(x[i], x[j])
            products[i - row, j - column] = max(distance, lowest)


@numba.njit(cache=True, fastmath=True)  # so that sums are made several at a time
def _squared_distance(one: np.ndarray, other: np.ndarray) -> float:
    total = 0.0
    for k in range(len(one)):
        total += (one[k] - other[k]) ** 2
    return total
