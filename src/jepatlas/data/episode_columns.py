"""The rows of a column as tensors: held in memory, or read from the file each time they are asked for."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.data.episode_layout import Column

__all__ = ["Episodes", "HeldColumn", "LazyColumn", "rows_of_episodes"]


class Episodes(Protocol):
    """What windows are drawn from: an `EpisodeFile`, or whatever has the same face."""

    columns: dict[str, Column]
    lengths: np.ndarray  # (E,)
    offsets: np.ndarray  # (E,)

    def __len__(self) -> int: ...

    def rows(self, column: str, indices: np.ndarray) -> np.ndarray: ...


def rows_of_episodes(given: Episodes, numbers: np.ndarray) -> np.ndarray:
    """The rows of these episodes, in order, each once."""
    inside = np.zeros(int((given.offsets + given.lengths).max()), dtype=bool)
    for number in numbers:
        inside[given.offsets[number] :][: given.lengths[number]] = True
    return np.flatnonzero(inside)


class LazyColumn:
    """Images stay uint8, any other numbers become float32; a row is at least a vector of one number."""

    def __init__(self, given: Episodes, name: str) -> None:
        if name not in given.columns:
            raise InputError(f"The episodes have no column '{name}'. {did_you_mean(name, given.columns)}")
        self.given, self.name, about = given, name, given.columns[name]
        if about.dtype.kind not in "biuf":
            raise InputError(f"The column '{name}' of the episodes has values of type {about.dtype}, not numbers.")
        self.image = about.dtype == np.uint8 and len(about.shape) == 3
        self.shape = about.shape or (1,)

    def __call__(self, rows: np.ndarray) -> Tensor:
        """The rows of these numbers, of any shape: (..., *row)."""
        found = torch.from_numpy(self.given.rows(self.name, rows))
        return (found if self.image else found.float()).reshape(*rows.shape, *self.shape)


class HeldColumn:
    """The same, of some rows alone, which are read once."""

    def __init__(self, given: Episodes, name: str, rows: np.ndarray) -> None:
        self.rows, self.table = rows, LazyColumn(given, name)(rows)

    def __call__(self, rows: np.ndarray) -> Tensor:
        return self.table[torch.from_numpy(np.searchsorted(self.rows, rows))]
