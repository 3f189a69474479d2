"""The binary matrices of NORB: a head of little-endian 32-bit integers, then the numbers.

    magic, number of axes, lengths of the axes (at least three are written), data

`0x1E3D4C55` is a matrix of bytes, `0x1E3D4C54` one of 32-bit integers. What is not gzipped is memory-mapped.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["BYTES", "INTEGERS", "read_matrix"]

BYTES, INTEGERS = 0x1E3D4C55, 0x1E3D4C54
TYPES = {BYTES: np.dtype("u1"), INTEGERS: np.dtype("<i4")}
NAMES = {BYTES: "bytes", INTEGERS: "32-bit integers"}
AXES = 3  # how many lengths are written at least; those beyond the number of axes mean nothing


def read_matrix(path: Path, magic: int) -> np.ndarray:
    """The matrix of a file, gzipped or not, which must begin with this magic number."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            shape, start = _head(file, path, magic)
            if path.suffix != ".gz":
                return _mapped(path, TYPES[magic], shape, start)
            data = file.read()
    except (OSError, EOFError, zlib.error) as error:  # what gzip raises for files that are cut or are something else
        raise InputError(f"{path} could not be read: {error}. Was it downloaded completely?") from error
    _check_size(path, len(data), TYPES[magic], shape)
    return np.frombuffer(data, TYPES[magic]).reshape(shape)


def _mapped(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], start: int) -> np.ndarray:
    _check_size(path, path.stat().st_size - start, dtype, shape)
    return np.memmap(path, dtype, "r", start, shape)


def _head(file: Any, path: Path, magic: int) -> tuple[tuple[int, ...], int]:
    """The shape, and where the data begins."""
    first = file.read(8)
    found, axes = struct.unpack("<Ii", first) if len(first) == 8 else (None, 0)
    if found != magic:
        known = f", which marks {NAMES[found]}" if found in NAMES else ""
        seen = "it is too short for a head" if found is None else f"it begins with 0x{found:08X}{known}"
        raise InputError(
            f"{path} is no matrix of {NAMES[magic]}: {seen}, where 0x{magic:08X} should be. Is it smallNORB's file?"
        )
    written = 4 * max(AXES, axes) if 1 <= axes <= 8 else 0
    lengths = file.read(written)
    if not written or len(lengths) < written:
        raise InputError(f"{path} is cut within its head, or tells a wrong number of axes ({axes}).")
    shape = struct.unpack(f"<{written // 4}i", lengths)[:axes]
    if min(shape) < 1:
        raise InputError(f"{path} tells the shape {shape}, but every length must be at least 1.")
    return shape, 8 + written


def _check_size(path: Path, size: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    expected = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if size != expected:
        wrong = "is cut" if size < expected else "goes on"
        raise InputError(f"{path} {wrong}: shape {shape} takes {expected} bytes, but there are {size}.")
