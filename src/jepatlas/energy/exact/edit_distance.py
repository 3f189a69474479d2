"""Edit distance with unequal costs: the least total cost of insertions, deletions and substitutions from x to y.

    D[i, j] = min(D[i−1, j] + delete(xᵢ), D[i, j−1] + insert(yⱼ), D[i−1, j−1] + substitute(xᵢ, yⱼ))

The recursion edits each symbol once. With the empty symbol ε, delete(a) = w(a, ε) and insert(b) = w(ε, b), it gives the
least cost of any sequence of edits, and so a quasimetric, if w(a, c) ≤ w(a, b) + w(b, c) for all symbols and ε. Costs
are therefore replaced by their shortest-path closure first. A substitution dearer than a deletion and an insertion is
no exception, since the recursion takes the cheaper. With costs of 0, different sequences may be at distance 0; a cost
of +∞ forbids an edit.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.kernels import compiled

__all__ = ["EditCosts", "edit_energies", "edit_energy"]

Word = Sequence[Hashable]


@dataclass(frozen=True)
class EditCosts:
    """The costs of edits: one number for all symbols, or an array over the symbols of an alphabet.

    >>> EditCosts(insert=2.0, delete=1.0, substitute=5.0).is_closed
    True
    """

    insert: float | np.ndarray = 1.0  # () or (a,)
    delete: float | np.ndarray = 1.0  # () or (a,)
    substitute: float | np.ndarray = 1.0  # () or (a, a), from row to column
    alphabet: Word | None = None
    """The symbols that arrays refer to, in order; required if a cost is an array."""

    def __post_init__(self) -> None:
        size = None if self.alphabet is None else len(self.alphabet)
        if size is not None and len(set(self.alphabet or ())) < size:
            raise InputError("alphabet must not contain a symbol twice.")
        for name, rank in (("insert", 1), ("delete", 1), ("substitute", 2)):
            cost = np.asarray(getattr(self, name), dtype=np.float64)
            if cost.ndim and size is None:
                raise InputError(f"{name} is an array, so alphabet must name its symbols.")
            if cost.ndim and cost.shape != (size,) * rank:
                raise InputError(f"{name} must have shape {(size,) * rank} for {size} symbols, not {cost.shape}.")
            if not (cost >= 0).all():
                raise InputError(f"{name} must be at least 0, or +∞ to forbid the edit, but it is negative or NaN.")

    @property
    def is_closed(self) -> bool:
        """Whether the costs equal their closure, so that the recursion is exact without it."""
        table = self.table(2 if self.alphabet is None else len(self.alphabet))
        replacement = table[:-1, -1:] + table[-1:, :-1]  # a deletion and an insertion, which the recursion includes
        table[:-1, :-1] = np.minimum(table[:-1, :-1], replacement)
        return bool(np.allclose(_closure(table), table, rtol=1e-12, atol=0))

    def table(self, size: int) -> np.ndarray:
        """w over the symbols and, last, ε: (size + 1, size + 1), with zeros on the diagonal."""
        table = np.empty((size + 1, size + 1))
        table[:-1, :-1] = self.substitute
        table[:-1, -1] = self.delete
        table[-1, :-1] = self.insert
        np.fill_diagonal(table, 0.0)
        return table


def edit_energy(start: Word, end: Word, costs: EditCosts | None = None) -> float:
    """The least cost of edits that turn one sequence into another.

    >>> edit_energy("cat", "at"), edit_energy("at", "cat", EditCosts(insert=3.0))
    (1.0, 3.0)
    """
    return float(edit_energies([start], [end], costs)[0, 0])


def edit_energies(
    start: Sequence[Word], end: Sequence[Word] | None = None, costs: EditCosts | None = None
) -> np.ndarray:
    """The energies from each start to each end, (m, n). `end` defaults to `start`; sequences are strings or lists."""
    costs = costs or EditCosts()
    end = start if end is None else end
    symbols = costs.alphabet
    if symbols is None:
        symbols = list(dict.fromkeys(symbol for word in (*start, *end) for symbol in word))
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    table = _closure(costs.table(len(numbers)))
    return _edit_distances(*_concatenated(start, numbers), *_concatenated(end, numbers), table)


def _concatenated(words: Sequence[Word], numbers: dict[Hashable, int]) -> tuple[np.ndarray, np.ndarray]:
    """The symbols of all words as numbers, and the offset of each word."""
    try:
        joined = [numbers[symbol] for word in words for symbol in word]
    except KeyError as error:
        raise InputError(f"The symbol {error.args[0]!r} is not in the alphabet of the costs.") from error
    return np.array(joined, dtype=np.int64), np.cumsum([0, *map(len, words)])


def _closure(table: np.ndarray) -> np.ndarray:
    """The cheapest cost between every two symbols, by the Floyd-Warshall algorithm."""
    closed = table.copy()
    for between in range(len(closed)):
        closed = np.minimum(closed, closed[:, between, None] + closed[None, between])
    return closed


@compiled
def _edit_distances(
    x: np.ndarray, x_first: np.ndarray, y: np.ndarray, y_first: np.ndarray, cost: np.ndarray
) -> np.ndarray:
    """All pairs of words; word i is x[x_first[i] : x_first[i + 1]], and the last row of `cost` is ε."""
    m, n = len(x_first) - 1, len(y_first) - 1
    distances = np.empty((m, n))
    for i in range(m):
        for j in range(n):
            word, other = x[x_first[i] : x_first[i + 1]], y[y_first[j] : y_first[j + 1]]
            distances[i, j] = _edit_distance(word, other, cost)
    return distances


@compiled
def _edit_distance(x: np.ndarray, y: np.ndarray, cost: np.ndarray) -> float:
    """The recursion, one row of D at a time."""
    empty = len(cost) - 1
    row = np.zeros(len(y) + 1)
    for j in range(len(y)):
        row[j + 1] = row[j] + cost[empty, y[j]]
    for a in x:
        corner = row[0]
        row[0] += cost[a, empty]
        for j in range(len(y)):
            b = y[j]
            above = row[j + 1]
            row[j + 1] = min(above + cost[a, empty], row[j] + cost[empty, b], corner + cost[a, b])
            corner = above
    return row[-1]
