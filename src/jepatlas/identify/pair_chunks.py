"""Pairs in chunks, as often as asked for: so that a spectrum of any number of pairs fits in memory.

Every row gets a fixed place u in [0, 1): rows of one group share it. Parts (to fit, to select, to score) and the blocks
of the bootstrap are ranges of u, so they do not depend on how the rows were cut into chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jepatlas.base.arrays import check_finite, check_rows
from jepatlas.base.errors import InputError
from jepatlas.base.seeding import derive, numpy_generator

__all__ = ["ROWS", "Chunk", "Chunks", "PairArrays", "PairChunks", "Places"]

ROWS = 4096  # features of so many rows are small enough for the allocator to use their memory again: three times faster
FEWEST_PAIRS, FEWEST_GROUPS = 200, 8  # below these a part could be empty, and no interval would mean anything


class Chunk(NamedTuple):
    """Rows (b, p) and their partners (b, p), with one label a row; without labels each row is a group of its own."""

    x: np.ndarray
    x_next: np.ndarray
    groups: np.ndarray | None = None


Chunks = Iterable[tuple[np.ndarray, np.ndarray] | tuple[np.ndarray, np.ndarray, np.ndarray | None]]


class PairArrays:
    """Whole arrays as chunks."""

    def __init__(self, x: np.ndarray, x_next: np.ndarray, groups: np.ndarray | None = None, rows: int = ROWS) -> None:
        self.given = {"x": x, "x_next": x_next} | ({} if groups is None else {"groups": groups})
        self.rows = rows

    def __iter__(self) -> Iterator[Chunk]:
        check_rows(self.given)
        for start in range(0, len(self.given["x"]), self.rows):
            yield Chunk(**{name: array[start : start + self.rows] for name, array in self.given.items()})


class Places(NamedTuple):
    """Rows as the solver takes them: float64, each with its place u."""

    x: np.ndarray
    x_next: np.ndarray
    place: np.ndarray

    def within(self, low: float, high: float) -> Places:
        kept = (low <= self.place) & (self.place < high)
        return Places(*(array[kept] for array in self))

    def cut(self) -> list[Places]:
        starts = range(0, len(self.x), ROWS)
        return [Places(*(array[start : start + ROWS] for array in self)) for start in starts]


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
        self.count, self.width, labels = _survey(_checked(chunks))
        self.labels = None if labels is None else np.array(sorted(labels))
        if self.labels is not None:
            if len(labels or ()) < FEWEST_GROUPS:
                raise InputError(f"At least {FEWEST_GROUPS} groups are needed, but there are {len(self.labels)}.")
            ranks = numpy_generator(seed, "spectrum/groups").permutation(len(self.labels))
            self.ranks = (ranks + 0.5) / len(self.labels)

    def __iter__(self) -> Iterator[Places]:
        start = 0
        for x, x_next, groups in _checked(self.chunks):
            if self.labels is None or groups is None:
                place = _uniform(np.arange(start, start + len(x), dtype=np.uint64), self.salt)
            else:
                place = self.ranks[np.searchsorted(self.labels, groups)]
            yield Places(x.astype(np.float64), x_next.astype(np.float64), place * self.below)
            start += len(x)

    def sample(self, pairs: int, low: float, high: float) -> Places:
        """About so many of the rows with places in [low, high), whatever their order in the chunks."""
        share, start, drawn = pairs * self.below / ((min(high, self.below) - low) * self.count), 0, []
        for rows in self:
            luck = _uniform(np.arange(start, start + len(rows.x), dtype=np.uint64), self.salt + 1)
            kept = (luck < share) & (low <= rows.place) & (rows.place < high)
            drawn.append([array[kept] for array in rows])
            start += len(rows.x)
        return Places(*(np.concatenate(arrays) for arrays in zip(*drawn, strict=True)))


def _checked(chunks: Chunks) -> Iterator[Chunk]:
    width = None
    for given in chunks:
        if len(given) not in (2, 3):
            raise InputError(f"A chunk is (x, x_next) or (x, x_next, groups), but one has {len(given)} parts.")
        chunk = Chunk(given[0], given[1], given[2] if len(given) == 3 else None)
        named = {"x": chunk.x, "x_next": chunk.x_next}
        for name, array in named.items():
            if array.ndim != 2 or array.shape[1] == 0:
                raise InputError(f"'{name}' must have rows and columns, but its shape is {array.shape}.")
        check_rows(named | ({} if chunk.groups is None else {"groups": chunk.groups}))
        if chunk.groups is not None and chunk.groups.ndim != 1:
            raise InputError(f"'groups' must hold one label a row, but its shape is {chunk.groups.shape}.")
        for name, array in named.items():
            check_finite(name, array)
        width = width or chunk.x.shape[1]
        if not width == chunk.x.shape[1] == chunk.x_next.shape[1]:
            raise InputError(
                f"x and x_next must have the same width in every chunk, but {chunk.x.shape[1]} and "
                f"{chunk.x_next.shape[1]} columns were given where {width} were expected."
            )
        yield chunk


def _survey(chunks: Iterable[Chunk]) -> tuple[int, int, set[Any] | None]:
    """Number of pairs, width, and all labels."""
    count, width, labels, labelled = 0, 0, set(), set()
    for chunk in chunks:
        count, width = count + len(chunk.x), chunk.x.shape[1]
        labelled.add(chunk.groups is not None)
        labels |= set() if chunk.groups is None else set(np.unique(chunk.groups).tolist())
    if count < FEWEST_PAIRS:
        raise InputError(f"A spectrum needs at least {FEWEST_PAIRS} pairs, but {count} were given.")
    if len(labelled) > 1:
        raise InputError("Some chunks have groups and some have none. Label all of them, or none.")
    return count, width, labels if True in labelled else None


def _uniform(index: np.ndarray, salt: int) -> np.ndarray:
    """A fixed uniform number for each index: splitmix64, because a permutation of all rows would not fit in memory."""
    state = (index + np.uint64(salt % 2**63)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return ((state ^ (state >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2**53
