"""Episodes in memory, with the same face as a file of them: for worlds that can be walked anew at any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.data.episode_layout import Column

__all__ = ["DrawnColumn", "EpisodeArrays"]


class DrawnColumn:
    """Pictures of states, drawn when they are asked for: whoever needs few of them does not wait for all.

    >>> halves = DrawnColumn(lambda states: states / 2, np.arange(6.0)[:, None])
    >>> halves[np.array([[4, 1]])].ravel()
    array([2. , 0.5])
    """

    def __init__(self, draw: Callable[[np.ndarray], np.ndarray], states: np.ndarray) -> None:
        one = draw(states[:1])
        self.draw, self.states = draw, states
        self.shape, self.dtype = (len(states), *one.shape[1:]), one.dtype

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        rows = np.arange(len(self))[rows]
        wanted, place = np.unique(rows, return_inverse=True)
        drawn = self.draw(self.states[wanted])
        return drawn if np.array_equal(wanted, rows) else drawn[place.reshape(rows.shape)]


class EpisodeArrays:
    """Columns of all moments of all episodes, one after the other: see `EpisodeFile`.

    >>> two = EpisodeArrays({"state": np.arange(5.0)[:, None]}, np.array([3, 2]))
    >>> two.episode(1)["state"].ravel()
    array([3., 4.])
    """

    def __init__(self, arrays: Mapping[str, np.ndarray | DrawnColumn], lengths: np.ndarray) -> None:
        rows = {name: len(array) for name, array in arrays.items()}
        if len(set(rows.values())) > 1:
            listed = ", ".join(f"'{name}' has {count}" for name, count in rows.items())
            raise InputError(f"All columns must have the same number of rows, but {listed}.")
        moments = next(iter(rows.values()), 0)
        if not len(lengths) or int(np.sum(lengths)) != moments:
            raise InputError(
                f"The episodes have {int(np.sum(lengths))} moments in all, but the columns {moments} rows."
            )
        self.arrays = dict(arrays)
        self.columns = {name: Column(array.shape[1:], array.dtype) for name, array in arrays.items()}
        self.lengths = np.asarray(lengths, dtype=np.int64)  # (E,)
        self.offsets = np.append(0, np.cumsum(self.lengths)[:-1])  # (E,)

    def __len__(self) -> int:
        return len(self.lengths)

    def episode(self, number: int) -> dict[str, np.ndarray]:
        """All moments of one episode, by column."""
        if not 0 <= number < len(self):
            raise InputError(f"There are the episodes 0 to {len(self) - 1}, but number {number} was asked for.")
        first = self.offsets[number]
        return {name: array[first : first + self.lengths[number]] for name, array in self.arrays.items()}

    def rows(self, column: str, indices: np.ndarray) -> np.ndarray:
        """Any rows of a column: the shape of `indices`, then that of a row."""
        if column not in self.arrays:
            raise InputError(f"The episodes have no column '{column}'. {did_you_mean(column, self.arrays)}")
        return self.arrays[column][np.asarray(indices)]
