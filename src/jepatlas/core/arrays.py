"""Reading, writing and checking of named arrays: .npy, .npz, .safetensors, .csv and .parquet.

A file is a set of named arrays with one row per sample. `array_tables` describes the columns of tables. Nothing is
unpickled.
"""

from __future__ import annotations

import csv
import glob
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import safetensors.numpy

from jepatlas.core.array_tables import read_csv, read_parquet, without_objects, write_csv, write_parquet
from jepatlas.core.errors import InputError
from jepatlas.core.files import write_bytes
from jepatlas.core.parsing import check_size, parse_safetensors, read_numpy

__all__ = [
    "check_finite",
    "check_latents",
    "check_rows",
    "group_numbers",
    "read_arrays",
    "shard_names",
    "shards_of",
    "write_arrays",
]

Arrays = dict[str, np.ndarray]

CHECKED = 1 << 22  # numbers

_BROKEN = (
    ValueError,
    OSError,
    EOFError,
    RuntimeError,
    OverflowError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    csv.Error,
)


def read_arrays(path: Path | str, *, keep_half: bool = False, apart: Collection[str] = ()) -> Arrays:
    """All arrays of a file by name; the array of a .npy file is called `h`.

    Half precision becomes float32, without loss, because linear algebra needs it. `keep_half` keeps float16, from which
    an audit derives the rounding error of energies. Columns of a table in `apart` are arrays of their own.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in _READERS:
        raise InputError(f"{path}: files of type '{path.suffix}' cannot be read. Known: {', '.join(_READERS)}.")
    if shards := shards_of(path):
        parts = [read_arrays(shard, keep_half=keep_half, apart=apart) for shard in shards]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if not path.stat().st_size:
        raise InputError(f"{path} is empty (0 bytes). Write it again.")
    try:
        arrays = _READERS[kind](path, apart) if kind in TABLES else _READERS[kind](path)
    except InputError:
        raise
    except _BROKEN as error:
        raise InputError(f"{path} could not be read as {kind}: {error}") from error
    if not arrays:
        raise InputError(f"{path} holds no arrays.")
    if keep_half:
        return arrays
    return {name: a.astype(np.float32) if a.dtype == np.float16 else a for name, a in arrays.items()}


def shard_names(path: Path, count: int) -> list[Path]:
    """The numbered files that a large file is split into.

    >>> [str(shard) for shard in shard_names(Path("a/latents.npz"), 2)]
    ['a/latents-00001-of-00002.npz', 'a/latents-00002-of-00002.npz']
    """
    return [path.with_stem(f"{path.stem}-{number:05d}-of-{count:05d}") for number in range(1, count + 1)]


def shards_of(path: Path) -> list[Path]:
    """The numbered files of a file that was split; empty if it was not. Raises InputError if one is missing."""
    if path.exists():
        return []
    first = sorted(path.parent.glob(f"{glob.escape(path.stem)}-00001-of-*{path.suffix}"))
    if not first:
        return []
    shards = shard_names(path, int(first[-1].stem.rpartition("-")[2]))
    missing = [str(shard) for shard in shards if not shard.is_file()]
    if missing:
        raise InputError(f"{path} was split into {len(shards)} files, but {missing[0]} is missing.")
    return shards


def write_arrays(path: Path | str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays in the format of the file name's suffix."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in _WRITERS:
        raise InputError(f"{path}: files of type '{path.suffix}' cannot be written. Known: {', '.join(_WRITERS)}.")
    if kind in TABLES:
        check_rows(arrays)
    write_bytes(path, _WRITERS[kind]({name: without_objects(name, array) for name, array in arrays.items()}))


def check_finite(name: str, array: np.ndarray) -> None:
    """Raise InputError for complex or non-numeric arrays, and for NaN and infinity, with their number and place."""
    if array.dtype.kind == "c":
        raise InputError(
            f"'{name}' must hold real numbers, but it holds {array.dtype}. "
            "Give real and imaginary parts as separate columns."
        )
    if array.dtype.kind not in "fiub":
        raise InputError(f"'{name}' must hold numbers, but it holds {array.dtype}. Does one of its columns hold text?")
    if not _all_finite(array):
        bad = ~np.isfinite(array)
        row = int(np.flatnonzero(bad.reshape(len(array), -1).any(1))[0])
        raise InputError(
            f"'{name}' has {int(bad.sum())} NaN or infinite values (first in row {row}){_bad_columns(bad)}. "
            "Remove those rows, or find out what produced them."
        )


def _all_finite(array: np.ndarray) -> bool:
    """Checked in parts, so that the mask of an array mapped from disk takes little memory."""
    if array.size <= CHECKED:
        return bool(np.isfinite(array).all())
    step = max(1, CHECKED * len(array) // array.size)
    return all(np.isfinite(array[start : start + step]).all() for start in range(0, len(array), step))


def _bad_columns(bad: np.ndarray) -> str:
    if bad.ndim != 2:
        return ""
    columns = [str(column) for column in np.flatnonzero(bad.any(0))]
    more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
    return f", in column{'s' if len(columns) > 1 else ''} {', '.join(columns[:5])}{more}"


def check_latents(shape: Sequence[int], rows: int) -> None:
    """Raise InputError unless latents have the shape (rows, d)."""
    if len(shape) != 2 or shape[0] != rows or shape[1] < 1:
        raise InputError(
            f"Latents must have shape ({rows}, d), one row for each observation, but the encoder (or projector) "
            f"returned {tuple(shape)}. Flatten or average the other dimensions."
        )


def check_rows(arrays: Mapping[str, np.ndarray]) -> None:
    """Raise InputError unless all arrays have the same number of rows."""
    if len({array.shape[:1] for array in arrays.values()}) > 1:
        lengths = ", ".join(f"'{name}' has {len(array) if array.ndim else 'none'}" for name, array in arrays.items())
        raise InputError(f"All arrays must have the same number of rows, but {lengths}.")


def _read_npy(path: Path) -> Arrays:
    with open(path, "rb") as file:
        return {"h": read_numpy(file, path.stat().st_size, path, mapped=True)}


def _read_npz(path: Path) -> Arrays:
    arrays: Arrays = {}
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        check_size(sum(entry.file_size for entry in entries), path)
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            with archive.open(entry) as file:
                arrays[name] = read_numpy(file, entry.file_size, f"'{name}' of {path}")
    if not arrays:
        raise InputError(f"{path} holds no arrays.")
    return arrays


def _read_safetensors(path: Path) -> Arrays:
    return parse_safetensors(path, path)


def _write_npy(arrays: Arrays) -> bytes:
    if len(arrays) != 1:
        raise InputError(f"A .npy file holds one array, but {len(arrays)} were given. Use .npz.")
    buffer = io.BytesIO()
    np.save(buffer, next(iter(arrays.values())), allow_pickle=False)
    return buffer.getvalue()


def _write_npz(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:  # np.savez refuses an array called 'file'
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return buffer.getvalue()


def _write_safetensors(arrays: Arrays) -> bytes:
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise InputError(f"A .safetensors file holds numbers only, but '{name}' is {array.dtype}. Use .npz.")
    return safetensors.numpy.save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


TABLES = (".csv", ".parquet")
_READERS: dict[str, Callable[..., Arrays]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".csv": read_csv,
    ".parquet": read_parquet,
}
_WRITERS = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".safetensors": _write_safetensors,
    ".csv": write_csv,
    ".parquet": write_parquet,
}


def group_numbers(groups: np.ndarray | None, n: int) -> np.ndarray:
    """The number 0, 1, ... of each row's group (n,); without groups, each row is its own group."""
    return np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
