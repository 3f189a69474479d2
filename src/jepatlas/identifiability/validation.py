"""Validation of input arrays: every error names the argument, the value given, and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.arrays import check_finite, check_rows
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split

__all__ = [
    "MIN_GROUPS",
    "as_arrays",
    "check_enough_rows",
    "check_halves",
    "check_matrices",
    "check_pairs",
    "check_same_shape",
    "check_split",
    "check_standard",
    "check_weights",
    "rates",
]

MIN_GROUPS = 3
MIN_ROWS = 20  # with fewer rows, a resample may contain no variation, and intervals mean nothing
MAX_ABSOLUTE = 1e60  # the sum of fourth powers of such values is still finite in float64


def as_arrays(**given: Any) -> list[Any]:
    """Convert lists and tensors to numpy arrays, in the order given. None stays None.

    Numeric arrays become float64: integers would overflow and half precision would lose digits when squared.
    `groups` keeps its type.
    """
    return [_as_array(name, value) for name, value in given.items()]


def _as_array(name: str, given: Any) -> Any:
    if given is None:
        return None
    if isinstance(given, np.ndarray):
        numeric = name != "groups" and given.dtype.kind in "biuf"
        return given.astype(np.float64, copy=False) if numeric else given
    if hasattr(given, "detach"):
        given = given.detach().cpu()
    try:
        return _as_array(name, np.asarray(given))
    except (TypeError, ValueError, RuntimeError) as error:  # ragged rows, or a type that numpy does not have
        raise InputError(f"'{name}' cannot be converted to an array: {error}") from error


def check_matrices(groups: np.ndarray | None = None, **arrays: np.ndarray) -> None:
    """Require 2-D arrays with equally many rows and finite values of a size that can be squared, and valid groups."""
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputError(f"'{name}' must be a numpy array, but is a {type(array).__name__}. Use np.asarray.")
        if array.ndim != 2 or array.shape[1] == 0:
            raise InputError(f"'{name}' must be 2-D with at least one column, but has shape {array.shape}.")
        if len(array) == 0:
            raise InputError(f"'{name}' must have at least one row, but has 0. Rows are samples.")
    named = dict(arrays)
    if groups is not None:
        _check_groups(groups)
        named["groups"] = groups
    check_rows(named)
    for name, array in arrays.items():
        check_finite(name, array)
        _check_size(name, array)


def _check_groups(groups: np.ndarray) -> None:
    if groups.ndim != 1:
        raise InputError(f"'groups' must be 1-D, one label for each row, but has shape {groups.shape}.")
    if groups.dtype.kind == "f":
        check_finite("groups", groups)  # a NaN label has no defined group
    if groups.dtype.kind == "O":
        raise InputError("'groups' must contain numbers or strings, but contains objects. Is a label missing (None)?")


def _check_size(name: str, array: np.ndarray) -> None:
    largest = max(float(array.max()), -float(array.min()))
    if largest > MAX_ABSOLUTE:
        raise InputError(f"'{name}' has values up to {largest:.3g}, too large to square. Divide it by a constant.")
    spread = float((array.max(0).astype(np.float64) - array.min(0)).max())
    if 0 < spread < 1 / MAX_ABSOLUTE:
        raise InputError(f"'{name}' varies by only {spread:.3g}, too little to square. Multiply it by a constant.")


def check_same_shape(**arrays: np.ndarray) -> None:
    if len({array.shape for array in arrays.values()}) > 1:
        names = " and ".join(repr(name) for name in arrays)
        shapes = " and ".join(str(array.shape) for array in arrays.values())
        raise InputError(f"{names} must have the same shape, but have {shapes}.")


def check_pairs(h: np.ndarray, h_next: np.ndarray, z: np.ndarray | None, groups: np.ndarray | None) -> None:
    """Validate the input of a certificate: latents of both views, true states of the first (or None), and groups."""
    states = {} if z is None else {"z": z}
    check_matrices(groups, h=h, h_next=h_next, **states)
    check_same_shape(h=h, h_next=h_next)
    if groups is not None:
        count = len(np.unique(groups))
        if count < MIN_GROUPS:
            raise InputError(
                f"'groups' must have at least {MIN_GROUPS} distinct labels (1 to fit, 2 to score), but has {count}."
            )
    widest = max(array.shape[1] for array in (h, z) if array is not None)
    if len(h) <= widest and widest >= MIN_ROWS:
        raise InputError(
            f"There must be more rows than columns, but there are {len(h)} rows and {widest} columns. "
            "Rows are samples: are the arrays transposed?"
        )
    check_enough_rows(len(h))
    if z is not None and not (z != z[0]).any():
        raise InputError("'z' is constant: all rows are equal, so there is no state to recover. Omit z.")
    if np.array_equal(h, h_next) and (h != h[0]).any():  # constant latents are reported by a verdict instead
        raise InputError(
            "'h' and 'h_next' are equal, so neither a correlation nor a bound can be estimated. h_next must contain "
            "the latents of the other view of each sample, or of the next time step. Was h saved twice?"
        )


def check_enough_rows(rows: int) -> None:
    """`rows` of the argument h."""
    if rows < MIN_ROWS:
        raise InputError(f"'h' must have at least {MIN_ROWS} rows, one per sample, but has {rows}.")


def check_split(split: Split, rows: int) -> None:
    """Require that both parts of a split are non-empty and index existing rows."""
    for name, part in zip(("fit", "score"), split, strict=True):
        if not len(part) or part.min() < -rows or part.max() >= rows:
            raise InputError(f"split.{name} must contain indices of the {rows} rows, at least one.")


def check_halves(split: Split, widest: int) -> None:
    """Require that each half of a split has enough rows to determine a linear map."""
    if min(len(split.fit), len(split.score)) <= widest:
        raise InputError(
            f"A certificate in {widest} dimensions needs at least {widest + 1} rows to fit and as many to score, "
            f"but there are {len(split.fit)} and {len(split.score)}. Give more rows."
        )


def check_standard(name: str, z: np.ndarray) -> None:
    """Refuse states that are far from mean 0 and covariance I, where Hermite polynomials are not orthonormal.

    The tolerance is wide: it detects wrong units, not sampling noise.
    """
    covariance = np.cov(z, rowvar=False, bias=True).reshape(z.shape[1], z.shape[1])
    worst = max(np.abs(z.mean(0)).max(), np.abs(covariance - np.eye(len(covariance))).max())
    if not worst <= 0.5 + 4 / np.sqrt(len(z)):
        raise InputError(
            f"'{name}' must have mean 0 and covariance I, but deviates by {worst:.3g}. Standardise it, or use the "
            "underlying Gaussian coordinates."
        )


def check_weights(weights: np.ndarray, rows: int) -> None:
    """Require one finite, non-negative weight per row."""
    if weights.shape != (rows,):
        raise InputError(f"'weights' must have shape ({rows},), one for each row, but has shape {weights.shape}.")
    check_finite("weights", weights)
    negative = int((weights < 0).sum())
    if negative:
        raise InputError(f"'weights' must be non-negative, but {negative} are negative.")


def rates(rho: float | Sequence[float] | np.ndarray, n: int) -> np.ndarray:
    """Expand the correlation ρ, one for all dimensions or one for each, to an array of n values.

    >>> rates(0.9, 2)
    array([0.9, 0.9])
    """
    given = np.atleast_1d(np.asarray(rho, dtype=np.float64))
    if not np.all((given > 0) & (given < 1)):
        raise InputError(f"rho must be between 0 and 1 (exclusive), but is {rho}.")
    if given.shape not in ((1,), (n,)):
        raise InputError(f"rho must be one number, or one for each of {n} dimensions, but has {given.size} values.")
    return np.broadcast_to(given, n).copy()
