"""Latents in every format people keep them in: .npy, .npz, .safetensors, .csv, .parquet. Nothing is ever unpickled.

A file is a set of named arrays with one row per sample. In tables the columns of a matrix `h` are called
`h.0, h.1, …`; a table of other numeric columns is read as one matrix `h`, columns that are not numeric as arrays of their own.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from jepatlas.base.errors import InputError, require
from jepatlas.base.files import write_bytes

__all__ = ["check_finite", "check_rows", "read_arrays", "write_arrays"]

Arrays = dict[str, np.ndarray]


def read_arrays(path: Path | str) -> Arrays:
    """All arrays of a file by name; a lone .npy array is called `h`."""
    path = Path(path)
    if path.suffix not in _READERS:
        raise InputError(f"{path}: files of type '{path.suffix}' are not read. Known: {', '.join(_READERS)}.")
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    try:
        return _READERS[path.suffix](path)
    except (ValueError, OSError, EOFError, SafetensorError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} could not be read as {path.suffix}: {error}") from error


def write_arrays(path: Path | str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays in the format that the ending names."""
    path = Path(path)
    if path.suffix not in _WRITERS:
        raise InputError(f"{path}: files of type '{path.suffix}' are not written. Known: {', '.join(_WRITERS)}.")
    write_bytes(path, _WRITERS[path.suffix](dict(arrays)))


def check_finite(name: str, array: np.ndarray) -> None:
    """Refuse NaN and infinity, and say how many there are and where the first one is."""
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


def _read_npy(path: Path) -> Arrays:
    return {"h": np.load(path, allow_pickle=False)}


def _read_npz(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _read_csv(path: Path) -> Arrays:
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    if not rows:
        raise InputError(f"{path} is empty.")
    ragged = [i for i, row in enumerate(rows) if len(row) != len(rows[0])]
    if ragged:
        raise InputError(
            f"{path}: line {ragged[0] + 1} has {len(rows[ragged[0]])} cells, the first has {len(rows[0])}."
        )
    header = [str(i) for i in range(len(rows[0]))] if all(map(_is_number, rows[0])) else rows.pop(0)
    return _from_table({name: _column([row[i] for row in rows]) for i, name in enumerate(header)})


def _read_parquet(path: Path) -> Arrays:
    parquet = require("pyarrow.parquet", "interop", "Reading .parquet files")
    table = parquet.read_table(path)
    return _from_table({name: table[name].to_numpy() for name in table.column_names})


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _column(cells: list[str]) -> np.ndarray:
    return np.array([float(cell) for cell in cells]) if all(map(_is_number, cells)) else np.array(cells)


def _from_table(columns: Arrays) -> Arrays:
    matrices: dict[str, dict[int, np.ndarray]] = {}
    plain: Arrays = {}
    for name, column in columns.items():
        stem, _, index = name.rpartition(".")
        if stem and index.isdecimal():
            matrices.setdefault(stem, {})[int(index)] = column
        else:
            plain[name] = column
    numeric = {name: column for name, column in plain.items() if column.dtype.kind in "fiub"}
    arrays = {stem: np.stack([parts[i] for i in sorted(parts)], 1) for stem, parts in matrices.items()}
    if not matrices and numeric:
        return {"h": np.stack(list(numeric.values()), 1)} | {k: v for k, v in plain.items() if k not in numeric}
    return arrays | plain


def _to_table(arrays: Arrays) -> Arrays:
    check_rows(arrays)
    columns: Arrays = {}
    for name, array in arrays.items():
        matrix = {f"{name}.{i}": array[:, i] for i in range(array.shape[1])} if array.ndim == 2 else {name: array}
        columns |= matrix
    return columns


def _write_npy(arrays: Arrays) -> bytes:
    if len(arrays) != 1:
        raise InputError(f"A .npy file holds one array, but {len(arrays)} were given. Use .npz.")
    buffer = io.BytesIO()
    np.save(buffer, next(iter(arrays.values())), allow_pickle=False)
    return buffer.getvalue()


def _write_npz(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _write_safetensors(arrays: Arrays) -> bytes:
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
    parquet.write_table(pyarrow.table(_to_table(arrays)), buffer)
    return buffer.getvalue()


_READERS = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".safetensors": safetensors.numpy.load_file,
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
