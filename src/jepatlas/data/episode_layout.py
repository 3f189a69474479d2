"""What a file of episodes must have to be read, and what is refused of it, before any of its rows is read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, require

__all__ = ["ABOUT", "INDEX", "Column", "Layout", "read_layout"]

INDEX = ("ep_len", "ep_offset")
ABOUT = "jepatlas"  # the attribute that says where episodes come from


@dataclass(frozen=True)
class Column:
    """What one row of a column is."""

    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True)
class Layout:
    columns: dict[str, Column]
    lengths: np.ndarray  # (E,)
    offsets: np.ndarray  # (E,)
    about: dict[str, Any]


def read_layout(path: Path, opened: Callable[[], Any]) -> Layout:
    """The layout of a file that `opened` opens, checked."""
    file = opened()
    try:
        found = {name: item for name, item in file.items() if getattr(item, "shape", ())}
        lengths, offsets = (_index(path, found, name) for name in INDEX)
        about = _about(file.attrs.get(ABOUT))
    except (OSError, RuntimeError, KeyError) as error:
        raise InputError(f"{path} cannot be read: {error}. Was it cut short?") from error
    columns = {name: item for name, item in found.items() if name not in INDEX}
    _check_episodes(path, lengths, offsets, _common_length(path, columns))
    for name, dataset in columns.items():
        _check_compression(path, name, dataset)
    shapes = {name: Column(item.shape[1:], item.dtype) for name, item in columns.items()}
    return Layout(shapes, lengths, offsets, about)


def _about(given: Any) -> dict[str, Any]:
    """What a file says of itself; nothing where that is not ours, for its rows can be read all the same."""
    try:
        found = json.loads(given) if isinstance(given, str | bytes) else None
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _index(path: Path, found: dict[str, Any], name: str) -> np.ndarray:
    if name not in found:
        raise InputError(
            f"{path} has no '{name}', but {', '.join(sorted(found)) or 'nothing'}. A file of episodes has one dataset "
            "per column, the number of rows of each episode in ep_len, and its first row in ep_offset."
        )
    values = found[name][()]
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise InputError(f"'{name}' of {path} must be whole numbers (episodes,), but is {values.shape} {values.dtype}.")
    return values.astype(np.int64)


def _common_length(path: Path, columns: dict[str, Any]) -> int:
    lengths = {name: len(item) for name, item in columns.items()}
    if not lengths:
        raise InputError(f"{path} has no columns, such as pixels or action: only episode lengths.")
    usual = Counter(lengths.values()).most_common(1)[0][0]
    if others := {name: count for name, count in lengths.items() if count != usual}:
        listed = ", ".join(f"'{name}' {count}" for name, count in sorted(others.items()))
        raise InputError(
            f"The columns of {path} differ in length: {listed}, the others {usual} rows. Every column has one row for "
            "each moment; was the file still being written when it was copied?"
        )
    return usual


def _check_episodes(path: Path, lengths: np.ndarray, offsets: np.ndarray, rows: int) -> None:
    if len(lengths) != len(offsets) or not len(lengths):
        raise InputError(
            f"{path} has {len(lengths)} entries in ep_len and {len(offsets)} in ep_offset: there must be one each for "
            "every episode, and at least one episode."
        )
    ends = offsets + lengths
    bad = np.flatnonzero((lengths < 1) | (offsets < 0) | (ends > rows))
    if len(bad):
        i = bad[0]
        raise InputError(
            f"Episode {i} of {path} does not fit: ep_offset {offsets[i]} and ep_len {lengths[i]}, but the columns have "
            f"{rows} rows. Was the file cut short, or put together from others without shifting ep_offset?"
        )
    order = np.argsort(offsets, kind="stable")
    over = np.flatnonzero(ends[order][:-1] > offsets[order][1:])
    if len(over):
        first, second = order[over[0]], order[over[0] + 1]
        raise InputError(
            f"Episodes {first} and {second} of {path} overlap: the first ends before row {ends[first]}, the second "
            f"begins at row {offsets[second]}. Shift ep_offset so that each episode has its own rows."
        )


def _check_compression(path: Path, name: str, dataset: Any) -> None:
    """Refuse what HDF5 cannot decompress; other people's filters come with the package hdf5plugin."""
    filters: Any = require("h5py", "sim", "Reading episodes").h5z
    made = dataset.id.get_create_plist()
    for code, *_, label in (made.get_filter(i) for i in range(made.get_nfilters())):
        if filters.filter_avail(code):
            continue
        try:
            import_module("hdf5plugin")
        except ImportError as error:
            raise InputError(
                f"'{name}' of {path} is compressed by the HDF5 filter {code} ({label.decode() or 'unnamed'}), which is "
                "not installed. Run: pip install hdf5plugin"
            ) from error
