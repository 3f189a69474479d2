"""smallNORB: 50 toys of 5 categories, imaged by two cameras at 9 elevations, 18 azimuths and 6 lightings.

The published binary files (-dat, -cat and -info) are read directly. As in "Social-JEPA: Emergent Geometric Isomorphism
in Independently Trained World Models", a state is an instance at one elevation and lighting and its views are the
azimuths (the published pair is 0° and 160°). Alternatively the two cameras are the views. The official split is by
instance: 4, 6, 7, 8 and 9 of each category are for training.

A file holds one matrix: a header of little-endian 32-bit integers, then the data.

    magic number, number of axes, lengths of the axes (at least three), data

The magic number `0x1E3D4C55` marks bytes and `0x1E3D4C54` 32-bit integers. Files that are not gzipped are
memory-mapped.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from jepatlas.core.errors import InputError, require
from jepatlas.data.images.decoding import resize
from jepatlas.data.images.view_table import Fit, Mode, ViewTable

__all__ = ["SmallNORB"]

CATEGORIES = ("animal", "human", "airplane", "truck", "car")
SPLITS = ("training", "testing")
CAMERAS = ("left", "right")
Views = Literal["azimuth", "camera"]

BYTES, INTEGERS = 0x1E3D4C55, 0x1E3D4C54
MATRIX_TYPES = {BYTES: np.dtype("u1"), INTEGERS: np.dtype("<i4")}
MATRIX_NAMES = {BYTES: "bytes", INTEGERS: "32-bit integers"}
HEADER_AXES = 3  # lengths stored at least; those beyond the number of axes are unused
MAX_AXES = 8


@dataclass(frozen=True)
class SmallNORB(ViewTable):
    """Rows are single images: the left image of each stereo pair, then the right one."""

    columns: Mapping[str, np.ndarray]
    stored: tuple[np.ndarray, ...]  # per split (images, height, width), memory-mapped unless gzipped
    places: np.ndarray  # (rows,): index of the image of each row, counted over all splits
    files: tuple[Path, ...]

    @classmethod
    def read(cls, folder: Path | str, split: str | None = None, *, views: Views = "azimuth") -> SmallNORB:
        """Read the split "training" or "testing", or both; pixels are read on access."""
        if split not in (None, *SPLITS):
            raise InputError(f"split must be one of {', '.join(SPLITS)}, but is '{split}'.")
        parts = [_SplitFiles.read(Path(folder), name) for name in (SPLITS if split is None else (split,))]
        columns = [part.columns(views) for part in parts]
        joined = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
        stored = tuple(part.images for part in parts)
        return cls(joined, stored, np.arange(len(joined["state"])), tuple(part.file for part in parts))

    def only(self, rows: np.ndarray) -> SmallNORB:
        return replace(super().only(rows), places=self.places[rows])

    def image(
        self, row: int, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
    ) -> np.ndarray:
        split, index = self._locate(row)
        grey = np.asarray(self.stored[split][index])
        if size is not None:
            library = require("PIL.Image", "vision", "Resizing images")
            return resize(library, library.fromarray(grey), mode, size, fit)
        return grey if mode == "grey" else np.repeat(grey[..., None], 3, axis=2)

    def source(self, row: int) -> str:
        split, index = self._locate(row)
        about = self.files[split].stat()
        return f"{self.files[split].resolve()}/{index}/{about.st_size}/{about.st_mtime_ns}"

    def _locate(self, row: int) -> tuple[int, int]:
        """The split of a row's image, and the index in it."""
        index, split = int(self.places[row]), 0
        while index >= len(self.stored[split]):
            index -= len(self.stored[split])
            split += 1
        return split, index


