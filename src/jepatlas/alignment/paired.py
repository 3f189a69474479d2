"""Two sets of latents whose rows belong together: what every measure of similarity asks of them first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.core.arrays import check_finite, check_rows
from jepatlas.core.errors import InputError

__all__ = ["Progress", "centred", "paired", "paired_columns", "rows_of", "scaled"]

Progress = Callable[[int, int], None]
"""Is told how many parts of how many are done."""


def paired(a: np.ndarray, b: np.ndarray, fewest: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays of finite rows, equally many and at least `fewest`; the widths may differ."""
    a, b = rows_of("a", a), rows_of("b", b)
    check_rows({"a": a, "b": b})
    if len(a) < fewest:
        raise InputError(f"This comparison needs at least {fewest} pairs of rows, but there are {len(a)}.")
    return a, b


def paired_columns(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both in float64 and in the same coordinates: one shape."""
    a, b = paired(a, b, fewest=1)
    if a.shape != b.shape:
        raise InputError(
            f"These latents are compared coordinate by coordinate, but 'a' has {a.shape[1]} columns and 'b' has "
            f"{b.shape[1]}. Bring 'a' into the coordinates of 'b' by a map first."
        )
    return a.astype(np.float64), b.astype(np.float64)


def rows_of(name: str, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            f"'{name}' must have rows and columns, one row for each sample, but its shape is {array.shape}."
        )
    check_finite(name, array)
    return array


def scaled(x: np.ndarray) -> np.ndarray:
    """x in float64, in units of a power of two that keep squares from overflowing: no digit is touched.

    So rows that are equal, or equally far from each other, stay so to the last bit.
    """
    x = x.astype(np.float64)
    return np.ldexp(x, -int(np.frexp(np.abs(x).max())[1]))


def centred(x: np.ndarray) -> np.ndarray:
    """The same without its mean; exactly zero where x is constant, because the first row is taken away before."""
    x = scaled(x)
    x -= x[0].copy()
    return x - x.mean(0)
