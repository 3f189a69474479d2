"""What is given to an audit, read and refused: matrices of energies, points, true energies."""

from __future__ import annotations

from typing import Any

import numpy as np

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError

__all__ = ["energy_matrix", "precision_of", "read_points", "square_matrix", "true_energies"]


def energy_matrix(energy: Any) -> np.ndarray | None:
    """The matrix that was given; None for a function."""
    if isinstance(energy, np.ndarray):
        return square_matrix("The matrix of energies", energy)
    if hasattr(energy, "detach"):
        return square_matrix("The matrix of energies", energy.detach().cpu().numpy())
    if callable(energy):
        return None
    raise InputError(
        f"An energy is a square matrix or a function of two rows, but a {type(energy).__name__} was given."
    )


def square_matrix(name: str, given: np.ndarray) -> np.ndarray:
    """Square, with at least two states, and no NaN; infinities may be."""
    if given.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers, but its dtype is {given.dtype}.")
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise InputError(
            f"{name} must be square, with E(x, y) from row x to column y, but its shape is {given.shape}. "
            "Give the same states as rows and as columns, in the same order."
        )
    if len(given) < 2:
        raise InputError(f"{name} must be of at least 2 states, but there are only {len(given)}.")
    if len(bad := np.argwhere(np.isnan(given))):
        raise InputError(
            f"{name} has {len(bad)} NaN, the first from state {bad[0, 0]} to state {bad[0, 1]}. Where there is no way, "
            "write +inf."
        )
    return given


def read_points(points: Any) -> np.ndarray:
    """Rows of numbers (n, d); float32 stays, so that a function is called with what it was made for."""
    array = np.asarray(points.detach().cpu() if hasattr(points, "detach") else points)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"The points must be rows of numbers, (n, d), but their shape is {array.shape}.")
    check_finite("points", array)
    return array if array.dtype == np.float32 else array.astype(np.float64)


def true_energies(truth: Any) -> np.ndarray:
    exact = square_matrix("The matrix of true energies", np.asarray(truth)).astype(np.float64)
    if len(bad := np.argwhere(exact < 0)):
        raise InputError(f"True energies cannot be negative, but that from {bad[0, 0]} to {bad[0, 1]} is.")
    return exact


def precision_of(matrix: np.ndarray) -> float:
    """eps of the numbers: where all are numbers of float32 they were computed in it, however they were saved.

    >>> [f"{precision_of(matrix):.0e}" for matrix in (np.eye(2), np.eye(2) / 3)]
    ['1e-07', '2e-16']
    """
    if matrix.dtype == np.float16:
        return float(np.finfo(np.float16).eps)
    with np.errstate(over="ignore"):
        single = bool((matrix.astype(np.float32) == matrix).all())
    return float(np.finfo(np.float32 if single else np.float64).eps)
