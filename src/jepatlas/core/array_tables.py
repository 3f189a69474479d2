"""Named arrays as tables: .csv and .parquet.

The columns of a matrix `h` are called `h.0, h.1, …`; then every other column is a separate array. If no column has
such a name, the numeric columns form one matrix `h`, except for those whose names mean something else:

    ids, groups, labels, held, raw, untrained, cost, episode, step, state, view, index, …_next   always
    z                                                                        unless x and y exist (third coordinate)
    h, x, z                                                                  if there is a cost, an episode or a …_next
    …id, as in sample_id                                                     if its numbers are integers

in singular or plural, upper or lower case. An id must not become a coordinate of a latent, because it would align any
two models. An empty cell among numbers is NaN. The row index that pandas writes is dropped.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, require
from jepatlas.core.parsing import check_size

__all__ = ["is_id", "read_csv", "read_parquet", "without_objects", "write_csv", "write_parquet"]

Arrays = dict[str, np.ndarray]

STATES = ("h", "x", "z")
SUCCESSORS = tuple(f"{name}_next" for name in STATES)
EXPERIENCE = ("cost", "episode", *SUCCESSORS)
APART = ("id", "group", "label", "held", "raw", "untrained", "step", "state", "view", "index", *EXPERIENCE)
"""Names of columns that are not coordinates of a latent, and so are their plurals."""


def read_csv(path: Path, apart: Collection[str] = ()) -> Arrays:
    with open(path, newline="", encoding="utf-8-sig") as file:  # Excel writes a byte order mark
        reader = csv.reader(file)
        lines = [(reader.line_num, row) for row in reader if row]
    if not lines:
        raise InputError(f"{path} is empty.")
    rows = [row for _, row in lines]
    for number, row in lines:
        if len(row) != len(rows[0]):
            raise InputError(f"{path}: line {number} has {len(row)} cells, the first has {len(rows[0])}.")
    header = rows.pop(0) if _is_header(rows) else [str(i) for i in range(len(rows[0]))]
    columns = [(name, _column([row[i] for row in rows])) for i, name in enumerate(header)]
    return _from_table(path, columns, apart)


def write_csv(arrays: Arrays) -> bytes:
    columns = _to_table(arrays)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return buffer.getvalue().encode()


def read_parquet(path: Path, apart: Collection[str] = ()) -> Arrays:
    parquet = require("pyarrow.parquet", "interop", "Reading .parquet files")
    groups = parquet.read_metadata(path)
    check_size(sum(groups.row_group(i).total_byte_size for i in range(groups.num_row_groups)), path)
    table = parquet.read_table(path)
    columns: list[tuple[str, np.ndarray]] = []
    for name in table.column_names:
        column = table[name].to_numpy()
        if column.dtype.kind == "O" and len(column) and isinstance(column[0], np.ndarray):  # a column of vectors
            columns += [(f"{name}.{i}", part) for i, part in enumerate(np.stack(column).T)]
        else:
            columns.append((name, without_objects(name, column)))
    return _from_table(path, columns, apart)


def write_parquet(arrays: Arrays) -> bytes:
    pyarrow = require("pyarrow", "interop", "Writing .parquet files")
    parquet = require("pyarrow.parquet", "interop", "Writing .parquet files")
    buffer = io.BytesIO()
    native = {name: c.astype(c.dtype.newbyteorder("="), copy=False) for name, c in _to_table(arrays).items()}
    parquet.write_table(pyarrow.table(native), buffer)
    return buffer.getvalue()


def without_objects(name: str, array: np.ndarray) -> np.ndarray:
    """Strings that pandas and pyarrow keep as Python objects, as a numpy array; other objects are refused."""
    if array.dtype.kind != "O":
        return array
    if not all(isinstance(item, str) for item in array.flat):
        raise InputError(f"'{name}' holds Python objects that are neither numbers nor strings, or has missing values.")
    return array.astype(str)


def is_id(name: str, column: np.ndarray) -> bool:
    """Whether a column holds integers or strings and has a name such as `sample_id`; missing ids may be NaN."""
    if not _stem(name).endswith("id") or column.ndim != 1 or column.dtype.kind not in "iufU":
        return False
    return column.dtype.kind != "f" or bool(np.all(np.isnan(column) | (column == np.rint(column))))


def _is_header(rows: list[list[str]]) -> bool:
    """Whether the first row is not numeric, or counts 0, 1, 2, … above fractions, as pandas numbers columns."""
    if not all(map(_is_number, rows[0])):
        return True
    counted = rows[0] == [str(i) for i in range(len(rows[0]))]
    return counted and len(rows) > 1 and not any(_is_whole(cell) for cell in rows[1])


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python accepts 2021_03 as a number


def _is_whole(cell: str) -> bool:
    return re.fullmatch(r"\s*[+-]?\d+\s*", cell) is not None


def _column(cells: list[str]) -> np.ndarray:
    if cells and all(map(_is_whole, cells)):  # floats would lose the last digits of long ids
        whole = [int(cell) for cell in cells]
        return np.array(whole) if min(whole) >= -(2**63) and max(whole) < 2**63 else np.array(cells)
    filled = [cell for cell in cells if cell.strip()]
    if not all(map(_is_number, filled)) or (cells and not filled):
        return np.array(cells)
    return np.array([float(cell) if cell.strip() else np.nan for cell in cells])


def _from_table(path: Path, columns: list[tuple[str, np.ndarray]], apart: Collection[str]) -> Arrays:
    matrices: dict[str, dict[Any, np.ndarray]] = {}
    plain: dict[Any, np.ndarray] = {}
    for name, column in columns:
        stem, _, index = name.rpartition(".")
        place, key = (matrices.setdefault(stem, {}), int(index)) if stem and index.isdecimal() else (plain, name)
        if key in place and name:
            raise InputError(f"{path} has two columns called '{name}'.")
        place[key] = column
    plain = {name: column for name, column in plain.items() if not _is_index(name)}
    arrays = {stem: np.stack([parts[i] for i in sorted(parts)], 1) for stem, parts in matrices.items()}
    return arrays | plain if matrices else _gathered(plain, apart)


def _gathered(plain: Arrays, others: Collection[str]) -> Arrays:
    """Numeric columns as one matrix `h`, except for `others` and those with another meaning."""
    names = {_stem(name) for name in plain}
    numeric = {name: column for name, column in plain.items() if column.dtype.kind in "fiub"}
    h = {
        name: column
        for name, column in numeric.items()
        if not (name in others or _is_apart(_stem(name), names) or is_id(name, column))
    }
    apart = {name: column for name, column in plain.items() if name not in h}
    # states are matrices, also if they have one dimension
    apart |= {name: column[:, None] for name, column in apart.items() if name in (*STATES, *SUCCESSORS)}
    return ({"h": np.stack(list(h.values()), 1)} if h else {}) | apart


def _stem(name: str) -> str:
    return name.strip().casefold().removesuffix("s")


def _is_apart(name: str, names: set[str]) -> bool:
    if name in STATES and not names.isdisjoint(EXPERIENCE):
        return True
    return name in APART or (name == "z" and not {"x", "y"} <= names)


def _is_index(name: str) -> bool:
    """Whether a column holds the row numbers that pandas writes, under any of its names for them."""
    return re.fullmatch(r"|__index_level_\d+__|Unnamed: \d+(_level_\d+)?|level_\d+", name) is not None


def _to_table(arrays: Arrays) -> Arrays:
    columns: Arrays = {}
    for name, array in arrays.items():
        if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
            raise InputError(f"A table holds one row per sample, but '{name}' has shape {array.shape}. Use .npz.")
        columns |= {f"{name}.{i}": array[:, i] for i in range(array.shape[1])} if array.ndim == 2 else {name: array}
    return columns
