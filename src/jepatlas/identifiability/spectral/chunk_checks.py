"""What a chunk of pairs is, and what is refused in one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jepatlas.core.arrays import check_finite, check_rows
from jepatlas.core.errors import InputError

__all__ = ["Chunk", "Chunks", "check_weights", "checked", "survey"]

FEWEST_PAIRS = 200  # below this a part could be empty, and no interval would mean anything


class Chunk(NamedTuple):
    """Rows (b, p) and their partners (b, p), with one label a row; without labels each row is a group of its own.

    Weights (b,) say how often a pair counts; without them, each counts once.
    """

    x: np.ndarray
    x_next: np.ndarray
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None


Chunks = Iterable[
    tuple[np.ndarray, np.ndarray]
    | tuple[np.ndarray, np.ndarray, np.ndarray | None]
    | tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]
]


def checked(chunks: Chunks) -> Iterator[Chunk]:
    width = None
    for given in chunks:
        if len(given) not in (2, 3, 4):
            raise InputError(f"A chunk is (x, x_next[, groups[, weights]]), but one has {len(given)} parts.")
        x, x_next, *rest = given
        chunk = Chunk(x, x_next, *rest)  # pyright: ignore[reportArgumentType]
        named = {"x": chunk.x, "x_next": chunk.x_next}
        for name, array in named.items():
            if array.ndim != 2 or array.shape[1] == 0:
                raise InputError(f"'{name}' must have rows and columns, but its shape is {array.shape}.")
        check_rows(named | ({} if chunk.groups is None else {"groups": chunk.groups}))
        if chunk.groups is not None and chunk.groups.ndim != 1:
            raise InputError(f"'groups' must hold one label a row, but its shape is {chunk.groups.shape}.")
        if chunk.weights is not None:
            check_weights(chunk.weights, len(chunk.x))
        for name, array in named.items():
            check_finite(name, array)
        width = width or chunk.x.shape[1]
        if not width == chunk.x.shape[1] == chunk.x_next.shape[1]:
            raise InputError(
                f"x and x_next must have the same width in every chunk, but {chunk.x.shape[1]} and "
                f"{chunk.x_next.shape[1]} columns were given where {width} were expected."
            )
        yield chunk


def check_weights(weights: np.ndarray, rows: int) -> None:
    """One finite number a row, none of them negative."""
    if weights.shape != (rows,):
        raise InputError(f"'weights' must hold one number a row, but its shape is {weights.shape} for {rows} rows.")
    check_finite("weights", weights)
    if (weights < 0).any():
        raise InputError(f"'weights' must not be negative, but {int((weights < 0).sum())} of them are.")


def survey(chunks: Iterable[Chunk]) -> tuple[int, int, set[Any] | None]:
    """Number of pairs, width, and all labels."""
    count, width, labels, labelled, weighed, sums = 0, 0, set(), set(), set(), np.zeros(2)
    for chunk in chunks:
        count, width = count + len(chunk.x), chunk.x.shape[1]
        labelled.add(chunk.groups is not None)
        weighed.add(chunk.weights is not None)
        labels |= set() if chunk.groups is None else set(np.unique(chunk.groups).tolist())
        sums += len(chunk.x) if chunk.weights is None else (chunk.weights.sum(), np.square(chunk.weights).sum())
    if count < FEWEST_PAIRS:
        raise InputError(f"A spectrum needs at least {FEWEST_PAIRS} pairs, but {count} were given.")
    if len(labelled) > 1:
        raise InputError("Some chunks have groups and some have none. Label all of them, or none.")
    if len(weighed) > 1:
        raise InputError("Some chunks have weights and some have none. Weigh all of them, or none.")
    if sums[0] ** 2 < FEWEST_PAIRS * sums[1] or sums[1] == 0:
        effective = sums[0] ** 2 / max(sums[1], np.finfo(float).tiny)
        raise InputError(
            f"A spectrum needs at least {FEWEST_PAIRS} pairs, but with these weights the {count} pairs are worth "
            f"{effective:.0f}, (Σw)²/Σw². Weigh more evenly, or give more pairs."
        )
    return count, width, labels if True in labelled else None
