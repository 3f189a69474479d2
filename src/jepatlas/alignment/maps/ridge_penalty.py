"""Ridge penalty chosen on held-out pairs, from moments only.

    λ* = argmin_λ Σ_held ‖y − W_λ x‖²        W_λ fitted on the other pairs

All pairs are then fitted with λ*. It is not rescaled to their number: λ is noise over prior variance, which does not
depend on the number of pairs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.core.linear_map import LinearMap
from jepatlas.core.linear_moments import PairMoments, is_lost, prepared

__all__ = ["CANDIDATES", "best_penalty", "held_out"]

CANDIDATES = (0.0, *np.logspace(-8, 3, 23))
"""Candidate penalties in units of the mean eigenvalue of S_xx: zero and half powers of ten."""

_ALIKE = 1e-12  # relative difference of residuals at rounding level
_EVERY = 4  # one row (or group) in so many is held out


def best_penalty(
    fit: PairMoments, held: PairMoments, ridge: Callable[[float], LinearMap], *, offset: bool, standardise: bool
) -> float:
    """The candidate λ whose map `ridge(λ)` of the pairs `fit` scores best on `held`; the largest of equal ones."""
    own = prepared(fit, offset=offset, standardise=standardise)
    penalties = np.trace(own.xx) / own.d_in * np.array(CANDIDATES)
    lost = np.array([is_lost(own, penalty) for penalty in penalties])
    residuals = _path(fit if offset else fit.about_origin(), held, own, penalties)
    residuals[lost] = held.residual(ridge(0.0))  # all of these are least squares
    return float(penalties[residuals <= residuals.min() * (1 + _ALIKE)].max())


def _path(fit: PairMoments, held: PairMoments, own: PairMoments, penalties: np.ndarray) -> np.ndarray:
    """Σ_held ‖y − W_λ x‖² for every λ from one eigendecomposition, S_xx = VΛVᵀ.

    With f = 1/(Λ + λ) it is  tr H_yy − 2 Σ_k f_k (A∘G)_k + fᵀ (VᵀH_xx V ∘ AAᵀ) f,  where A = VᵀS_xy, G = VᵀH_xy and H
    is the scatter of the held-out pairs about the centre of the others.
    """
    d = own.d_in
    units = np.sqrt(np.diag(fit.scatter) / np.where(np.diag(own.scatter) > 0, np.diag(own.scatter), 1.0))
    units = np.where(units > 0, units, 1.0)  # standard deviations of the columns of x and y, if standardised
    middle = held.mean - fit.mean
    scatter = (held.scatter + held.count * np.outer(middle, middle)) / np.append(units[:d], np.ones(own.d_out))
    values, vectors = np.linalg.eigh(own.xx)
    seen = vectors.T @ (own.xy * units[d:])
    wanted = vectors.T @ (scatter[d:, :d].T)
    spread = vectors.T @ (scatter[:d, :d] / units[:d, None]) @ vectors
    linear, square = np.einsum("ij,ij->i", seen, wanted), spread * (seen @ seen.T)
    shrunk = 1 / np.maximum(values + np.maximum(penalties, np.finfo(float).tiny)[:, None], np.finfo(float).tiny)
    total = np.trace(scatter[d:, d:])
    return np.maximum(total - 2 * shrunk @ linear + np.einsum("pi,ij,pj->p", shrunk, square, shrunk), 0.0)


def held_out(index: np.ndarray, seed: int) -> np.ndarray:
    """Which rows (or groups) are held out, by their number: a random one of every four.

    The choice does not depend on how the data were divided into parts. Of the first four it is always the second, so
    that two rows suffice to have one on each side.

    >>> np.array_equal(held_out(np.arange(9), 0)[5:], held_out(np.arange(5, 9), 0))
    True
    """
    block, place = np.divmod(index, _EVERY)
    if not len(block):
        return np.zeros(0, bool)
    bits = np.random.PCG64(seed)
    bits.advance(int(block.min()))
    drawn = np.random.Generator(bits).random(int(np.ptp(block)) + 1)[block - block.min()]
    return place == np.where(block == 0, 1, np.floor(_EVERY * drawn))
