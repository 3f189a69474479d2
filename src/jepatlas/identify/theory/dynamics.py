"""The dynamics read in the latent: Theorem 1 says that the regression h → h' is ρI where h = Qz.

    M = Cov(h', h) Cov(h)⁻¹        M = ρI for every h that is linear and invertible in z
    C01 u = λ C00 u                the rates: correlation across views of each direction

It is necessary, not sufficient: a shear passes as a rotation does. A nonlinear part of degree d pulls towards ρ^d.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from jepatlas.base.linear import Split, least_squares, whitener
from jepatlas.base.records import Estimate
from jepatlas.base.stats import bootstrap
from jepatlas.identify.checks import check_matrices, check_same_shape, rates
from jepatlas.identify.covariance import WeightedCovariance

__all__ = ["latent_dynamics"]


def latent_dynamics(
    h: np.ndarray,
    h_next: np.ndarray,
    rho: float,
    split: Split,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """Held-out estimates with group-bootstrap intervals:

    operator_error             ‖M − ρI‖_F / ‖ρI‖_F, the M of one half times the M of the other, so below zero is noise
    r2                         R² of h' from h by least squares; ρ² where M = ρI
    eigenvalue_1 … _d          correlation across views on one half, of directions found on the other, slowest first

    Collapsed directions have eigenvalue NaN, and leave the whole of ρ to the operator error.
    """
    check_matrices(groups, h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    rate, d = float(rates(rho, 1)[0]), h.shape[1]
    fit, score = split
    halves = [WeightedCovariance(np.concatenate([h[rows], h_next[rows]], axis=1)) for rows in split]
    miss = np.square(h_next[score] - least_squares(h[fit], h_next[fit]).apply(h[score])).sum(1)
    directions = _directions(h[fit], h_next[fit])
    reference = rate * np.eye(d)

    def operator(weights: np.ndarray) -> dict[str, float]:
        one, other = (_map(half(w)) - reference for half, w in zip(halves, np.split(weights, [len(fit)]), strict=True))
        square = float(np.sum(one * other)) / (d * rate**2)
        return {"operator_error": float(np.copysign(np.sqrt(abs(square)), square))}

    def held_out(weights: np.ndarray) -> dict[str, float]:
        joint = halves[1](weights)
        total = np.trace(joint[d:, d:])
        explained = 1 - float(weights @ miss / weights.sum() / total) if total > 0 else float("nan")
        found = {f"eigenvalue_{k}": value for k, value in enumerate(_correlations(joint, directions), 1)}
        return {"r2": explained} | found

    found = {}
    for statistic, rows in ((operator, np.concatenate(split)), (held_out, score)):
        labels = None if groups is None else groups[rows]
        found |= bootstrap(statistic, len(rows), rng, groups=labels, replicates=replicates)
    return found


def _map(joint: np.ndarray) -> np.ndarray:
    """M from the covariance of (h, h'); zero from collapsed directions."""
    d = len(joint) // 2
    return joint[d:, :d] @ scipy.linalg.pinvh(joint[:d, :d], rtol=1e-12)


def _directions(h: np.ndarray, h_next: np.ndarray) -> np.ndarray:
    """Generalised eigenvectors u of C01 (symmetric part) and C00, as columns, slowest first; collapsed ones zero."""
    white = whitener(np.concatenate([h, h_next])).weight
    a, b = ((side - side.mean(0)) @ white for side in (h, h_next))
    values, vectors = np.linalg.eigh((a.T @ b + b.T @ a) / (2 * len(a)))
    directions = white @ vectors
    sizes = np.linalg.norm(directions, axis=0)
    live = sizes > 1e-8 * sizes.max()  # the whitener drops standard deviations below 1e-6 of the largest
    order = np.lexsort((-values, ~live))
    return (directions * live)[:, order]


def _correlations(joint: np.ndarray, directions: np.ndarray) -> list[float]:
    d = len(joint) // 2
    across = np.sum(directions * (joint[:d, d:] @ directions), axis=0)
    within = np.sum(directions * ((joint[:d, :d] + joint[d:, d:]) / 2 @ directions), axis=0)
    return [float(a / w) if w > 0 else float("nan") for a, w in zip(across, within, strict=True)]
