"""Episode files: one HDF5 dataset per column, one row per time step, read lazily.

The layout is that of stable-worldmodel, which the published LeWM data also use (`pixels`, `action`, ...,
`ep_len` (E,) int32, `ep_offset` (E,) int64):

- Each column holds the rows of all episodes, concatenated. Episode i consists of `ep_len[i]` rows starting at
  `ep_offset[i]`. An episode of k steps has k + 1 rows.
- Row t holds the observation and the `action` taken there. The last row of an episode has no action (NaN).
- `reward`, `terminated` and `truncated` belong to the step that led to the row; the first reward is NaN.
- `pixels` are (T, height, width, 3) uint8. `ep_idx` and `step_idx` number the episode and the row within it.

Columns with other names are read as well; HDF5 groups and scalars are ignored. The file attribute `jepatlas` stores the
origin of the episodes as JSON and is optional. Columns compressed with Blosc need the package hdf5plugin.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np

from jepatlas.core.errors import InputError, did_you_mean, require
from jepatlas.core.parsing import parse_json

__all__ = ["INDEX_COLUMNS", "ORIGIN_ATTRIBUTE", "Column", "EpisodeFile"]

INDEX_COLUMNS = ("ep_len", "ep_offset")
ORIGIN_ATTRIBUTE = "jepatlas"
SMALL_BYTES = 2**24  # datasets of less are read whatever they declare
HIGHEST_COMPRESSION = 10_000


@dataclass(frozen=True)
class Column:
    """Shape and type of one row of a column."""

    shape: tuple[int, ...]
    dtype: np.dtype


class EpisodeFile:
    """The episodes of a file; the layout is validated when the file is opened.

    Each process opens its own handle on first use, so an `EpisodeFile` can be pickled, forked or passed to data-loader
    workers. Threads of one process share a handle; h5py serialises their reads.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._handle: tuple[int, Any] | None = None  # (process id, h5py.File)
        file = self._file()
        try:
            datasets = _own_datasets(self.path, file)
            self.lengths: np.ndarray = _index_column(self.path, datasets, "ep_len")  # (E,) rows of each episode
            self.offsets: np.ndarray = _index_column(self.path, datasets, "ep_offset")  # (E,) first row
            self.about: dict[str, Any] = _origin(file.attrs.get(ORIGIN_ATTRIBUTE))  # empty if unknown
        except InputError:
            raise
        except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:  # types that numpy lacks
            raise InputError(f"{path} cannot be read ({error}). The file may be truncated.") from error
        columns = {name: item for name, item in datasets.items() if name not in INDEX_COLUMNS}
        _check_episodes(self.path, self.lengths, self.offsets, _common_length(self.path, columns))
        for name, dataset in columns.items():
            _check_compression(self.path, name, dataset)
        self.columns = {name: Column(item.shape[1:], item.dtype) for name, item in columns.items()}

    def __len__(self) -> int:
        return len(self.lengths)

    def episode(self, number: int, columns: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """All rows of one episode, by column."""
        if not 0 <= number < len(self):
            raise InputError(f"{self.path} has episodes 0 to {len(self) - 1}, but episode {number} was requested.")
        first, count = int(self.offsets[number]), int(self.lengths[number])
        return {name: self._read(name, first, first + count) for name in columns or self.columns}

    def rows(self, column: str, indices: np.ndarray) -> np.ndarray:
        """Rows of a column in any order, with repeats allowed: shape `indices.shape + row shape`.

        Each row is read once, and consecutive rows are read together: HDF5 is tens of times slower when given a list
        of rows or a stride.
        """
        indices = np.asarray(indices)
        unique, inverse = np.unique(indices, return_inverse=True)
        dataset = self._dataset(column)
        if len(unique) and not 0 <= unique[0] <= unique[-1] < len(dataset):
            raise InputError(
                f"{self.path} has rows 0 to {len(dataset) - 1}, but rows {unique[0]} to {unique[-1]} were requested."
            )
        values = np.empty((len(unique), *dataset.shape[1:]), dataset.dtype)
        ends = np.append(np.flatnonzero(np.diff(unique) != 1) + 1, len(unique))
        for begin, end in zip(np.append(0, ends[:-1]), ends, strict=True):
            if end > begin:
                values[begin:end] = self._read(column, int(unique[begin]), int(unique[end - 1]) + 1)
        if np.array_equal(unique, indices):
            return values  # avoids copying a whole column
        return values[inverse.reshape(indices.shape)]

    def close(self) -> None:
        """Close the handle of this process. The next read opens it again."""
        if self._handle is not None and self._handle[0] == os.getpid():
            self._handle[1].close()
        self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_handle": None}

    def _read(self, column: str, begin: int, end: int) -> np.ndarray:
        try:
            return self._dataset(column)[begin:end]
        except (OSError, RuntimeError, ValueError, TypeError) as error:
            raise InputError(
                f"Rows {begin} to {end - 1} of '{column}' in {self.path} cannot be read: {error}. The file is damaged: "
                "copy it again or collect it again."
            ) from error

    def _dataset(self, column: str) -> Any:
        if column not in self.columns:
            raise InputError(f"{self.path} has no column '{column}'. {did_you_mean(column, self.columns)}")
        return self._file()[column]

    def _file(self) -> Any:
        if self._handle is None or self._handle[0] != os.getpid():  # an HDF5 handle must not be used after a fork
            self._handle = os.getpid(), _open(self.path)
        return self._handle[1]


def _open(path: Path) -> Any:
    h5py = require("h5py", "sim", "Reading episodes")
    if not path.is_file():
        raise InputError(f"File not found: {path}.")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read as an HDF5 file: {error}. It may be truncated or still being written."
        ) from error


