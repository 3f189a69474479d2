"""Counts of numbers in buckets by size, and sums of products of ranks, without sorting or storing the numbers.

Non-negative float64 numbers are ordered like their bits read as integers. The difference x of these bits to an origin
gives a cell (the bits of x from `width` on) and a bucket within it (some of the lower bits),
`buckets[offset + (low >> shift)]`, with an offset and a shift for each cell. The numpy equivalent is in
`jepatlas.alignment.similarity.distance_structure`.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.kernels import compiled

__all__ = ["Buckets", "add_counts", "rank_product"]

Buckets = tuple[int, int, np.ndarray, np.ndarray, np.ndarray]
"""Width, origin, offsets and shifts of cells, and a count or rank for each bucket."""


@compiled
def add_counts(bits: np.ndarray, diagonal: int, buckets: Buckets) -> None:
    """Count every entry of a tile from the given diagonal on."""
    rows, columns = bits.shape
    counts = buckets[-1]
    for row in range(rows):
        for column in range(max(0, row + diagonal), columns):
            counts[_bucket(bits[row, column], buckets)] += 1


@compiled
def rank_product(bits_a: np.ndarray, bits_b: np.ndarray, diagonal: int, a: Buckets, b: Buckets) -> float:
    """Σ rank_a · rank_b over the entries of two tiles from the given diagonal on."""
    rows, columns = bits_a.shape
    total = 0.0
    for row in range(rows):
        partial = 0.0
        for column in range(max(0, row + diagonal), columns):
            partial += a[-1][_bucket(bits_a[row, column], a)] * b[-1][_bucket(bits_b[row, column], b)]
        total += partial
    return float(total)


@compiled(inline="always")
def _bucket(bits: int, buckets: Buckets) -> int:
    width, origin, offsets, shifts, _ = buckets
    beyond = bits - origin
    cell = beyond >> width
    return offsets[cell] + ((beyond & ((1 << width) - 1)) >> shifts[cell])
