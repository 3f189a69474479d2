"""One long trajectory, row after row: pairs that overlap are not independent, so they go together in blocks of time.

Rows are consecutive where h'_i = h_{i+1}. With r the largest correlation of a coordinate over one step, a mean of n
rows is worth that of n/τ independent ones,

    τ = (1 + r)/(1 − r)        blocks of 5 τ rows

so that what neighbouring blocks share is small beside what they do not. Breaks between episodes start a new block.
"""

from __future__ import annotations

import math

import numpy as np

from jepatlas.identifiability.checks import as_arrays, check_matrices, check_same_shape

__all__ = ["time_blocks"]

LINKED = 0.5  # share of rows that must be followed by their successor, beyond those that are so by chance
SAME = 1e-5  # of a coordinate's spread: one state encoded in two batches may differ by rounding
TIMES, FEWEST = 5, 10  # correlation times in a block; blocks, at least


def time_blocks(h: np.ndarray, h_next: np.ndarray) -> np.ndarray | None:
    """A label for each row, to be given as `groups`; None where rows are not consecutive.

    >>> walk = np.random.default_rng(0).standard_normal((101, 2))
    >>> int(time_blocks(walk[:-1], walk[1:]).max()) + 1
    17
    >>> time_blocks(walk[:-1], walk[:0:-1]) is None
    True
    """
    h, h_next = as_arrays(h=h, h_next=h_next)
    check_matrices(h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    follows = _same(h_next[:-1], h[1:])
    by_chance = _same(h_next, np.roll(h, len(h) // 2, axis=0)).mean()
    if not follows.mean() - by_chance > LINKED:
        return None
    first = np.flatnonzero(np.concatenate([[True], ~follows]))  # of each unbroken stretch
    stretch = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(h))))
    block = (np.arange(len(h)) - first[stretch]) // min(_length(h, h_next), max(len(h) // FEWEST, 1))
    return np.unique(np.stack([stretch, block]), axis=1, return_inverse=True)[1].ravel()


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Which rows are the same, but for rounding."""
    return (np.abs(a - b) <= SAME * a.std(0)).all(1)


def _length(h: np.ndarray, h_next: np.ndarray) -> int:
    """Of a block, in rows."""
    a, b = (part - part.mean(0) for part in (h.astype(np.float64), h_next.astype(np.float64)))
    spread = a.std(0) * b.std(0)
    slowest = float(np.max(np.where(spread > 0, (a * b).mean(0) / np.where(spread > 0, spread, 1), 0)))
    slowest = min(max(slowest, 0.0), 1 - 1 / len(h))
    return math.ceil(TIMES * (1 + slowest) / (1 - slowest))
