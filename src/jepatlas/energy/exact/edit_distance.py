"""Edit distance with unequal costs: the least total cost of insertions, deletions and substitutions from x to y.

    D[i, j] = min(D[i−1, j] + delete(xᵢ), D[i, j−1] + insert(yⱼ), D[i−1, j−1] + substitute(xᵢ, yⱼ))

The recursion edits each symbol once. That is the least cost of any sequence of edits, and so a quasimetric, only if no
detour pays: with the empty symbol ε, delete(a) = w(a, ε) and insert(b) = w(ε, b), it takes w(a, c) ≤ w(a, b) + w(b, c)
for all symbols and ε. Therefore costs are first closed, that is, replaced by the cheapest detour. Substitutions that
are dearer than a deletion and an insertion need no care, since the recursion takes the cheaper. Where a cost is 0,
different sequences may be at distance 0; a cost of +∞ forbids an edit.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["EditCosts", "edit_energies", "edit_energy"]

Word = Sequence[Hashable]


@dataclass(frozen=True)
class EditCosts:
    """What each edit costs: one number for all symbols, or an array over the symbols of an alphabet.

    >>> EditCosts(insert=2.0, delete=1.0, substitute=5.0).is_closed
    True
    """

    insert: float | np.ndarray = 1.0  # () or (a,)
    delete: float | np.ndarray = 1.0  # () or (a,)
    substitute: float | np.ndarray = 1.0  # () or (a, a), from row to column
    alphabet: Word | None = None
    """The symbols that the arrays stand for, in order; needed where there is an array."""

    def __post_init__(self) -> None:
        size = None if self.alphabet is None else len(self.alphabet)
        if size is not None and len(set(self.alphabet or ())) < size:
            raise InputError("The alphabet names a symbol twice. Name each once.")
        for name, rank in (("insert", 1), ("delete", 1), ("substitute", 2)):
            cost = np.asarray(getattr(self, name), dtype=np.float64)
            if cost.ndim and size is None:
                raise InputError(f"{name} is an array, but no alphabet says which symbols it stands for. Give one.")
            if cost.ndim and cost.shape != (size,) * rank:
                raise InputError(f"{name} has the shape {cost.shape}; for {size} symbols it is {(size,) * rank}.")
            if not (cost >= 0).all():
                raise InputError(f"{name} holds a cost that is negative or NaN. Costs are at least 0, or +∞ to forbid.")

    @property
    def is_closed(self) -> bool:
        """Whether no detour over other symbols pays, so that the recursion is exact on the costs as they are."""
        table = self.table(2 if self.alphabet is None else len(self.alphabet))
        whole = table[:-1, -1:] + table[-1:, :-1]  # a deletion and an insertion, which the recursion sees by itself
        table[:-1, :-1] = np.minimum(table[:-1, :-1], whole)
        return bool(np.allclose(_closed(table), table, rtol=1e-12, atol=0))

    def table(self, size: int) -> np.ndarray:
        """w over symbols and, last, ε: (size + 1, size + 1), with zeros on the diagonal."""
        table = np.empty((size + 1, size + 1))
        table[:-1, :-1], table[:-1, -1], table[-1, :-1] = self.substitute, self.delete, self.insert
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
    """From each start to each end, or between all starts: (m, n). Sequences are texts or lists of symbols."""
    from jepatlas.energy.exact.edit_kernel import all_edits  # noqa: PLC0415  (numba takes a second to import)

    costs = costs or EditCosts()
    later = start if end is None else end
    symbols = costs.alphabet
    if symbols is None:
        symbols = list(dict.fromkeys(symbol for word in (*start, *later) for symbol in word))
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    return all_edits(*_joined(start, numbers), *_joined(later, numbers), _closed(costs.table(len(numbers))))


def _joined(words: Sequence[Word], numbers: dict[Hashable, int]) -> tuple[np.ndarray, np.ndarray]:
    """All words end to end as numbers, and where each begins."""
    try:
        joined = [numbers[symbol] for word in words for symbol in word]
    except KeyError as error:
        raise InputError(f"The symbol {error.args[0]!r} is not in the alphabet of the costs. Add it there.") from error
    return np.array(joined, dtype=np.int64), np.cumsum([0, *map(len, words)])


def _closed(table: np.ndarray) -> np.ndarray:
    """Floyd and Warshall: the cheapest detour between every two symbols."""
    closed = table.copy()
    for between in range(len(closed)):
        closed = np.minimum(closed, closed[:, between, None] + closed[None, between])
    return closed
