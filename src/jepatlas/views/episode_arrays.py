"""Episodes in memory, with the same face as a file of them: for worlds that can be walked anew at any time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jepatlas.base.arrays import check_rows
from jepatlas.base.errors import InputError, nearest
from jepatlas.views.episode_layout import Column

__all__ = ["EpisodeArrays"]


class EpisodeArrays:
    """Columns of all moments of all episodes, one after the other: see `EpisodeFile`.

    >>> two = EpisodeArrays({"state": np.arange(5.0)[:, None]}, np.array([3, 2]))
    >>> two.episode(1)["state"].ravel()
    array([3., 4.])
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], lengths: np.ndarray) -> None:
        check_rows(arrays)
        rows = len(next(iter(arrays.values()), ()))
        if not len(lengths) or int(np.sum(lengths)) != rows:
            raise InputError(f"The episodes have {int(np.sum(lengths))} moments in all, but the columns {rows} rows.")
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
            raise InputError(f"The episodes have no column '{column}'. {nearest(column, self.arrays)}")
        return self.arrays[column][np.asarray(indices)]
