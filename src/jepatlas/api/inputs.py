"""Conversion of user input to numpy arrays: numpy, torch, pandas, lists, and lists of episodes.

Every error is an InputError that names the argument.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.array_tables import without_objects
from jepatlas.core.arrays import check_finite, read_arrays
from jepatlas.core.errors import InputError

__all__ = ["Matrix", "as_array", "as_column", "as_folder", "as_matrix", "as_path", "combine_groups", "read_matrix"]

ARRAY_KINDS = "a numpy array, a torch tensor, a pandas DataFrame, or a list of these (episodes)"


@dataclass(frozen=True)
class Matrix:
    """Rows of samples; `lengths` are those of the episodes that were given as a list."""

    rows: np.ndarray  # (b, d)
    lengths: tuple[int, ...] | None = None

    @property
    def groups(self) -> np.ndarray | None:
        """The number of the episode of each row; None if there are no episodes."""
        return None if self.lengths is None else np.repeat(np.arange(len(self.lengths)), self.lengths)


def as_path(name: str, given: object) -> Path | None:
    """The path of an existing file or folder; None if the argument is not a path."""
    if not isinstance(given, str | os.PathLike):
        return None
    path = Path(given)
    if not path.exists():
        raise InputError(f"'{name}' is the path {path}, but there is no such file or folder.")
    return path


def as_folder(name: str, given: object) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"'{name}' must be the path of a folder, not a {type(given).__name__}.")
    return Path(given)


def read_matrix(name: str, path: Path) -> np.ndarray:
    """The array `name` of a file, or its latents `h`, or its only array."""
    arrays = read_arrays(path)
    for key in (name, "h"):
        if key in arrays:
            return arrays[key]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    raise InputError(f"'{name}': {path} must hold '{name}' or one array, but it holds {', '.join(arrays)}.")


def as_matrix(name: str, given: Any) -> Matrix:
    """A finite matrix with one row per sample. A list of matrices is a list of episodes."""
    path = as_path(name, given)
    if path is not None:
        given = read_matrix(name, path)
    if isinstance(given, Sequence) and len(given) and all(_dimensions(item) == 2 for item in given):
        parts = [as_matrix(f"{name}[{number}]", item).rows for number, item in enumerate(given)]
        widths = {part.shape[1] for part in parts}
        if len(widths) > 1:
            raise InputError(f"'{name}': all episodes must have the same number of columns, but have {sorted(widths)}.")
        return Matrix(np.concatenate(parts), tuple(map(len, parts)))
    array = as_array(name, given)
    if array.ndim == 2 and not len(array):
        raise InputError(f"'{name}' has no rows: its shape is {array.shape}. Rows are samples.")
    if array.ndim != 2 or 0 in array.shape:
        hint = " Use x[:, None] for one coordinate." if array.ndim == 1 and array.size else ""
        raise InputError(
            f"'{name}' must be a matrix with one row per sample, (rows, columns), but has shape {array.shape}.{hint}"
        )
    check_finite(name, array)
    return Matrix(array)


def _dimensions(item: object) -> int | None:
    """The number of dimensions of an array, tensor or table; None for anything else."""
    return getattr(item, "ndim", None)


def as_array(name: str, given: Any, *, keep_half: bool = False) -> np.ndarray:
    """Numbers as a numpy array of any shape. Half precision becomes float32, without loss.

    `keep_half` keeps float16, from which an audit derives the rounding error of energies.
    """
    array = _to_numpy(name, given)
    if array.dtype.kind == "O":
        raise InputError(f"'{name}' must hold numbers, but it holds Python objects{_first_object(array)}.")
    if array.dtype.kind in "fiub":
        return array.astype(np.float32) if array.dtype == np.float16 and not keep_half else array
    if array.dtype.kind == "c":
        raise InputError(f"'{name}' must hold real numbers, but it holds {array.dtype}.")
    raise InputError(f"'{name}' must hold numbers, but it holds {array.dtype}.")


def as_column(name: str, given: Any, rows: int) -> np.ndarray:
    """One label (a number or a string) for each of the rows."""
    path = as_path(name, given)
    column = read_matrix(name, path) if path is not None else _to_numpy(name, given)
    try:
        column = without_objects(name, column)
    except InputError as error:
        raise InputError(f"'{name}' must hold numbers or strings{_first_object(column)}. Is one missing?") from error
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (rows,):
        raise InputError(f"'{name}' must have one value for each of the {rows} rows, but has shape {column.shape}.")
    if column.dtype.kind == "f":
        check_finite(name, column)
    return column


def _to_numpy(name: str, given: Any) -> np.ndarray:
    if given is None:
        raise InputError(f"'{name}' is missing: give {ARRAY_KINDS}.")
    if isinstance(given, Mapping):
        raise InputError(f"'{name}' must be {ARRAY_KINDS}, not a {type(given).__name__}. Give one of its arrays.")
    if hasattr(given, "detach"):
        given = _from_tensor(name, given)
    elif hasattr(given, "to_numpy"):  # a DataFrame or a Series
        given = given.to_numpy()
    elif isinstance(given, list | tuple) and any(hasattr(item, "detach") for item in given):
        given = [_from_tensor(name, item) if hasattr(item, "detach") else item for item in given]
    if np.ma.is_masked(given):
        raise InputError(f"'{name}' has {np.ma.count_masked(given)} masked values. Remove those rows.")
    try:
        return np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged rows
        raise InputError(f"'{name}' cannot be converted to an array: {error} Give {ARRAY_KINDS}.") from error


def _from_tensor(name: str, tensor: Any) -> Any:
    """A tensor of any device; types that numpy lacks, such as bfloat16, become float32."""
    if tensor.device.type == "meta":
        raise InputError(f"'{name}' is on the device 'meta', where tensors hold no numbers.")
    tensor = tensor.detach().to_dense().cpu()
    try:
        return tensor.numpy()
    except TypeError:
        return tensor.float().numpy()


def _first_object(array: np.ndarray) -> str:
    """The type of the first item that is not a number."""
    for item in array.flat:
        if not isinstance(item, int | float | np.number):
            return f", such as a {type(item).__name__}"
    return ""


def combine_groups(groups: Any, **matrices: Matrix | None) -> np.ndarray | None:
    """Groups of rows: those given, or the episodes of the lists, which must agree; None without either."""
    known = {name: matrix for name, matrix in matrices.items() if matrix is not None}
    first_name, first = next(iter(known.items()))
    for name, matrix in known.items():
        if len(matrix.rows) != len(first.rows):
            raise InputError(f"'{name}' has {len(matrix.rows)} rows, but '{first_name}' has {len(first.rows)}.")
        if None not in (matrix.lengths, first.lengths) and matrix.lengths != first.lengths:
            raise InputError(f"The episodes of '{name}' and of '{first_name}' have different lengths.")
    listed = next((matrix for matrix in known.values() if matrix.lengths is not None), None)
    if groups is not None and listed is not None:
        raise InputError("'groups' must not be given with lists of episodes: each episode is a group.")
    if listed is not None:
        return listed.groups
    return None if groups is None else as_column("groups", groups, len(first.rows))
