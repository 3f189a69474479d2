"""Every linear fit from moments of pairs, defined once: the rows themselves are not needed.

    least squares   W = S_yx S_xx⁺          ridge   W = S_yx (S_xx + λI)⁻¹          Procrustes   Q = UVᵀ, S_yx = UΣVᵀ

S squares the condition number of the rows: directions of x whose variance (in units of their columns) is below 16
roundings of the largest are lost, and are taken for dead. `linear.least_squares`, on rows, sees finer ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.linalg

from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.pair_moments import PairMoments

__all__ = [
    "PairMoments",
    "fit_between",
    "is_lost",
    "least_squares_of",
    "live_directions",
    "prepared",
    "procrustes_of",
    "ridge_of",
]

_ROUNDINGS = 16  # measured: rounding leaves 1 to 2 of them in dead directions, at any width and number of rows


def least_squares_of(moments: PairMoments) -> LinearMap:
    """W = S_yx S_xx⁺; the smallest such W where x is rank deficient."""
    values, vectors, units = live_directions(moments)
    live, dead = values > 0, values == 0
    inverse = (vectors[:, live] / values[live]) @ vectors[:, live].T
    weight = (moments.xy.T / units) @ inverse / units
    if dead.any():  # what maps dead directions to nothing is the smallest
        null = np.linalg.qr(vectors[:, dead] / units[:, None])[0]
        weight = weight - (weight @ null) @ null.T
    return LinearMap(weight, moments.x_mean, moments.y_mean)


def live_directions(moments: PairMoments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of S_xx with columns in units of their spread, and these; dead ones have value 0.

    In those units rank does not depend on the scales that columns came in.
    """
    diagonal = np.maximum(np.diag(moments.xx), 0)
    units = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(moments.xx / units[:, None] / units)
    return np.where(values > _ROUNDINGS * moments.rounding * values[-1], values, 0.0), vectors, units


def ridge_of(moments: PairMoments, penalty: float) -> LinearMap:
    """W = S_yx (S_xx + λI)⁻¹; least squares where λ is lost in the rounding of S_xx."""
    if is_lost(moments, penalty):
        return least_squares_of(moments)
    penalised = moments.xx + penalty * np.eye(moments.d_in)
    solution = scipy.linalg.solve(penalised, moments.xy, assume_a="pos")
    return LinearMap(solution.T, moments.x_mean, moments.y_mean)


def is_lost(moments: PairMoments, penalty: float) -> bool:
    """Whether a ridge penalty is too small to change S_xx by more than its rounding."""
    if not 0 <= penalty < np.inf:
        raise InputError(f"The ridge penalty must be finite and not negative, but {penalty} was given.")
    return bool(penalty <= moments.d_in * moments.rounding * np.trace(moments.xx))


def procrustes_of(moments: PairMoments, *, scaled: bool = False) -> LinearMap:
    """The orthogonal (or, `scaled`, similarity) map: Q = UVᵀ where S_yx = UΣVᵀ.

    Into a narrower space Q maximises the agreement tr(Q S_xy); the residual there has no closed-form minimum.
    """
    u, sigma, vt = np.linalg.svd(moments.xy.T, full_matrices=False)
    q = u @ vt
    # ‖XQᵀ‖², not ‖X‖²: a Q into a narrower space drops a part of X. A constant x has scale 0.
    scale = sigma.sum() / max(np.einsum("ij,ij", q @ moments.xx, q), np.finfo(np.float64).tiny) if scaled else 1.0
    return LinearMap(scale * q, moments.x_mean, moments.y_mean)


def fit_between(
    moments: PairMoments, fit: Callable[[PairMoments], LinearMap], *, offset: bool = True, standardise: bool = False
) -> LinearMap:
    """A fit with or without an offset, between columns as they are or divided by their spread."""
    inner = fit(prepared(moments, offset=offset, standardise=standardise))
    if not standardise:
        return inner
    spread = (moments if offset else moments.about_origin()).spread()
    return replace(inner, x_scale=spread[: moments.d_in], y_scale=spread[moments.d_in :])


def prepared(moments: PairMoments, *, offset: bool, standardise: bool) -> PairMoments:
    """The moments that such a fit is given."""
    moments = moments if offset else moments.about_origin()
    spread = moments.spread() if standardise else np.ones(len(moments.mean))
    return replace(moments, scatter=moments.scatter / spread[:, None] / spread)
