"""Episodes in one HDF5 file: one dataset per column, one row per moment; read lazily, and larger than memory.

The layout is that of stable-worldmodel, which LeWM's published data have (`pixels`, `action`, ..., `ep_len` (E,) int32,
`ep_offset` (E,) int64). What we match of it:

- every column has all moments of all episodes, one after the other; episode i is the rows from `ep_offset[i]` on,
  `ep_len[i]` of them. An episode of k steps has k + 1 rows.
- row t has what was seen, and the `action` that was taken there; at an episode's last row nothing was done, and the
  action is NaN.
- `reward`, `terminated` and `truncated` belong to the step that led to the row; the first reward is NaN.
- `pixels` are (T, height, width, 3) uint8; `ep_idx` and `step_idx` number the episode and the row within it.

Columns of any other name are columns, too; groups and single numbers are let be. Where episodes come from is said, as
JSON, by the file's attribute `jepatlas`, which other people's files do not have. Published files are compressed by
Blosc, for which the package hdf5plugin is loaded where it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from jepatlas.core.errors import InputError, did_you_mean, require
from jepatlas.data.episode_layout import Column, read_layout

__all__ = ["EpisodeFile"]


class EpisodeFile:
    """The episodes of a file, checked when it is opened.

    Each process has a handle of its own, opened on first use: a file can be pickled, forked or given to the workers of
    a data loader. Threads of a process share one; h5py reads for one of them at a time.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._open: tuple[int, Any] | None = None  # the process, and its handle
        layout = read_layout(self.path, self._file)
        self.columns: dict[str, Column] = layout.columns
        self.lengths: np.ndarray = layout.lengths  # (E,) rows of each episode
        self.offsets: np.ndarray = layout.offsets  # (E,) its first row
        self.about: dict[str, Any] = layout.about  # where they come from; empty where that is not known

    def __len__(self) -> int:
        return len(self.lengths)

    def episode(self, number: int, columns: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """All moments of one episode, by column."""
        if not 0 <= number < len(self):
            raise InputError(f"{self.path} has the episodes 0 to {len(self) - 1}, but number {number} was asked for.")
        first, count = int(self.offsets[number]), int(self.lengths[number])
        return {name: self._read(name, first, first + count) for name in columns or self.columns}

    def rows(self, column: str, indices: np.ndarray) -> np.ndarray:
        """Any rows of a column, in any order and more than once: the shape of `indices`, then that of a row.

        Rows are read once each and in order, those next to each other together. (HDF5 is tens of times slower at a
        list of rows, or at every second one.)
        """
        indices = np.asarray(indices)
        wanted, place = np.unique(indices, return_inverse=True)
        dataset = self._dataset(column)
        if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < len(dataset):
            raise InputError(
                f"{self.path} has the rows 0 to {len(dataset) - 1}, but {wanted[0]} to {wanted[-1]} were asked for."
            )
        found = np.empty((len(wanted), *dataset.shape[1:]), dataset.dtype)
        ends = np.append(np.flatnonzero(np.diff(wanted) != 1) + 1, len(wanted))
        for begin, end in zip(np.append(0, ends[:-1]), ends, strict=True):
            if end > begin:
                found[begin:end] = self._read(column, int(wanted[begin]), int(wanted[end - 1]) + 1)
        if np.array_equal(wanted, indices):
            return found  # a whole column is not copied once more
        return found[place.reshape(indices.shape)]

    def close(self) -> None:
        """Close this process's handle; it is opened again when something is read."""
        if self._open is not None and self._open[0] == os.getpid():
            self._open[1].close()
        self._open = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": None}

    def _read(self, column: str, begin: int, end: int) -> np.ndarray:
        try:
            return self._dataset(column)[begin:end]
        except (OSError, RuntimeError) as error:
            raise InputError(
                f"The rows {begin} to {end - 1} of '{column}' in {self.path} cannot be read: {error}. The file is "
                "damaged there: copy it again from where it came from, or collect it anew."
            ) from error

    def _dataset(self, column: str) -> Any:
        if column not in self.columns:
            raise InputError(f"{self.path} has no column '{column}'. {did_you_mean(column, self.columns)}")
        return self._file()[column]

    def _file(self) -> Any:
        if self._open is None or self._open[0] != os.getpid():  # a handle must not be used after a fork
            self._open = os.getpid(), self._opened()
        return self._open[1]

    def _opened(self) -> Any:
        h5py: Any = require("h5py", "sim", "Reading episodes")
        if not self.path.is_file():
            raise InputError(f"There is no file {self.path}.")
        try:
            return h5py.File(self.path, "r")
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be read as an HDF5 file: {error}. Was it cut short, or is it still being written?"
            ) from error
