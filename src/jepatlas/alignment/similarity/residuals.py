"""What is left between latents in the same coordinates, and what the best rotation leaves.

    MSE          E‖b − a‖², summed over dimensions, or its mean over them
    R²           1 − Σ‖b − a‖² / Σ‖b − mean‖²
    Procrustes   min over rotations Q and scales c of ‖B − cAQᵀ‖² / ‖B‖² = 1 − ‖AᵀB‖_*² / (‖A‖²‖B‖²), centred rows

The first three compare what a map predicts with what it was to predict, and are honest on rows that the map has not
seen. The last fits its rotation on the very rows that it is given: with few of them it is small for anything.
"""

from __future__ import annotations

import numpy as np

from jepatlas.alignment.paired import centred, check_columns, check_pairs
from jepatlas.core.linear import r2 as explained

__all__ = ["mse_per_dim", "mse_sum", "procrustes_error", "r2"]


def mse_sum(a: np.ndarray, b: np.ndarray) -> float:
    """E‖b − a‖²: the squared error of a row, summed over its dimensions."""
    a, b = check_columns(a, b)
    return float(np.square(b - a).sum(1).mean())


def mse_per_dim(a: np.ndarray, b: np.ndarray) -> float:
    """The squared error of one number: comparable between widths."""
    return mse_sum(a, b) / np.shape(b)[1]


def r2(a: np.ndarray, b: np.ndarray) -> float:
    """The share of b's variance that a predicts, pooled over dimensions; NaN where b is constant."""
    a, b = check_columns(a, b)
    return explained(b, a)


def procrustes_error(a: np.ndarray, b: np.ndarray) -> float:
    """What the best rotation, scale and shift leave of the variance, from 0 to 1, for any widths; NaN for constants.

    >>> a = np.random.default_rng(0).standard_normal((100, 3))
    >>> abs(round(procrustes_error(a, 1 - 2 * a[:, ::-1]), 12))
    0.0
    """
    a, b = (_narrow(centred(x)) for x in check_pairs(a, b))
    sizes = np.square(a).sum() * np.square(b).sum()
    if not sizes > 0:
        return float("nan")
    return float(max(0.0, 1 - np.linalg.norm(a.T @ b, "nuc") ** 2 / sizes))


def _narrow(x: np.ndarray) -> np.ndarray:
    """x, or where it has more columns than rows the same rows in coordinates of their own: XXᵀ stays as it is."""
    return x if x.shape[1] <= len(x) else np.linalg.qr(x.T).R.T
