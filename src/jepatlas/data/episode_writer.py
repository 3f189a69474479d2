"""Writing episode files atomically, in the layout described in `episodes.py`.

A chunk holds one image or 16 KiB of smaller rows, so reading a random window costs little more than its content. Images
are compressed with gzip level 1. On 64×64 frames of a flat world this is 27 times smaller than no compression, and
reading 128 pairs of frames takes 8.6 ms (twice as long). lzf was slower and larger; chunks of 8 frames took 2.8 times
as long.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import finite, temporary_sibling
from jepatlas.data.episodes import INDEX_COLUMNS, ORIGIN_ATTRIBUTE, Column

__all__ = ["EpisodeWriter"]

CHUNK_BYTES = 2**14
COMPRESSED_ROW_BYTES = 2**10  # smaller rows hardly compress
NUMBER_COLUMNS = {"ep_idx": np.int32, "step_idx": np.int64}


class EpisodeWriter:
    """Context manager that writes an episode file; the file appears under its name only if the block succeeds.

    The first episode defines the columns with their shapes and types. The writer creates `ep_idx` and `step_idx`
    itself and ignores columns with these names. `about` describes the origin of the episodes as plain data and is
    returned by `EpisodeFile.about`.
    """

    def __init__(self, path: Path | str, compressed: bool = True, *, about: Mapping[str, Any] | None = None) -> None:
        self.path, self.compressed, self.about = Path(path), compressed, dict(about or {})
        self.lengths: list[int] = []
        self._rows = 0
        self._columns: dict[str, Column] = {}
        self._datasets: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._block = self._open()
        self._file = self._block.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._block.__exit__(*error)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        h5py = require("h5py", "sim", "Writing episodes")
        with temporary_sibling(self.path) as part, h5py.File(part, "w") as file:
            yield file
            if not self.lengths:
                raise InputError(f"No episode was written to {self.path}.")
            if self.about:
                file.attrs[ORIGIN_ATTRIBUTE] = json.dumps(finite(self.about), allow_nan=False)
            file["ep_len"] = np.array(self.lengths, np.int32)
            file["ep_offset"] = np.append(0, np.cumsum(self.lengths[:-1])).astype(np.int64)

    def append(self, episode: Mapping[str, Any]) -> None:
        """Append one episode, given as columns with one row per time step."""
        reserved = (*INDEX_COLUMNS, *NUMBER_COLUMNS)
        columns = {name: np.asarray(value) for name, value in episode.items() if name not in reserved}
        count = _row_count(columns, len(self.lengths))
        columns["ep_idx"] = np.full(count, len(self.lengths), NUMBER_COLUMNS["ep_idx"])
        columns["step_idx"] = np.arange(count, dtype=NUMBER_COLUMNS["step_idx"])
        if not self.lengths:
            for name, values in columns.items():
                self._create(name, values)
        self._check_columns(columns)
        with _os_errors_as_input_errors(self.path):
            for name, values in columns.items():
                dataset = self._datasets[name]
                dataset.resize(self._rows + count, axis=0)
                dataset[self._rows :] = values
        self._rows += count
        self.lengths.append(count)

    def _create(self, name: str, values: np.ndarray) -> None:
        if values.dtype.kind not in "biuf" or not values.size:
            raise InputError(
                f"Column '{name}' must be numeric and not empty, but is {values.dtype} of shape {values.shape}."
            )
        row_shape, row_bytes = values.shape[1:], values[0].nbytes
        options: dict[str, Any] = {
            "maxshape": (None, *row_shape),
            "chunks": (max(1, CHUNK_BYTES // row_bytes), *row_shape),
        }
        if self.compressed and row_bytes >= COMPRESSED_ROW_BYTES:
            options |= {"compression": "gzip", "compression_opts": 1}
        self._datasets[name] = self._file.create_dataset(name, (0, *row_shape), values.dtype, **options)
        self._columns[name] = Column(row_shape, values.dtype)

    def _check_columns(self, columns: Mapping[str, np.ndarray]) -> None:
        given = {name: Column(values.shape[1:], values.dtype) for name, values in columns.items()}
        for name in sorted(self._columns.keys() | given.keys()):
            expected, found = self._columns.get(name), given.get(name)
            if expected != found:
                raise InputError(
                    f"Episode {len(self.lengths)}: column '{name}' is {found or 'missing'}, but in earlier episodes it "
                    f"is {expected or 'missing'}. All episodes of a file need the same columns."
                )


def _row_count(columns: Mapping[str, np.ndarray], number: int) -> int:
    counts = {name: len(values) if values.ndim else 0 for name, values in columns.items()}
    if len(set(counts.values())) != 1 or not max(counts.values()):
        raise InputError(
            f"The columns of episode {number} need the same number of rows, at least 1, but have {counts}."
        )
    return next(iter(counts.values()))


@contextmanager
def _os_errors_as_input_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"Cannot write {path}: {error.strerror or error}. No file was changed. Free some space or choose another "
            "location."
        ) from error
