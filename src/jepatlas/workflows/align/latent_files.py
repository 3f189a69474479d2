"""Read files of latents and pair the rows of two models by state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jepatlas.alignment import Latents, PairedLatents, match_ids
from jepatlas.core.array_tables import is_id
from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError

__all__ = ["check_ids", "match", "model_names", "read_array", "read_latents", "read_pair"]

COLUMNS = ("ids", "groups", "labels")
BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
FEWEST = 16
"""Fewest shared states: half of them is held out, and intervals come from halves of these with at least 4 rows."""


def read_pair(
    a: Path,
    b: Path,
    *,
    ids: tuple[Path | None, Path | None] = (None, None),
    groups: Path | None = None,
    labels: Path | None = None,
    raw: tuple[Path | None, Path | None] = (None, None),
    within: str | None = None,
    intersect: bool = False,
) -> PairedLatents:
    """Read the latents of two models and pair their rows (see `match`). Groups and labels are those of a's rows.

    `within` is the name of a column in either file, or a file with one value for each of a's rows.
    """
    name_a, name_b = model_names([a, b])
    first = read_latents(a, name=name_a, ids=ids[0], groups=groups, labels=labels, raw=raw[0], within=within)
    second = read_latents(b, name=name_b, ids=ids[1], raw=raw[1], within=within)
    if within is not None and first.within is None and second.within is None:
        if not Path(within).is_file():
            raise InputError(f"--within is '{within}', but {a} and {b} have no such column, and there is no such file.")
        first = replace(first, within=_column(read_array(Path(within)), f"{within}: within"))
    return match(first, second, intersect=intersect)


def model_names(paths: Sequence[Path]) -> list[str]:
    """File names without endings; files of the same name are named after the nearest folders that differ.

    >>> model_names([Path("runs/ada/latents.npz"), Path("runs/ben/latents.npz"), Path("carl.npy")])
    ['ada', 'ben', 'carl']
    """
    names = [path.stem for path in paths]
    found = list(names)
    for name in set(names):
        places = [place for place, other in enumerate(names) if other == name]
        if len(places) > 1:
            for place, folder in zip(places, _differing_folders([paths[k] for k in places]), strict=False):
                found[place] = folder
    return found if len(set(found)) == len(found) else names


def _differing_folders(paths: Sequence[Path]) -> list[str]:
    """Names of the nearest parent folders in which all paths differ; empty if there are none."""
    parents = [path.absolute().parents for path in paths]
    for level in range(min(map(len, parents))):
        folders = [one[level].name for one in parents]
        if len(set(folders)) == len(folders) and all(folders):
            return folders
    return []


def read_latents(
    path: Path,
    *,
    name: str | None = None,
    ids: Path | None = None,
    groups: Path | None = None,
    labels: Path | None = None,
    raw: Path | None = None,
    within: str | None = None,
) -> Latents:
    """Latents from a file in any format; arrays that it lacks may come from separate files.

    `within` is the name of a column to partial out. The file may lack it.

    Arrays called `layer…` are the layers of the model, in the order of their numbers. Without an array `h`, the last
    layer is used. The name is that of the file unless it is given.
    """
    arrays = read_arrays(path, apart=() if within is None else (within,))
    _refuse_misspelt(path, arrays)
    _refuse_other_ids(path, arrays)
    layers = {key: arrays[key] for key in sorted(arrays, key=_layer_order) if key.startswith("layer")}
    h = arrays.get("h", next(reversed(layers.values()), None))
    if h is None:
        raise InputError(f"{path} has no array 'h' (the latents). It has: {', '.join(arrays)}.")
    given = {"ids": ids, "groups": groups, "labels": labels, "raw": raw}
    extra = {kind: arrays.get(kind) if file is None else read_array(file) for kind, file in given.items()}
    for kind in COLUMNS:
        if (array := extra[kind]) is not None:
            extra[kind] = _column(array, f"{given[kind] or path}: {kind}")
    if (marks := arrays.get("held")) is not None:
        extra["held"] = _booleans(_column(marks, f"{path}: held"), f"{path}: held")
    extra["untrained"] = arrays.get("untrained")
    if within is not None:
        extra["within"] = _shared_column(path, within, arrays)
    return Latents(path.stem if name is None else name, h, layers=layers, **extra)


def _refuse_misspelt(path: Path, names: Iterable[str]) -> None:
    """Without its ids, rows would silently be paired by position."""
    names = set(names)
    for name in sorted(names - set(COLUMNS)):
        plain = name.strip().casefold()
        meant = next((kind for kind in COLUMNS if plain in (kind, kind.removesuffix("s"))), None)
        if meant is not None and meant not in names:
            raise InputError(f"{path} has '{name}', which is not read. Rename it to '{meant}' or remove it.")


def _refuse_other_ids(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse columns such as `sample_id` if the file has no `ids`."""
    other = sorted(name for name, column in arrays.items() if is_id(name, column))
    if other and "ids" not in arrays:
        raise InputError(f"{path} has '{other[0]}', which is not read. Rename it to 'ids' or remove it.")


