"""Writing episodes: whole or absent at the end, in the layout that `data/episodes.py` describes.

A chunk holds one image, or 16 KiB of smaller rows, so that a random window costs no more than what is in it, and images
are compressed by gzip at its lowest level. On 64×64 frames of a flat world that took 27 times less room than none and
read windows 2 times slower (8.6 ms for 128 pairs of frames); lzf was slower and larger, and chunks of 8 frames took 2.8
times as long.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import finite
from jepatlas.data.episode_layout import ABOUT, INDEX, Column

__all__ = ["EpisodeWriter"]

CHUNK_BYTES = 2**14
COMPRESSED_FROM = 2**10  # bytes of a row; numbers hardly become smaller
NUMBERED = {"ep_idx": np.int32, "step_idx": np.int64}


class EpisodeWriter:
    """A file of episodes that takes its name when the `with` block ends well; until then nothing is changed there.

    The first episode says which columns there are, and of which shape and type. `ep_idx` and `step_idx` are the
    writer's own: what an episode has under these names, for example one read from another file, is replaced. `about`
    says where episodes come from, as plain data; a file gives it back under the same name.
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
        h5py: Any = require("h5py", "sim", "Writing episodes")
        with _beside(self.path) as part, h5py.File(part, "w") as file:
            yield file
            if not self.lengths:
                raise InputError(f"No episode was written to {self.path}.")
            if self.about:
                file.attrs[ABOUT] = json.dumps(finite(self.about), allow_nan=False)
            file["ep_len"] = np.array(self.lengths, np.int32)
            file["ep_offset"] = np.append(0, np.cumsum(self.lengths[:-1])).astype(np.int64)

    def append(self, episode: Mapping[str, Any]) -> None:
        """Add one episode: its columns, each with one row for each moment."""
        columns = {name: np.asarray(value) for name, value in episode.items() if name not in (*INDEX, *NUMBERED)}
        count = _count(columns, len(self.lengths))
        numbers = {"ep_idx": np.full(count, len(self.lengths)), "step_idx": np.arange(count)}
        columns |= {name: numbers[name].astype(dtype) for name, dtype in NUMBERED.items()}
        if not self.lengths:
            for name, values in columns.items():
                self._create(name, values)
        self._check(columns)
        with _clear_errors(self.path):
            for name, values in columns.items():
                dataset = self._datasets[name]
                dataset.resize(self._rows + count, axis=0)
                dataset[self._rows :] = values
        self._rows += count
        self.lengths.append(count)

    def _create(self, name: str, values: np.ndarray) -> None:
        if values.dtype.kind not in "biuf" or not values.size:
            raise InputError(
                f"The column '{name}' is {values.dtype} of shape {values.shape}, but rows of numbers are written."
            )
        shape = values.shape[1:]
        row = values[0].nbytes
        gzip = {"compression": "gzip", "compression_opts": 1} if self.compressed and row >= COMPRESSED_FROM else {}
        chunks = (max(1, CHUNK_BYTES // row), *shape)
        about: dict[str, Any] = {"maxshape": (None, *shape), "chunks": chunks} | gzip
        self._datasets[name] = self._file.create_dataset(name, (0, *shape), values.dtype, **about)
        self._columns[name] = Column(shape, values.dtype)

    def _check(self, columns: Mapping[str, np.ndarray]) -> None:
        now = {name: Column(values.shape[1:], values.dtype) for name, values in columns.items()}
        for name in sorted(self._columns.keys() | now.keys()):
            first, given = (kinds.get(name, "no such column") for kinds in (self._columns, now))
            if first != given:
                raise InputError(
                    f"Episode {len(self.lengths)} does not fit the ones before it: '{name}' was {first} and now is "
                    f"{given}. All episodes of a file have the same columns."
                )


def _count(columns: Mapping[str, np.ndarray], number: int) -> int:
    """How many moments the episode has."""
    counts = {name: len(values) if values.ndim else 0 for name, values in columns.items()}
    if len(set(counts.values())) != 1 or not max(counts.values()):
        raise InputError(f"The columns of episode {number} need one number of rows, at least 1, but have {counts}.")
    return next(iter(counts.values()))


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A place beside `path` to write to; it is synced and takes the name `path` when the block ends well."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with _clear_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield part
        with _clear_errors(path):
            with open(part, "rb") as file:
                os.fsync(file.fileno())
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"Could not write {path}: {error.strerror or error}. Nothing was changed there; free some space or choose "
            "another place."
        ) from error
