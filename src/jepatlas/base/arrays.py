"""Latents in every format people keep them in: .npy, .npz, .safetensors, .csv, .parquet. Nothing is ever unpickled.

A file is a set of named arrays with one row per sample. In tables the columns of a matrix `h` are called
`h.0, h.1, …`; a table of other numeric columns is read as one matrix `h`, columns that are not numeric as
arrays of their own. An empty cell among numbers is NaN; the row index that pandas writes is left out.
"""

from __future__ import annotations

import csv
import importlib
import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from jepatlas.base.errors import InputError, require
from jepatlas.base.files import write_bytes

__all__ = ["check_finite", "check_rows", "read_arrays", "write_arrays"]

Arrays = dict[str, np.ndarray]

_BROKEN = (EOFError, SafetensorError, csv.Error, zipfile.BadZipFile, zlib.error)  # none of them a ValueError


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
    except (
        ValueError,
        OSError,
        EOFError,
        SafetensorError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
        csv.Error,
    ) as error:
        raise InputError(f"{path} could not be read as {kind}: {error}") from error


def write_arrays(path: Path | str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays in the format that the ending names."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in _WRITERS:
        raise InputError(f"{path}: files of type '{path.suffix}' are not written. Known: {', '.join(_WRITERS)}.")
    write_bytes(path, _WRITERS[kind]({name: _without_objects(name, array) for name, array in arrays.items()}))


def check_finite(name: str, array: np.ndarray) -> None:
    """Refuse NaN and infinity, and say how many there are and where the first one is."""
    if array.dtype.kind not in "fiubc":
        raise InputError(
            f"'{name}' must hold numbers, but it holds {array.dtype}. Is there a text in one of its columns?"
        )
    bad = ~np.isfinite(array)
    if bad.any():
        row = int(np.flatnonzero(bad.reshape(len(array), -1).any(1))[0])
        raise InputError(
            f"'{name}' has {int(bad.sum())} values that are NaN or infinite (the first in row {row}). "
            "Remove those rows, or find out what produced them."
        )


def check_rows(arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse arrays of different length."""
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"'{name}' has {len(array)}" for name, array in arrays.items())
        raise InputError(f"All arrays must have the same number of rows, but {lengths}.")


def _without_objects(name: str, array: np.ndarray) -> np.ndarray:
    """Texts that pandas and pyarrow keep as Python objects become numpy's; other objects would need pickle."""
    if array.dtype.kind != "O":
        return array
    if not all(isinstance(item, str) for item in array.flat):
        raise InputError(f"'{name}' holds Python objects that are neither numbers nor text, or has missing values.")
    return array.astype(str)


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


def _read_csv(path: Path) -> Arrays:
    with open(path, newline="", encoding="utf-8-sig") as file:  # Excel begins a file with a mark
        reader = csv.reader(file)
        lines = [(reader.line_num, row) for row in reader if row]
    if not lines:
        raise InputError(f"{path} is empty.")
    rows = [row for _, row in lines]
    for number, row in lines:
        if len(row) != len(rows[0]):
            raise InputError(f"{path}: line {number} has {len(row)} cells, the first has {len(rows[0])}.")
    header = rows.pop(0) if _is_header(rows) else [str(i) for i in range(len(rows[0]))]
    return _from_table(path, [(name, _column([row[i] for row in rows])) for i, name in enumerate(header)])


def _is_header(rows: list[list[str]]) -> bool:
    """Whether the first row is not all numbers, or is 0, 1, 2, … above fractions, as pandas numbers its columns."""
    if not all(map(_is_number, rows[0])):
        return True
    counted = rows[0] == [str(i) for i in range(len(rows[0]))]
    return counted and len(rows) > 1 and not any(_is_whole(cell) for cell in rows[1])


def _read_parquet(path: Path) -> Arrays:
    parquet = require("pyarrow.parquet", "interop", "Reading .parquet files")
    table = parquet.read_table(path)
    columns: list[tuple[str, np.ndarray]] = []
    for name in table.column_names:
        column = table[name].to_numpy()
        if column.dtype.kind == "O" and len(column) and isinstance(column[0], np.ndarray):  # a column of vectors
            columns += [(f"{name}.{i}", part) for i, part in enumerate(np.stack(column).T)]
        else:
            columns.append((name, _without_objects(name, column)))
    return _from_table(path, columns)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 2021_03 as a number


def _is_whole(cell: str) -> bool:
    return re.fullmatch(r"\s*[+-]?\d+\s*", cell) is not None


def _column(cells: list[str]) -> np.ndarray:
    if cells and all(map(_is_whole, cells)):  # as floats, long ids would lose their last digits
        whole = [int(cell) for cell in cells]
        return np.array(whole) if min(whole) >= -(2**63) and max(whole) < 2**63 else np.array(cells)
    filled = [cell for cell in cells if cell.strip()]
    if not all(map(_is_number, filled)) or (cells and not filled):
        return np.array(cells)
    return np.array([float(cell) if cell.strip() else np.nan for cell in cells])


def _from_table(path: Path, columns: list[tuple[str, np.ndarray]]) -> Arrays:
    matrices: dict[str, dict[Any, np.ndarray]] = {}
    plain: dict[Any, np.ndarray] = {}
    for name, column in columns:
        stem, _, index = name.rpartition(".")
        place, key = (matrices.setdefault(stem, {}), int(index)) if stem and index.isdecimal() else (plain, name)
        if key in place and name:
            raise InputError(f"{path} has two columns called '{name}'.")
        place[key] = column
    for index in ("", "__index_level_0__"):
        plain.pop(index, None)
    numeric = {name: column for name, column in plain.items() if column.dtype.kind in "fiub"}
    arrays = {stem: np.stack([parts[i] for i in sorted(parts)], 1) for stem, parts in matrices.items()}
    if not matrices and numeric:
        return {"h": np.stack(list(numeric.values()), 1)} | {k: v for k, v in plain.items() if k not in numeric}
    return arrays | plain


def _to_table(arrays: Arrays) -> Arrays:
    columns: Arrays = {}
    for name, array in arrays.items():
        if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
            raise InputError(f"A table holds one row per sample, but '{name}' has shape {array.shape}. Use .npz.")
        columns |= {f"{name}.{i}": array[:, i] for i in range(array.shape[1])} if array.ndim == 2 else {name: array}
    check_rows(arrays)
    return columns


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


def _write_csv(arrays: Arrays) -> bytes:
    columns = _to_table(arrays)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return buffer.getvalue().encode()


def _write_parquet(arrays: Arrays) -> bytes:
    pyarrow = require("pyarrow", "interop", "Writing .parquet files")
    parquet = require("pyarrow.parquet", "interop", "Writing .parquet files")
    buffer = io.BytesIO()
    native = {name: c.astype(c.dtype.newbyteorder("="), copy=False) for name, c in _to_table(arrays).items()}
    parquet.write_table(pyarrow.table(native), buffer)
    return buffer.getvalue()


_READERS = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
_WRITERS = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".safetensors": _write_safetensors,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
