"""Theorem 3 of "When Does LeJEPA Learn a World Model?": the distance of h from a rotation of z, without z.

    ε = ‖Cov h − I‖_F        δ = E‖h − h'‖² − 2(1−ρ) tr Cov h        D = δ / (2ρ(1−ρ))
    min_Q E‖h − Qz‖²  ≤  D + (ε + D)²

It presumes a Gaussian world with one rate ρ for all directions, and zero mean: so h is centred first. A sampled δ
can be negative; D counts as zero then.
"""

from __future__ import annotations

import numpy as np

from jepatlas.base.errors import InputError
from jepatlas.base.records import Estimate
from jepatlas.base.stats import bootstrap
from jepatlas.identify.covariance import WeightedCovariance

__all__ = ["bound", "bound_terms", "epsilon_null"]


def bound(
    h: np.ndarray,
    h_next: np.ndarray,
    rho: float,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """Estimates of `epsilon`, `delta`, `gap` (D) and `bound`, with intervals."""
    if not 0 < rho < 1:
        raise InputError(f"The correlation ρ of a pair must lie between 0 and 1, but {rho} was given.")
    statistic = _Terms(h, h_next, rho)
    return bootstrap(statistic, len(h), rng, groups=groups, replicates=replicates)


def bound_terms(h: np.ndarray, h_next: np.ndarray, rho: float, weights: np.ndarray | None = None) -> dict[str, float]:
    """Every term of the theorem; the covariance is that of both views about their common mean."""
    return _Terms(h, h_next, rho)(np.ones(len(h)) if weights is None else weights)


class _Terms:
    def __init__(self, h: np.ndarray, h_next: np.ndarray, rho: float) -> None:
        self.rho = rho
        self.covariance = WeightedCovariance(np.concatenate([h, h_next]))
        self.distances = np.square(h - h_next).sum(1)

    def __call__(self, weights: np.ndarray) -> dict[str, float]:
        rho, covariance = self.rho, self.covariance(np.concatenate([weights, weights]))
        loss = weights @ self.distances / weights.sum()
        epsilon = float(np.linalg.norm(covariance - np.eye(len(covariance))))
        delta = float(loss - 2 * (1 - rho) * np.trace(covariance))
        gap = delta / (2 * rho * (1 - rho))
        excess = max(gap, 0.0)
        return {"epsilon": epsilon, "delta": delta, "gap": gap, "bound": excess + (epsilon + excess) ** 2}


def epsilon_null(dim: int, pairs: float, rho: float = 0.0) -> float:
    """What sampling alone makes of ε for white Gaussian latents: √(d(d+1)(1+ρ²) / 2 pairs).

    The two rows of a pair are worth 2/(1+ρ²) independent ones, because their products correlate by ρ².
    """
    return float(np.sqrt(dim * (dim + 1) * (1 + rho**2) / (2 * pairs)))
