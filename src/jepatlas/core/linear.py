"""Linear fits on rows, R², orthogonality error, splits and subsampling, in float64.

Ridge and Procrustes fits are those of `linear_moments`; least squares is solved on the rows, which resolves directions
of smaller variance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from jepatlas.core.arrays import group_numbers
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.linear_moments import PairMoments, is_lost, procrustes_of, ridge_of
from jepatlas.core.stats import explained_share

__all__ = [
    "Split",
    "distance_from_identity",
    "hold_out",
    "least_squares",
    "orthogonality_error",
    "procrustes",
    "r2",
    "ridge",
    "subsample",
    "symmetric_product",
    "whitener",
]


def least_squares(x: np.ndarray, y: np.ndarray) -> LinearMap:
    """W = argmin Σ‖y − W x‖² on centred rows; the minimum-norm W if x is rank deficient."""
    if len(x) != len(y):
        raise InputError(f"x and y must have the same number of rows, but x has {len(x)} and y has {len(y)}.")
    x, y = x.astype(np.float64), y.astype(np.float64)
    x_mean, y_mean = x.mean(0), y.mean(0)
    # scipy's default cutoff ignores the size and counts rounding errors as rank
    cutoff = max(x.shape) * np.finfo(np.float64).eps
    solution = scipy.linalg.lstsq(x - x_mean, y - y_mean, cond=cutoff, lapack_driver="gelsd")
    assert solution is not None  # only other LAPACK drivers return None
    return LinearMap(solution[0].T, x_mean, y_mean)


def ridge(x: np.ndarray, y: np.ndarray, penalty: float) -> LinearMap:
    """W = YᵀX (XᵀX + λI)⁻¹ on centred rows; least squares if λ is below the rounding error of XᵀX."""
    moments = PairMoments.of(x, y)
    return least_squares(x, y) if is_lost(moments, penalty) else ridge_of(moments, penalty)


def procrustes(x: np.ndarray, y: np.ndarray, *, scaled: bool = False) -> LinearMap:
    """The orthogonal (or, `scaled`, similarity) map: Q = UVᵀ where YᵀX = UΣVᵀ on centred rows; see `procrustes_of`."""
    return procrustes_of(PairMoments.of(x, y), scaled=scaled)


def whitener(x: np.ndarray, floor: float = 1e-12) -> LinearMap:
    """The symmetric whitening map Cov^{−1/2}(x − mean); directions of variance below `floor` · largest become zero."""
    first = x[0].astype(np.float64)
    shifted = x - first  # constant columns become exactly zero, not amplified rounding errors
    mean = first + shifted.mean(0)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(shifted, rowvar=False)))
    kept = values > floor * max(values[-1], np.finfo(float).tiny)
    roots = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1)), 0)
    return LinearMap((vectors * roots) @ vectors.T, mean, np.zeros_like(mean))


def r2(y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
    """1 − Σ‖y − ŷ‖² / Σ‖y − mean‖², pooled over dimensions; NaN if all dimensions are constant."""
    if y.shape != predicted.shape:
        raise InputError(f"y and predicted must have the same shape, but have {y.shape} and {predicted.shape}.")
    first = y[0].astype(np.float64)
    y, predicted = y - first, predicted - first  # a constant y becomes exactly zero
    weights = np.ones(len(y)) if weights is None else weights
    mean = np.average(y, axis=0, weights=weights)
    residual = weights @ np.square(y - predicted).sum(1)
    total = weights @ np.square(y - mean).sum(1)
    return explained_share(residual, total)


def orthogonality_error(weight: np.ndarray, other: np.ndarray | None = None) -> float:
    """‖WᵀW − I‖_F / ‖I‖_F: zero for a rotation or reflection.

    With an independent second estimate W' of W, WᵀW is estimated by the symmetric part of WᵀW', in which the noise of
    the two does not add up.
    """
    return distance_from_identity(weight.T @ weight if other is None else symmetric_product(weight, other))


def symmetric_product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The symmetric part of W₁ᵀW₂, for two independent estimates of W."""
    product = one.T @ other
    return (product + product.T) / 2


def distance_from_identity(gram: np.ndarray) -> float:
    """‖G − I‖_F / ‖I‖_F."""
    eye = np.eye(len(gram))
    return float(np.linalg.norm(gram - eye) / np.linalg.norm(eye))


class Split(NamedTuple):
    """Indices of the rows to fit on, and of the rows to score on."""

    fit: np.ndarray
    score: np.ndarray


def hold_out(n: int, rng: np.random.Generator, *, groups: np.ndarray | None = None, share: float = 0.5) -> Split:
    """Hold out a share of the groups, or of the rows if there are no groups. No group is on both sides."""
    labels = group_numbers(groups, n)
    if len(labels) != n:
        raise InputError(f"groups must have one label for each of the {n} rows, but there are {len(labels)}.")
    count = int(labels.max()) + 1 if n else 0
    if count < 2:
        raise InputError(f"Fitting and scoring need at least 2 groups of samples, but there is only {count}.")
    held = rng.permutation(count)[: min(count - 1, max(1, round(share * count)))]
    scored = np.isin(labels, held)
    return Split(np.flatnonzero(~scored), np.flatnonzero(scored))


def subsample(rows: np.ndarray, most: int) -> np.ndarray:
    """At most `most` of the rows, evenly spaced.

    >>> subsample(np.array([3, 4, 5, 6, 7]), 3).tolist(), subsample(np.array([3, 4]), 3).tolist()
    ([3, 5, 7], [3, 4])
    """
    return rows[np.linspace(0, len(rows) - 1, max(min(most, len(rows)), 0)).round().astype(int)]
