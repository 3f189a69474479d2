"""Refusals that the measurements of this room share; each names the array, what was given and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.arrays import check_finite, check_rows
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split

__all__ = [
    "as_arrays",
    "check_halves",
    "check_matrices",
    "check_pairs",
    "check_rows_to_judge",
    "check_same_shape",
    "check_split",
    "check_standard",
    "rates",
]

FEWEST_GROUPS = 3
FEWEST_ROWS = 20  # below this a resample may hold nothing that varies, and no interval means anything
LARGEST = 1e60  # its fourth power, summed over all rows there are, is still a number


def as_arrays(**given: Any) -> list[Any]:
    """Lists and tensors as arrays of numpy, in the order given; None stays None.

    Numbers become float64, but for labels: whole ones would wrap round, and half precision overflows, when squared.
    """
    return [_as_array(name, value) for name, value in given.items()]


def _as_array(name: str, given: Any) -> Any:
    if given is None:
        return None
    if isinstance(given, np.ndarray):
        numeric = name != "groups" and given.dtype.kind in "biuf"
        return given.astype(np.float64, copy=False) if numeric else given
    tensor = given.detach().cpu() if hasattr(given, "detach") else given
    try:
        return _as_array(name, np.asarray(tensor))
    except (TypeError, ValueError, RuntimeError) as error:  # rows of different length; a type that numpy has not
        raise InputError(f"'{name}' cannot be read as an array: {error}") from error


def check_matrices(groups: np.ndarray | None = None, **arrays: np.ndarray) -> None:
    """Rows and columns, equally many rows, no NaN or infinity, nothing too large to square; a label for every row."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputError(f"'{name}' must be an array of numpy, but it is a {type(array).__name__}: use np.asarray.")
        if array.ndim != 2 or array.shape[1] == 0:
            raise InputError(f"'{name}' must have rows and columns, but its shape is {array.shape}.")
        if len(array) == 0:
            raise InputError(f"'{name}' must have rows, one for each sample, but there are only 0.")
    if groups is not None and groups.ndim != 1:
        raise InputError(f"'groups' must hold one label for each row, but its shape is {groups.shape}.")
    if groups is not None and groups.dtype.kind == "f":
        check_finite("groups", groups)  # every NaN would be a label of its own, or all of them one
    if groups is not None and groups.dtype.kind == "O":
        raise InputError("'groups' must hold numbers or texts, but it holds objects. Is a label missing (None)?")
    check_rows(arrays | ({} if groups is None else {"groups": groups}))
    for name, array in arrays.items():
        check_finite(name, array)
        _check_size(name, array)


def _check_size(name: str, array: np.ndarray) -> None:
    largest = max(float(array.max()), -float(array.min()))
    if largest > LARGEST:
        raise InputError(f"'{name}' has values up to {largest:.3g}, too large to square. Divide it by a constant.")
    spread = float((array.max(0).astype(np.float64) - array.min(0)).max())
    if 0 < spread < 1 / LARGEST:
        raise InputError(f"'{name}' varies by {spread:.3g} only, too little to square. Multiply it by a constant.")


def check_same_shape(**arrays: np.ndarray) -> None:
    if len({array.shape for array in arrays.values()}) > 1:
        names, shapes = (" and ".join(words) for words in (map(repr, arrays), (str(a.shape) for a in arrays.values())))
        raise InputError(f"{names} must have the same shape, but {shapes} were given.")


def check_pairs(h: np.ndarray, h_next: np.ndarray, z: np.ndarray | None, groups: np.ndarray | None) -> None:
    """What a certificate is made from: latents of both views, the states behind the first if known, and labels."""
    check_matrices(groups, h=h, h_next=h_next, **({} if z is None else {"z": z}))
    check_same_shape(h=h, h_next=h_next)
    if groups is not None and (count := len(np.unique(groups))) < FEWEST_GROUPS:
        raise InputError(
            f"A certificate needs at least {FEWEST_GROUPS} groups (1 to fit, 2 to score), but there are only {count}."
        )
    widest = max(array.shape[1] for array in (h, z) if array is not None)
    if len(h) <= widest:
        raise InputError(
            f"There must be more samples than dimensions, but there are {len(h)} rows of {widest} columns. "
            "Rows are samples: are the arrays transposed?"
        )
    check_rows_to_judge(len(h))
    if z is not None and not (z != z[0]).any():
        raise InputError("'z' does not vary: all rows are the same state, so there is nothing to recover. Leave z out.")
    if np.array_equal(h, h_next) and (h != h[0]).any():  # latents that never vary are a verdict's business
        raise InputError(
            "h and h_next are the same: of identical pairs nothing can be read, neither a rate nor a bound. h_next "
            "must hold the latents of the other view of each sample, or of the next moment; was h written twice?"
        )


def check_rows_to_judge(rows: int) -> None:
    if rows < FEWEST_ROWS:
        raise InputError(f"At least {FEWEST_ROWS} rows are needed to say anything, but there are only {rows}.")


def check_split(split: Split, rows: int) -> None:
    """Rows to fit on and rows to score on, of those that there are."""
    for name, part in zip(("fit", "score"), split, strict=True):
        if not len(part) or part.min() < -rows or part.max() >= rows:
            raise InputError(f"The rows to {name} on must be some of the {rows} rows that there are.")


def check_halves(split: Split, widest: int) -> None:
    """Each half must be able to determine a linear map."""
    if min(len(split.fit), len(split.score)) <= widest:
        raise InputError(
            f"A certificate over {widest} dimensions needs at least {widest + 1} rows to fit and as many to score, "
            f"but there are {len(split.fit)} and {len(split.score)}."
        )


def check_standard(name: str, z: np.ndarray) -> None:
    """Refuse states that are grossly not N(0, I), where Hermite polynomials are not orthonormal.

    The slack is wide: states are refused for their units, not for the noise of a few samples.
    """
    moments = np.cov(z, rowvar=False, bias=True).reshape(z.shape[1], z.shape[1])
    worst = max(np.abs(z.mean(0)).max(), np.abs(moments - np.eye(len(moments))).max())
    if not worst <= 0.5 + 4 / np.sqrt(len(z)):
        raise InputError(
            f"'{name}' must have mean 0 and covariance I, but is off by {worst:.3g}. Standardise it (a Gaussian state "
            "stays one), or use the Gaussian coordinates behind it."
        )


def rates(rho: float | Sequence[float] | np.ndarray, n: int) -> np.ndarray:
    """ρ of each of n dimensions, from one for all or one for each.

    >>> rates(0.9, 2)
    array([0.9, 0.9])
    """
    given = np.atleast_1d(np.asarray(rho, dtype=np.float64))
    if not np.all((given > 0) & (given < 1)):
        raise InputError(f"The correlation ρ of a pair must lie between 0 and 1, but {rho} was given.")
    if given.shape not in ((1,), (n,)):
        raise InputError(f"There must be one ρ, or one for each of {n} dimensions, but {given.size} were given.")
    return np.broadcast_to(given, n).copy()