def read_array(path: Path) -> np.ndarray:
    """The only array of a file, or the lines of a text file."""
    if path.suffix.lower() == ".txt":
        if not path.is_file():
            raise InputError(f"There is no file {path}.")
        try:
            return np.array(path.read_text(encoding="utf-8").splitlines())
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not a text file in UTF-8: {error}.") from error
    arrays = read_arrays(path)
    if len(arrays) != 1:
        raise InputError(f"{path} must hold one array, but it holds {', '.join(arrays)}.")
    return next(iter(arrays.values()))


def _column(array: np.ndarray, what: str) -> np.ndarray:
    """One value per row, from a vector or a matrix with one column."""
    if array.ndim == 0 or array.size != len(array):
        raise InputError(f"{what} must be one value per row, but its shape is {array.shape}.")
    return array.reshape(len(array))


def _shared_column(path: Path, name: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    if name == "h" or name.startswith("layer"):
        raise InputError(f"--within is '{name}', but that is the latents. Name another column.")
    column = arrays.get(name)
    if column is not None and column.ndim not in (1, 2):
        raise InputError(f"{path}: '{name}' must have one value per row, but its shape is {column.shape}.")
    return column


def _booleans(column: np.ndarray, what: str) -> np.ndarray:
    """Booleans, zeros and ones, or the words for them in a CSV file, as booleans.

    >>> _booleans(np.array(["True", "False"]), "held")
    array([ True, False])
    """
    if column.dtype.kind == "b":
        return column
    numeric = column.dtype.kind in "iuf"
    found = [BOOLEANS.get(f"{mark:g}" if numeric else str(mark).casefold()) for mark in column]
    if None in found:
        row = found.index(None)
        raise InputError(f"{what} must be true or false (or 1 and 0) in each row, but row {row} has '{column[row]}'.")
    return np.array(found, bool)


def _layer_order(name: str) -> tuple[str, int]:
    """Sorts `layer2` before `layer10`."""
    text = name.rstrip("0123456789")
    return text, int(name[len(text) :] or 0)


def match(a: Latents, b: Latents, *, intersect: bool = False) -> PairedLatents:
    """Pair the rows of the same state by their ids; without ids, row i with row i.

    Both must have the same states. With `intersect`, states that only one of them has are left out and counted.
    """
    check_ids(a, b)
    if a.ids is None or b.ids is None:
        if intersect:
            raise InputError(
                f"--intersect needs ids, but {a.name} and {b.name} have none. Give the ids of the states of both "
                "(--ids A_IDS B_IDS), or leave out --intersect."
            )
        if len(a.h) != len(b.h):
            raise InputError(
                f"{a.name} has {len(a.h)} rows and {b.name} has {len(b.h)}, so their rows cannot be paired by "
                "position. Give the ids of the states of both (--ids A_IDS B_IDS)."
            )
        return _checked(a, b)
    rows_a, rows_b = match_ids(a.ids, b.ids, intersect=intersect)
    if intersect and len(rows_a) < FEWEST:
        raise InputError(
            f"{a.name} and {b.name} share {len(rows_a)} of their {len(a.h)} and {len(b.h)} states, but at least "
            f"{FEWEST} are needed. Check that ids are written alike in both ('{a.ids[0]}' and '{b.ids[0]}')."
        )
    found = _checked(a.rows(rows_a), b.rows(rows_b))
    return replace(found, left_out=(len(a.h) - len(rows_a), len(b.h) - len(rows_b)))


def check_ids(*models: Latents) -> None:
    """Raise InputError if some models have ids and others do not: paired by position, states could differ."""
    with_ids = [one.name for one in models if one.ids is not None]
    without = [one.name for one in models if one.ids is None]
    if with_ids and without:
        raise InputError(f"{with_ids[0]} has ids, but {without[0]} has none: give ids for both, or for neither.")


def _checked(a: Latents, b: Latents) -> PairedLatents:
    """Raise InputError if both sides have groups or labels that differ."""
    for kind in ("groups", "labels", "within"):
        first, second = getattr(a, kind), getattr(b, kind)
        if first is None or second is None:
            continue
        if first.shape != second.shape:
            raise InputError(f"The {kind} of {a.name} has shape {first.shape}, but that of {b.name} {second.shape}.")
        wrong = np.flatnonzero((first != second).reshape(len(first), -1).any(1))
        if wrong.size:
            row = int(wrong[0])
            raise InputError(
                f"{a.name} and {b.name} disagree on the {kind} of {wrong.size} of {len(first)} states (the first in "
                f"row {row}: '{first[row]}' and '{second[row]}'). Check that their rows are in the same order."
            )
    return PairedLatents(a, b)
