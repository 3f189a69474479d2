"""Counting numbers by size, and multiplying their ranks, without ever sorting or storing them.

A non-negative float64 is ordered as its bits are, read as an integer. Its distance x from an origin names a cell (the
bits of x from `width` on) and, within it, a bucket (some of the bits below), `buckets[offset + (low >> shift)]`, with
an offset and a shift for each cell. The plain twin is in `jepatlas.alignment.similarity.distance_structure`.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["Buckets", "add_counts", "rank_product"]

Buckets = tuple[int, int, np.ndarray, np.ndarray, np.ndarray]
"""Width, origin, the offsets and the shifts of cells, and a count or rank for each bucket."""


@numba.njit(cache=True)
def add_counts(bits: np.ndarray, diagonal: int, buckets: Buckets) -> None:
    """Count every entry of a tile from the given diagonal on."""
    rows, columns = bits.shape
    counts = buckets[-1]
    for row in range(rows):
        for column in range(max(0, row + diagonal), columns):
            counts[_bucket(bits[row, column], buckets)] += 1


@numba.njit(cache=True)
def rank_product(bits_a: np.ndarray, bits_b: np.ndarray, diagonal: int, a: Buckets, b: Buckets) -> float:
    """Σ rank_a · rank_b over the entries of two tiles from the given diagonal on."""
    rows, columns = bits_a.shape
    total = 0.0
    for row in range(rows):
        partial = 0.0
        for column in range(max(0, row + diagonal), columns):
            partial += a[-1][_bucket(bits_a[row, column], a)] * b[-1][_bucket(bits_b[row, column], b)]
        total += partial
    return total


@numba.njit(cache=True, inline="always")
def _bucket(bits: int, buckets: Buckets) -> int:
    width, origin, offsets, shifts, _ = buckets
    beyond = bits - origin
    cell = beyond >> width
    return offsets[cell] + ((beyond & ((1 << width) - 1)) >> shifts[cell])
