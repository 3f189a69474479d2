"""Pairs in chunks, as often as asked for: so that a spectrum of any number of pairs fits in memory.

Every row gets a fixed place u in [0, 1): rows of one group share it. Parts (to fit, to select, to score) and the blocks
of the bootstrap are ranges of u, so they do not depend on how the rows were cut into chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from jepatlas.core.arrays import check_rows
from jepatlas.core.errors import InputError
from jepatlas.core.seeding import derive, numpy_generator
from jepatlas.identifiability.checks import as_arrays
from jepatlas.identifiability.spectral.chunk_checks import Chunk, Chunks, checked, survey

__all__ = ["ROWS", "Chunk", "Chunks", "PairArrays", "PairChunks", "Places"]

ROWS = 4096  # features of so many rows are small enough for the allocator to use their memory again: three times faster
FEWEST_GROUPS = 8  # below this a part could be empty, and no interval would mean anything


class PairArrays:
    """Whole arrays as chunks."""

    def __init__(
        self,
        x: np.ndarray,
        x_next: np.ndarray,
        groups: np.ndarray | None = None,
        rows: int = ROWS,
        weights: np.ndarray | None = None,
    ) -> None:
        names = ("x", "x_next", "groups", "weights")
        arrays = as_arrays(x=x, x_next=x_next, groups=groups, weights=weights)
        self.given = {name: array for name, array in zip(names, arrays, strict=True) if array is not None}
        self.rows = rows

    def __iter__(self) -> Iterator[Chunk]:
        check_rows(self.given)
        for start in range(0, len(self.given["x"]), self.rows):
            yield Chunk(**{name: array[start : start + self.rows] for name, array in self.given.items()})


class Places(NamedTuple):
    """Rows as the solver takes them: float64, each with its place u, and its weight where there are any."""

    x: np.ndarray
    x_next: np.ndarray
    place: np.ndarray
    weights: np.ndarray | None = None

    def within(self, low: float, high: float) -> Places:
        return self.rows((low <= self.place) & (self.place < high))

    def rows(self, kept: np.ndarray | slice) -> Places:
        weights = None if self.weights is None else self.weights[kept]
        return Places(self.x[kept], self.x_next[kept], self.place[kept], weights)

    def cut(self) -> list[Places]:
        return [self.rows(slice(start, start + ROWS)) for start in range(0, len(self.x), ROWS)]

    @classmethod
    def joined(cls, parts: Sequence[Places]) -> Places:
        weights = [part.weights for part in parts if part.weights is not None]
        columns = ([part.x for part in parts], [part.x_next for part in parts], [part.place for part in parts])
        x, x_next, place = map(np.concatenate, columns)
        return cls(x, x_next, place, np.concatenate(weights) if weights else None)


class PairChunks:
    """Checked chunks with their places, in [0, below).

    `chunks` is gone through several times: give a list, or an object whose `__iter__` starts anew.

    >>> x = np.random.default_rng(0).standard_normal((1000, 2))
    >>> pairs = PairChunks(PairArrays(x, x, rows=300))
    >>> pairs.count, pairs.width, sum(len(rows.within(0, 0.5).x) for rows in pairs) > 400
    (1000, 2, True)
    """

    def __init__(self, chunks: Chunks, seed: int = 0, below: float = 1.0) -> None:
        if iter(chunks) is chunks:
            raise InputError(
                "The chunks can be read only once, but the solver goes through them several times. "
                "Give a list, or an object whose __iter__ starts anew."
            )
        self.chunks, self.salt, self.below = chunks, derive(seed, "spectrum/places"), below
        self.count, self.width, labels = survey(checked(chunks))
        self.labels = None if labels is None else np.array(sorted(labels))
        if self.labels is not None:
            if len(labels or ()) < FEWEST_GROUPS:
                raise InputError(f"At least {FEWEST_GROUPS} groups are needed, but there are {len(self.labels)}.")
            ranks = numpy_generator(seed, "spectrum/groups").permutation(len(self.labels))
            self.ranks = (ranks + 0.5) / len(self.labels)

    def __iter__(self) -> Iterator[Places]:
        start = 0
        for x, x_next, groups, weights in checked(self.chunks):
            if self.labels is None or groups is None:
                place = _uniform(np.arange(start, start + len(x), dtype=np.uint64), self.salt)
            else:
                place = self.ranks[np.searchsorted(self.labels, groups)]
            weighed = None if weights is None else weights.astype(np.float64)
            yield Places(x.astype(np.float64), x_next.astype(np.float64), place * self.below, weighed)
            start += len(x)

    def sample(self, pairs: int, low: float, high: float) -> Places:
        """About so many of the rows with places in [low, high), whatever their order in the chunks."""
        share, start, drawn = pairs * self.below / ((min(high, self.below) - low) * self.count), 0, []
        for rows in self:
            luck = _uniform(np.arange(start, start + len(rows.x), dtype=np.uint64), self.salt + 1)
            kept = (luck < share) & (low <= rows.place) & (rows.place < high)
            drawn.append(rows.rows(kept))
            start += len(rows.x)
        return Places.joined(drawn)


def _uniform(index: np.ndarray, salt: int) -> np.ndarray:
    """A fixed uniform number for each index: splitmix64, because a permutation of all rows would not fit in memory."""
    state = (index + np.uint64(salt % 2**63)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return ((state ^ (state >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2**53
