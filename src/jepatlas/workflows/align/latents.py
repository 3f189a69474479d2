"""What a person brings to be aligned: files of latents, with ids of their states, groups, labels, raw inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from jepatlas.alignment.paired import Latents
from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.tables import is_id

__all__ = ["read_latents", "read_one"]

NAMED = ("ids", "groups", "labels")
TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def read_latents(
    path: Path,
    *,
    ids: Path | None = None,
    groups: Path | None = None,
    labels: Path | None = None,
    raw: Path | None = None,
) -> Latents:
    """Latents from a file in any format; what it does not hold itself may come from files of their own.

    Arrays called `layer…` are a model's layers, in the order of their names; without an `h` the last one is it.
    """
    arrays = read_arrays(path)
    _refuse_misspelt(path, arrays)
    _refuse_other_ids(path, arrays)
    layers = {name: arrays[name] for name in sorted(arrays, key=_in_order) if name.startswith("layer")}
    h = arrays.get("h", next(reversed(layers.values()), None))
    if h is None:
        raise InputError(f"{path} has no array 'h' (the latents). Found: {', '.join(arrays)}.")
    given = {"ids": ids, "groups": groups, "labels": labels, "raw": raw}
    extra = {kind: arrays.get(kind) if file is None else read_one(file) for kind, file in given.items()}
    for kind in NAMED:
        if (array := extra[kind]) is not None:
            extra[kind] = _column(array, f"{given[kind] or path}: {kind}")
    if (marks := arrays.get("held")) is not None:
        extra["held"] = _truths(_column(marks, f"{path}: held"), f"{path}: held")
    extra["untrained"] = arrays.get("untrained")
    return Latents(path.stem, h, layers=layers, **extra)


def _refuse_misspelt(path: Path, names: Iterable[str]) -> None:
    """Rows whose ids go unread would be paired by their place, and nobody would know."""
    names = set(names)
    for name in sorted(names - set(NAMED)):
        plain = name.strip().casefold()
        meant = next((kind for kind in NAMED if plain in (kind, kind.removesuffix("s"))), None)
        if meant is not None and meant not in names:
            raise InputError(f"{path} has '{name}', which is not read. Call it '{meant}', or take it out of the file.")


def _refuse_other_ids(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """`sample_id` and the like: one whole number or text a row, and nothing else that says which row is which."""
    strange = sorted(name for name, column in arrays.items() if is_id(name, column))
    if strange and "ids" not in arrays:
        raise InputError(f"{path} has '{strange[0]}', which is not read. Call it 'ids', or take it out of the file.")


def read_one(path: Path) -> np.ndarray:
    """The one array of a file; a text file with one value a line will do."""
    if path.suffix.lower() == ".txt":
        if not path.is_file():
            raise InputError(f"There is no file {path}.")
        try:
            return np.array(path.read_text(encoding="utf-8").splitlines())
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not a text in UTF-8: {error}.") from error
    arrays = read_arrays(path)
    if len(arrays) != 1:
        raise InputError(f"{path} must hold one array, but it holds {', '.join(arrays)}.")
    return next(iter(arrays.values()))


def _column(array: np.ndarray, what: str) -> np.ndarray:
    """One value per row; a table of one column has one, too."""
    if array.ndim == 0 or array.size != len(array):
        raise InputError(f"{what} must be one value per row, but its shape is {array.shape}.")
    return array.reshape(len(array))


def _truths(column: np.ndarray, what: str) -> np.ndarray:
    """A column of marks as booleans: those of numpy, zeros and ones, or what a CSV has of either.

    >>> _truths(np.array(["True", "False"]), "held")
    array([ True, False])
    """
    if column.dtype.kind == "b":
        return column
    told = [TRUTHS.get(f"{mark:g}" if column.dtype.kind in "iuf" else str(mark).casefold()) for mark in column]
    if None in told:
        row = told.index(None)
        raise InputError(f"{what} must be true or false (or 1 and 0) in each row, but row {row} has '{column[row]}'.")
    return np.array(told, bool)


def _in_order(name: str) -> tuple[str, int]:
    """`layer2` before `layer10`."""
    digits = name.rstrip("0123456789")
    return digits, int(name[len(digits) :] or 0)
