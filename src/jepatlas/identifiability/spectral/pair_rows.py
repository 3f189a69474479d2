"""Pairs (x, x') in batches, divided into parts to fit, select and score.

Every row has a fixed place u in [0, 1); rows of one group share it. Parts and bootstrap blocks are ranges of u.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.progress import track
from jepatlas.core.seeding import derive, numpy_generator
from jepatlas.identifiability.validation import as_arrays, check_matrices, check_same_shape, check_weights

__all__ = ["MIN_PAIRS", "SCORE", "SELECT", "PairRows", "SplitPairs"]

SELECT = 0.6
SCORE = 0.75
"""Places below SELECT are to fit, from there to SCORE to select kernel and ridge, and from SCORE on to score."""

BATCH = 4096  # features of so many rows fit in reusable memory, which is three times faster
MIN_PAIRS = 200  # with fewer pairs or groups a part could be empty, and intervals would mean nothing
MIN_GROUPS = 8


class PairRows(NamedTuple):
    """Some rows of pairs in float64, with their places, and weights if there are any."""

    x: np.ndarray
    x_next: np.ndarray
    place: np.ndarray
    weights: np.ndarray | None = None

    def within(self, low: float, high: float) -> PairRows:
        """The rows with places in [low, high)."""
        return self.rows((low <= self.place) & (self.place < high))

    def rows(self, kept: np.ndarray | slice) -> PairRows:
        weights = None if self.weights is None else self.weights[kept]
        return PairRows(self.x[kept], self.x_next[kept], self.place[kept], weights)

    def batches(self) -> Iterator[PairRows]:
        for number in track("spectrum", -(-len(self.x) // BATCH)):
            yield self.rows(slice(number * BATCH, (number + 1) * BATCH))


class SplitPairs:
    """Validated pairs (b, p), iterated in batches of rows with places in [0, below).

    >>> x = np.random.default_rng(0).standard_normal((1000, 2))
    >>> pairs = SplitPairs(x, x)
    >>> pairs.count, pairs.width, sum(len(rows.within(0, 0.5).x) for rows in pairs) > 400
    (1000, 2, True)
    """

    def __init__(
        self,
        x: np.ndarray,
        x_next: np.ndarray,
        *,
        groups: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        seed: int = 0,
        below: float = 1.0,
    ) -> None:
        x, x_next, groups, weights = as_arrays(x=x, x_next=x_next, groups=groups, weights=weights)
        check_matrices(groups, x=x, x_next=x_next)
        check_same_shape(x=x, x_next=x_next)
        self.count, self.width = x.shape
        self.below = below
        self._salt = derive(seed, "spectrum/places")
        if self.count < MIN_PAIRS:
            raise InputError(f"A spectrum needs at least {MIN_PAIRS} pairs, but {self.count} were given.")
        if weights is not None:
            _check_effective_count(weights, self.count)
        if groups is None:
            place = _hash_uniform(np.arange(self.count, dtype=np.uint64), self._salt)
        else:
            place = _group_places(groups, seed)
        self._all = PairRows(x.astype(np.float64), x_next.astype(np.float64), place * below, weights)

    def __iter__(self) -> Iterator[PairRows]:
        return self._all.batches()

    def sample(self, pairs: int, low: float, high: float) -> PairRows:
        """About `pairs` random rows with places in [low, high)."""
        share = pairs * self.below / ((min(high, self.below) - low) * self.count)
        draw = _hash_uniform(np.arange(self.count, dtype=np.uint64), self._salt + 1)
        place = self._all.place
        return self._all.rows((draw < share) & (low <= place) & (place < high))


def _check_effective_count(weights: np.ndarray, count: int) -> None:
    check_weights(weights, count)
    squares = float(np.square(weights).sum())
    effective = float(weights.sum()) ** 2 / max(squares, np.finfo(float).tiny)
    if squares == 0 or effective < MIN_PAIRS:
        raise InputError(
            f"A spectrum needs at least {MIN_PAIRS} pairs, but with these weights the effective number of the {count} "
            f"pairs, (Σw)²/Σw², is {effective:.0f}. Use more even weights, or more pairs."
        )


def _group_places(groups: np.ndarray, seed: int) -> np.ndarray:
    """One place for each group, in random order."""
    labels, index = np.unique(groups, return_inverse=True)
    if len(labels) < MIN_GROUPS:
        raise InputError(f"A spectrum needs at least {MIN_GROUPS} groups, but there are {len(labels)}.")
    ranks = numpy_generator(seed, "spectrum/groups").permutation(len(labels))
    return ((ranks + 0.5) / len(labels))[index]


def _hash_uniform(index: np.ndarray, salt: int) -> np.ndarray:
    """A uniform number in [0, 1) that depends on the index and the salt alone (splitmix64)."""
    state = (index + np.uint64(salt % 2**63)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return ((state ^ (state >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2**53
