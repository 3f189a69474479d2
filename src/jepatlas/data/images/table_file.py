"""The file of a multi-view table, read into columns of texts; or a clear word about what is wrong, and in which line.

A cell of nothing but white space is an empty one. Every row has a state and a view. A group is what a split keeps
whole, so either all rows have one or none has: a column of empty groups is left out. A label may be missing, for
only a probe asks for it.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["read_columns"]

NEEDED = ("path", "state", "view")
FILLED = {
    "state": "Name the state that each image shows.",
    "view": "Name the view that each image is seen from.",
    "group": "Name the group of every row, or of none.",
}
TABLE = f"a multi-view table is a CSV in UTF-8 whose first line names its columns: {', '.join(NEEDED)} and others"
SHOWN = 200  # characters of a first line that is something else

Rows = list[tuple[int, dict[Any, Any]]]  # each with its line


def read_columns(path: Path) -> tuple[dict[str, np.ndarray], list[int]]:
    """The columns of a table, each (rows,), and the line of each row."""
    names, rows = _read(path)
    _check_shape(path, names, rows)
    lines = [line for line, _ in rows]
    columns = {name: np.array([row[name] if row[name].strip() else "" for _, row in rows]) for name in names}
    if "group" in columns and not (columns["group"] != "").any():
        del columns["group"]
    for name in FILLED:
        if name in columns:
            _check_filled(path, name, columns[name], lines)
    return columns, lines


def _read(path: Path) -> tuple[list[str], Rows]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:  # Excel begins a file with a mark
            return _parsed(path, file)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8 ({error.reason}), but {TABLE}. Save it as one.") from error
    except OSError as error:
        raise InputError(f"{path} could not be read: {error.strerror}.") from error


def _parsed(path: Path, file: Iterable[str]) -> tuple[list[str], Rows]:
    reader = csv.DictReader(_without_nul(path, file))
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InputError(
            f"{path}: what begins in line {reader.line_num + 1} could not be read ({error}), but {TABLE}. "
            "Is a quotation mark left open there?"
        ) from error
    return list(reader.fieldnames or []), rows


def _without_nul(path: Path, file: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(file, start=1):
        if "\0" in line:
            raise InputError(f"{path}: line {number} has a NUL byte, but {TABLE}. Save it as one.")
        yield line


def _check_shape(path: Path, names: list[str], rows: Rows) -> None:
    """The columns that are needed are there, and as many cells in each row."""
    if not names:
        raise InputError(f"{path} {'begins with an empty line' if rows else 'is empty'}, but {TABLE}.")
    if missing := [name for name in NEEDED if name not in names]:
        verb = "is" if len(missing) == 1 else "are"
        raise InputError(
            f"{path}: a multi-view table needs the columns {', '.join(NEEDED)}, but {', '.join(missing)} "
            f"{verb} missing. Found: {', '.join(names)[:SHOWN]}.{_separated(names)}"
        )
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(
            f"{path} has the column '{twice[0]}' {names.count(twice[0])} times. Keep one of them, or name "
            "the others otherwise."
        )
    short = [line for line, row in rows if None in row or None in row.values()]
    if short or not rows:
        where = f"line {short[0]} has not as many cells as the first" if short else "it has no rows"
        raise InputError(f"{path}: {where}.")


def _separated(names: list[str]) -> str:
    other = next((mark for mark in ";\t|" if len(names) == 1 and mark in names[0]), None)
    return "" if other is None else f" Cells are separated by commas, but here by {other!r}."


def _check_filled(path: Path, name: str, cells: np.ndarray, lines: list[int]) -> None:
    if (empty := np.flatnonzero(cells == "")).size:
        raise InputError(
            f"{path}: the column '{name}' is empty in {empty.size} of {len(cells)} rows; the first is row "
            f"{empty[0]}, line {lines[empty[0]]}. {FILLED[name]}"
        )
