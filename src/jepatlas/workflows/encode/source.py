"""Numbered items to encode, with one value per item in each column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["Source", "SourceOptions"]


@dataclass(frozen=True)
class SourceOptions:
    view: str | None = None
    """The view of a table that has several."""
    stride: int | None = None
    """Videos and episodes: frames from h to h_next. By default 1 frame, and for clips their length."""
    most: int | None = None
    """Encode an even subsample of this many images or texts."""

    def __post_init__(self) -> None:
        for name in ("stride", "most"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} is {value}, but it must be at least 1.")


@dataclass(frozen=True)
class Source:
    """Items 0 … count − 1, read in order by `read(first, end)`. An item that cannot be read is an InputError."""

    what: str
    """`images`, `frames`, `clips` or `texts`."""
    count: int
    read: Callable[[int, int], Sequence[Any]]
    columns: Mapping[str, np.ndarray]
    """Ids, groups and others, each (count, ...)."""
    fingerprint: str
    """Hash of all that the items depend on."""
    pairs: tuple[np.ndarray, np.ndarray] | None = None
    """Items of h and of h_next, each (rows,); without pairs, each item is a row."""
    notes: tuple[str, ...] = ()
