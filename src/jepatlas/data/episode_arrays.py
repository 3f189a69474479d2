"""Episodes in memory, columns as tensors, and splits by episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.episodes import Column

__all__ = [
    "EpisodeArrays",
    "Episodes",
    "FileColumn",
    "MemoryColumn",
    "RenderedColumn",
    "rows_of_episodes",
    "split_episodes",
]


class Episodes(Protocol):
    """What windows are drawn from: `EpisodeFile`, `EpisodeArrays` or any class with these members."""

    columns: dict[str, Column]
    lengths: np.ndarray  # (E,)
    offsets: np.ndarray  # (E,)

    def __len__(self) -> int: ...

    def rows(self, column: str, indices: np.ndarray) -> np.ndarray: ...


class EpisodeArrays:
    """Episodes in memory with the interface of `EpisodeFile`; columns hold all episodes, concatenated.

    >>> two = EpisodeArrays({"state": np.arange(5.0)[:, None]}, np.array([3, 2]))
    >>> two.episode(1)["state"].ravel()
    array([3., 4.])
    """

    def __init__(self, arrays: Mapping[str, np.ndarray | RenderedColumn], lengths: np.ndarray) -> None:
        counts = {name: len(array) for name, array in arrays.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"'{name}' has {count}" for name, count in counts.items())
            raise InputError(f"All columns must have the same number of rows, but {listed}.")
        rows = next(iter(counts.values()), 0)
        total = int(np.sum(lengths))
        if not len(lengths) or total != rows:
            raise InputError(f"The episode lengths sum to {total}, but the columns have {rows} rows.")
        self.arrays = dict(arrays)
        self.columns = {name: Column(array.shape[1:], array.dtype) for name, array in arrays.items()}
        self.lengths = np.asarray(lengths, dtype=np.int64)  # (E,)
        self.offsets = np.append(0, np.cumsum(self.lengths)[:-1])  # (E,)
        self.about: dict[str, Any] = {}
        """Where they come from, such as the id of an environment."""

    def __len__(self) -> int:
        return len(self.lengths)

    def episode(self, number: int) -> dict[str, np.ndarray]:
        """All rows of one episode, by column."""
        if not 0 <= number < len(self):
            raise InputError(f"There are episodes 0 to {len(self) - 1}, but episode {number} was requested.")
        first = self.offsets[number]
        return {name: array[first : first + self.lengths[number]] for name, array in self.arrays.items()}

    def rows(self, column: str, indices: np.ndarray) -> np.ndarray:
        """Rows of a column: shape `indices.shape + row shape`."""
        if column not in self.arrays:
            raise InputError(f"The episodes have no column '{column}'. {did_you_mean(column, self.arrays)}")
        return self.arrays[column][np.asarray(indices)]


class RenderedColumn:
    """A column of images that are rendered from states on access.

    >>> halves = RenderedColumn(lambda states: states / 2, np.arange(6.0)[:, None])
    >>> halves[np.array([[4, 1]])].ravel()
    array([2. , 0.5])
    """

    def __init__(self, draw: Callable[[np.ndarray], np.ndarray], states: np.ndarray) -> None:
        sample = draw(states[:1])
        self.draw, self.states = draw, states
        self.shape, self.dtype = (len(states), *sample.shape[1:]), sample.dtype

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        rows = np.arange(len(self))[rows]
        unique, inverse = np.unique(rows, return_inverse=True)
        drawn = self.draw(self.states[unique])
        return drawn if np.array_equal(unique, rows) else drawn[inverse.reshape(rows.shape)]


class FileColumn:
    """Rows of a column as tensors, read on each call.

    Images stay uint8 and other values become float32. Scalars become vectors of length 1.
    """

    def __init__(self, episodes: Episodes, name: str) -> None:
        if name not in episodes.columns:
            raise InputError(f"The episodes have no column '{name}'. {did_you_mean(name, episodes.columns)}")
        self.episodes, self.name = episodes, name
        column = episodes.columns[name]
        if column.dtype.kind not in "biuf":
            raise InputError(f"Column '{name}' must be numeric, but its type is {column.dtype}.")
        self.image = column.dtype == np.uint8 and len(column.shape) == 3
        self.shape = column.shape or (1,)

    def __call__(self, rows: np.ndarray) -> Tensor:
        """(…) row numbers → (…, *row)"""
        values = torch.from_numpy(self.episodes.rows(self.name, rows))
        return (values if self.image else values.float()).reshape(*rows.shape, *self.shape)


class MemoryColumn:
    """Selected rows of a column, read once and kept in memory."""

    def __init__(self, episodes: Episodes, name: str, rows: np.ndarray) -> None:
        self.rows = rows
        self.table = FileColumn(episodes, name)(rows)

    def __call__(self, rows: np.ndarray) -> Tensor:
        return self.table[torch.from_numpy(np.searchsorted(self.rows, rows))]


def rows_of_episodes(episodes: Episodes, numbers: np.ndarray) -> np.ndarray:
    """Sorted row numbers of the given episodes, without repeats."""
    inside = np.zeros(int((episodes.offsets + episodes.lengths).max()), dtype=bool)
    for number in numbers:
        inside[episodes.offsets[number] :][: episodes.lengths[number]] = True
    return np.flatnonzero(inside)


def split_episodes(count: int, held: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Split episode numbers into training and held-out ones (a share `held`), both sorted."""
    held_count = round(held * count) if 0 < held < 1 else 0
    if not 0 < held_count < count:
        raise InputError(
            f"A share held={held} of {count} episodes cannot be held out: both sides need at least one episode."
        )
    order = numpy_generator(seed, "split episodes").permutation(count)
    return np.sort(order[held_count:]), np.sort(order[:held_count])