@dataclass(frozen=True)
class _SplitFiles:
    """The contents of the three files of one split."""

    split: str
    file: Path
    images: np.ndarray  # (2 n, height, width)
    category: np.ndarray  # (n,)
    info: np.ndarray  # (n, 4): instance, elevation, azimuth and lighting codes

    @classmethod
    def read(cls, folder: Path, split: str) -> _SplitFiles:
        file, category_file, info_file = (_find_file(folder, split, kind) for kind in ("dat", "cat", "info"))
        pixels, category = _read_matrix(file, BYTES), _read_matrix(category_file, INTEGERS)
        info = _read_matrix(info_file, INTEGERS)
        if pixels.ndim != 4 or pixels.shape[1] != 2:
            raise InputError(f"{file} has the shape {pixels.shape}, but must be (pairs, 2, height, width).")
        if category.shape != (len(pixels),) or info.shape != (len(pixels), 4):
            raise InputError(
                f"{file} has {len(pixels)} stereo pairs, but {category_file.name} has the shape {category.shape} and "
                f"{info_file.name} {info.shape}. Use the files of one download."
            )
        invalid = np.flatnonzero((category < 0) | (category >= len(CATEGORIES)))
        if len(invalid):
            raise InputError(
                f"{category_file}: pair {invalid[0]} has category {category[invalid[0]]}, but categories are 0 to 4."
            )
        return cls(split, file, pixels.reshape(-1, *pixels.shape[2:]), category, info)

    def columns(self, views: Views) -> dict[str, np.ndarray]:
        """Columns of all images. The files store azimuths in units of 10°, and elevations in steps of 5° from 30°."""
        instance, elevation, azimuth, lighting = np.repeat(self.info, 2, axis=0).T
        category = np.array(CATEGORIES)[np.repeat(self.category, 2)]
        camera = np.tile(np.array(CAMERAS), len(self.info))
        group = _join(category, instance)
        elevations, azimuths, lightings = (
            values.astype(str) for values in (30 + 5 * elevation, 10 * azimuth, lighting)
        )
        view, other = (azimuths, camera) if views == "azimuth" else (camera, azimuths)
        state = _join(group, elevations, lightings, other)
        return {
            "state": state,
            "view": view,
            "label": category,
            "group": group,
            "instance": instance.astype(str),
            "elevation": elevations,
            "azimuth": azimuths,
            "lighting": lightings,
            "camera": camera,
            "split": np.full(len(state), self.split),
        }


def _find_file(folder: Path, split: str, kind: str) -> Path:
    """The file of a kind, under its published name or a shorter name with the same ending."""
    for ending in (f"{split}-{kind}.mat", f"{split}-{kind}.mat.gz"):
        found = sorted(folder.glob(f"*{ending}"))
        if found:
            return found[0]
    raise InputError(f"{folder} has no smallNORB file *{split}-{kind}.mat or *{split}-{kind}.mat.gz.")


def _join(*parts: np.ndarray) -> np.ndarray:
    return np.array(["-".join(map(str, row)) for row in zip(*(part.tolist() for part in parts), strict=True)])


def _read_matrix(path: Path, magic: int) -> np.ndarray:
    """The matrix in a file, gzipped or not, which must start with this magic number."""
    gzipped = path.suffix == ".gz"
    try:
        with gzip.open(path) if gzipped else open(path, "rb") as file:
            shape, start = _read_header(file, path, magic)
            if not gzipped:
                _check_size(path, path.stat().st_size - start, MATRIX_TYPES[magic], shape)
                return np.memmap(path, MATRIX_TYPES[magic], "r", start, shape)
            data = file.read()
    except (OSError, EOFError, zlib.error) as error:  # raised by gzip for truncated or foreign files
        raise InputError(f"{path} cannot be read: {error}. The download may be incomplete.") from error
    _check_size(path, len(data), MATRIX_TYPES[magic], shape)
    return np.frombuffer(data, MATRIX_TYPES[magic]).reshape(shape)


def _read_header(
    file: IO[bytes] | gzip.GzipFile | BufferedReader, path: Path, magic: int
) -> tuple[tuple[int, ...], int]:
    """The shape, and the offset of the data."""
    first = file.read(8)
    expected = f"0x{magic:08X} ({MATRIX_NAMES[magic]})"
    if len(first) < 8:
        raise InputError(f"{path} is too short for a smallNORB matrix, which starts with {expected}.")
    found, axes = struct.unpack("<Ii", first)
    if found != magic:
        meaning = f" ({MATRIX_NAMES[found]})" if found in MATRIX_NAMES else ""
        raise InputError(f"{path} starts with 0x{found:08X}{meaning} instead of {expected}.")
    header_bytes = 4 * max(HEADER_AXES, axes) if 1 <= axes <= MAX_AXES else 0
    lengths = file.read(header_bytes)
    if not header_bytes or len(lengths) < header_bytes:
        raise InputError(f"{path} is truncated in the header, or has an invalid number of axes ({axes}).")
    shape = struct.unpack(f"<{header_bytes // 4}i", lengths)[:axes]
    if min(shape) < 1:
        raise InputError(f"{path} has the shape {shape}, but all lengths must be at least 1.")
    return shape, 8 + header_bytes


def _check_size(path: Path, size: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    expected = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if size != expected:
        problem = "is truncated" if size < expected else "has extra data"
        raise InputError(f"{path} {problem}: shape {shape} needs {expected} bytes, but there are {size}.")
