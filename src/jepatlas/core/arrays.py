"""Latents in every format people keep them in: .npy, .npz, .safetensors, .csv, .parquet. Nothing is ever unpickled.

A file is a set of named arrays with one row per sample. How tables name theirs is said in `tables.py`.
"""

from __future__ import annotations

import csv
import importlib
import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from jepatlas.core.errors import InputError
from jepatlas.core.files import write_bytes
from jepatlas.core.tables import read_csv, read_parquet, without_objects, write_csv, write_parquet

__all__ = ["check_finite", "check_latents", "check_rows", "read_arrays", "write_arrays"]

Arrays = dict[str, np.ndarray]

_BROKEN = (ValueError, OSError, EOFError, RuntimeError, SafetensorError, zipfile.BadZipFile, zlib.error, csv.Error)


def read_arrays(path: Path | str) -> Arrays:
    """All arrays of a file by name; a lone .npy array is called `h`."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in _READERS:
        raise InputError(f"{path}: files of type '{path.suffix}' are not read. Known: {', '.join(_READERS)}.")
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    try:
        return _READERS[kind](path)
    except InputError:
        raise
    except _BROKEN as error:
        raise InputError(f"{path} could not be read as {kind}: {error}") from error


def write_arrays(path: Path | str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays in the format that the ending names."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in _WRITERS:
        raise InputError(f"{path}: files of type '{path.suffix}' are not written. Known: {', '.join(_WRITERS)}.")
    if kind in (".csv", ".parquet"):
        check_rows(arrays)
    write_bytes(path, _WRITERS[kind]({name: without_objects(name, array) for name, array in arrays.items()}))


def check_finite(name: str, array: np.ndarray) -> None:
    """Refuse NaN and infinity, and say how many there are, where the first one is, and in which columns they are."""
    if array.dtype.kind == "c":
        raise InputError(
            f"'{name}' must hold real numbers, but it holds {array.dtype}. "
            "Give real and imaginary parts as columns of their own."
        )
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"'{name}' must hold numbers, but it holds {array.dtype}. Is there a text in one of its columns?"
        )
    bad = ~np.isfinite(array)
    if bad.any():
        row = int(np.flatnonzero(bad.reshape(len(array), -1).any(1))[0])
        columns = [str(column) for column in np.flatnonzero(bad.any(0))] if array.ndim == 2 else []
        shown = ", ".join(columns[:5]) + (f" and {len(columns) - 5} more" if len(columns) > 5 else "")
        where = f", in column{'s' if len(columns) > 1 else ''} {shown}" if columns else ""
        count = int(bad.sum())
        values = f"{count} {'value that is' if count == 1 else 'values that are'} NaN or infinite"
        raise InputError(
            f"'{name}' has {values} (the first in row {row}){where}. Remove those rows, or find out what produced them."
        )


def check_latents(shape: Sequence[int], rows: int) -> None:
    """Refuse latents that are not (b, d), one row for each of the `rows` observations."""
    if len(shape) != 2 or shape[0] != rows or shape[1] < 1:
        raise InputError(
            f"Latents must have the shape (b, d), one row for each observation: ({rows}, d) here, but the encoder (or "
            f"projector) gave {tuple(shape)}. Flatten or average what is more, so that each row is one vector."
        )


def check_rows(arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse arrays of different length."""
    if len({array.shape[:1] for array in arrays.values()}) > 1:
        lengths = ", ".join(f"'{name}' has {len(array) if array.ndim else 'none'}" for name, array in arrays.items())
        raise InputError(f"All arrays must have the same number of rows, but {lengths}.")


def _read_npy(path: Path) -> Arrays:
    with open(path, "rb") as file:  # not np.load, which also opens whatever else a file of this name may hold
        return {"h": np.lib.format.read_array(file, allow_pickle=False)}


def _read_npz(path: Path) -> Arrays:
    arrays: Arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as file:
                arrays[name.removesuffix(".npy")] = np.lib.format.read_array(file, allow_pickle=False)
    return arrays


def _read_safetensors(path: Path) -> Arrays:
    try:
        return safetensors.numpy.load_file(path)
    except TypeError:  # bfloat16, which numpy does not know: by way of torch, which report must not import
        tensors = importlib.import_module("safetensors.torch").load_file(path)
        return {name: (t.double() if t.is_floating_point() else t).numpy() for name, t in tensors.items()}


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


_READERS = {
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
