"""The dynamics read in the latent: Theorem 1 says that the regression h → h' is ρI where h = Qz.

    M = Cov(h', h) Cov(h)⁻¹        M = ρI for every h that is linear and invertible in z
    C01 u = λ C00 u                the rates: correlation across views of each direction

It is necessary, not sufficient: a shear passes as a rotation does. A nonlinear part of degree d pulls towards ρ^d.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from jepatlas.core.linear import Split, least_squares, whitener
from jepatlas.core.records import Estimate
from jepatlas.core.stats import bootstrap, explained_share
from jepatlas.identifiability.checks import as_arrays, check_matrices, check_same_shape, rates
from jepatlas.identifiability.covariance import WeightedCovariance

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
    h, h_next, groups = as_arrays(h=h, h_next=h_next, groups=groups)
    check_matrices(groups, h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    rate = float(rates(rho, 1)[0])
    halves = [WeightedCovariance(np.concatenate([h[rows], h_next[rows]], axis=1)) for rows in split]

    def operator(weights: np.ndarray) -> dict[str, float]:
        fit, score = np.split(weights, [len(split.fit)])
        return {"operator_error": _operator_error(_map(halves[0](fit)), _map(halves[1](score)), rate)}

    found = {}
    for statistic, rows in ((operator, np.concatenate(split)), (_HeldOut(h, h_next, split, halves[1]), split.score)):
        labels = None if groups is None else groups[rows]
        found |= bootstrap(statistic, len(rows), rng, groups=labels, replicates=replicates)
    return found


class _HeldOut:
    """What maps and directions of one half are worth on the other."""

    def __init__(self, h: np.ndarray, h_next: np.ndarray, split: Split, covariance: WeightedCovariance) -> None:
        fit, score = split
        self.covariance, self.directions = covariance, _directions(h[fit], h_next[fit])
        self.miss = np.square(h_next[score] - least_squares(h[fit], h_next[fit]).apply(h[score])).sum(1)

    def __call__(self, weights: np.ndarray) -> dict[str, float]:
        joint, d = self.covariance(weights), len(self.directions)
        total = np.trace(joint[d:, d:])
        explained = explained_share(weights @ self.miss / weights.sum(), total)
        found = {f"eigenvalue_{k}": value for k, value in enumerate(_correlations(joint, self.directions), 1)}
        return {"r2": explained} | found


def _operator_error(one: np.ndarray, other: np.ndarray, rate: float) -> float:
    """‖M − ρI‖_F / ‖ρI‖_F from two independent estimates of M."""
    d = len(one)
    square = float(np.sum((one - rate * np.eye(d)) * (other - rate * np.eye(d)))) / (d * rate**2)
    return float(np.copysign(np.sqrt(abs(square)), square))


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