def _own_datasets(path: Path, file: Any) -> dict[str, Any]:
    """The datasets whose data is in the file itself, and of a size that its bytes can hold."""
    h5py = require("h5py", "sim", "Reading episodes")
    datasets = {}
    for name in file:
        if not isinstance(file.get(name, getlink=True), h5py.HardLink):
            raise InputError(f"'{name}' of {path} is a link, which is not followed. Copy the data into the file.")
        dataset = file[name]
        if not getattr(dataset, "shape", ()):  # a group or a scalar
            continue
        if dataset.external or dataset.is_virtual:
            raise InputError(f"'{name}' of {path} has its data in other files, which are not read. Copy it here.")
        declared, stored = dataset.size * dataset.dtype.itemsize, dataset.id.get_storage_size()
        if declared > SMALL_BYTES and declared > HIGHEST_COMPRESSION * stored:
            raise InputError(
                f"'{name}' of {path} declares {declared / 1e9:.3g} GB, but the file holds {stored} bytes of it. The "
                "file is damaged, or was not written to the end."
            )
        datasets[name] = dataset
    return datasets


def _origin(attribute: Any) -> dict[str, Any]:
    """The origin stored in the file attribute; empty if it is missing or is not a JSON object."""
    if not isinstance(attribute, str | bytes):
        return {}
    try:
        origin = parse_json(attribute, "The origin of the episodes")
    except InputError:
        return {}
    return origin if isinstance(origin, dict) else {}


def _index_column(path: Path, datasets: dict[str, Any], name: str) -> np.ndarray:
    if name not in datasets:
        raise InputError(
            f"{path} has no dataset '{name}'; found: {', '.join(sorted(datasets)) or 'none'}. An episode file has one "
            "dataset per column, the number of rows of each episode in ep_len, and its first row in ep_offset."
        )
    values = datasets[name][()]
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise InputError(f"'{name}' of {path} must be integers (episodes,), but is {values.shape} {values.dtype}.")
    return values.astype(np.int64)


def _common_length(path: Path, columns: dict[str, Any]) -> int:
    lengths = {name: len(item) for name, item in columns.items()}
    if not lengths:
        raise InputError(f"{path} has no data columns such as pixels or action, only episode lengths.")
    usual = Counter(lengths.values()).most_common(1)[0][0]
    others = {name: count for name, count in lengths.items() if count != usual}
    if others:
        listed = ", ".join(f"'{name}' has {count}" for name, count in sorted(others.items()))
        raise InputError(
            f"The columns of {path} differ in length: {listed}, the others have {usual} rows. All columns need one row "
            "per time step. The file may have been copied while it was being written."
        )
    return usual


def _check_episodes(path: Path, lengths: np.ndarray, offsets: np.ndarray, rows: int) -> None:
    if len(lengths) != len(offsets) or not len(lengths):
        raise InputError(
            f"{path} has {len(lengths)} entries in ep_len and {len(offsets)} in ep_offset. Both need one entry per "
            "episode, and at least one."
        )
    invalid = np.flatnonzero((lengths < 1) | (lengths > rows) | (offsets < 0) | (offsets > rows - lengths))
    if len(invalid):
        i = invalid[0]
        raise InputError(
            f"Episode {i} of {path} is out of range: ep_offset {offsets[i]} and ep_len {lengths[i]}, but the columns "
            f"have {rows} rows. The file may be truncated, or merged from others without shifting ep_offset."
        )
    ends = offsets + lengths
    order = np.argsort(offsets, kind="stable")
    overlaps = np.flatnonzero(ends[order][:-1] > offsets[order][1:])
    if len(overlaps):
        first, second = order[overlaps[0]], order[overlaps[0] + 1]
        raise InputError(
            f"Episodes {first} and {second} of {path} overlap: the first ends before row {ends[first]}, the second "
            f"starts at row {offsets[second]}. Shift ep_offset so that the episodes are disjoint."
        )


def _check_compression(path: Path, name: str, dataset: Any) -> None:
    """Raise InputError if a compression filter is not installed; third-party filters come with hdf5plugin."""
    filters = require("h5py", "sim", "Reading episodes").h5z
    properties = dataset.id.get_create_plist()
    for index in range(properties.get_nfilters()):
        code, *_, label = properties.get_filter(index)
        if filters.filter_avail(code):
            continue
        try:
            import_module("hdf5plugin")
        except ImportError as error:
            raise InputError(
                f"'{name}' of {path} is compressed with the HDF5 filter {code} ({label.decode() or 'unnamed'}), which "
                "is not installed. Run: pip install hdf5plugin"
            ) from error
