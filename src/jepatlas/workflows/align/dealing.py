"""Groups of rows are dealt to parts class by class, so that every class is in each part.

The rows of a group (an object, an episode) stay together, and it counts for the label that most of them have. Dealt
without a look at the labels, a part of few objects may lack whole classes of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["deal_groups"]


def deal_groups(
    groups: np.ndarray,
    labels: np.ndarray,
    shares: Sequence[float],
    rng: np.random.Generator,
    *,
    first: int | None = None,
) -> np.ndarray:
    """The part of each row. A class goes to every part once, to `first` before the others; then as the shares say.

    What a part has too much or too little by one class, the next ones make up for, and these are the larger ones.

    >>> cups = np.repeat(["cup", "car"], 6)
    >>> deal_groups(np.arange(12) // 2, cups, [0.5, 0.25, 0.25], np.random.default_rng(0))
    array([1, 1, 2, 2, 0, 0, 0, 0, 2, 2, 1, 1])
    """
    number = np.unique(groups, return_inverse=True)[1]
    kinds = _commonest(number, np.unique(labels, return_inverse=True)[1])
    part, owed = np.empty(len(kinds), int), np.zeros(len(shares))
    for own in _classes(kinds, rng):
        owed += np.multiply(shares, len(own))
        lacking = list(range(len(shares)))
        for one in own:
            among = lacking or range(len(shares))
            to = first if first in lacking else max(among, key=owed.__getitem__)
            part[one] = to
            owed[to] -= 1
            lacking = [other for other in lacking if other != to]
    return _none_empty(part, len(shares))[number]


def _commonest(number: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """The most frequent kind of each group; of two that are as frequent, the lower one."""
    width = kind.max() + 1
    pairs, counts = np.unique(number * width + kind, return_counts=True)
    order = np.lexsort((pairs, -counts, pairs // width))
    return (pairs % width)[order][np.unique(pairs[order] // width, return_index=True)[1]]


def _classes(kinds: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """The groups of each class, shuffled; the class with the fewest of them first."""
    order = rng.permutation(len(kinds))
    order = order[np.argsort(kinds[order], kind="stable")]
    found = np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1)
    return sorted((found[index] for index in rng.permutation(len(found))), key=len)


def _none_empty(part: np.ndarray, parts: int) -> np.ndarray:
    """Where every class has a single group, or nearly so, a part may have got none: the fullest gives it one."""
    for empty in np.setdiff1d(np.arange(parts), part):
        part[np.flatnonzero(part == np.bincount(part).argmax())[-1]] = empty
    return part
