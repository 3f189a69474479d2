"""The rates of pairs and their sense of time, from C01 = E[h h'ᵀ]: its symmetric part decays, its other part turns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from jepatlas.base.records import Verdict
from jepatlas.identify.covariance import WeightedCovariance
from jepatlas.identify.preconditions.pairs import DRAWS, WhitePairs, judge, quantiles

__all__ = ["isotropy", "rate_window", "reversibility"]

TURNING, RATES = 0.05, 1.25  # violations that matter


def rate_window(pairs: WhitePairs) -> Verdict:
    """ρ_min − ρ_max²: where it is negative, a slow direction's second harmonic outlives a fast one's first."""
    rates = _rates(pairs)

    def window(weights: np.ndarray) -> float:
        rho = rates(weights)
        return float(rho[0] - max(rho[-1], 0.0) ** 2)

    estimate = pairs.estimate("rate_window", window)
    passed = bool(estimate.high >= 0)
    numbers = (estimate.value, estimate.low, estimate.high, estimate.n)
    return Verdict("rate_window", *numbers, None, 0.0, "higher", passed, (
        "The slowest and the fastest direction are close enough to be recovered together."
        if passed else
        "The fastest direction decays faster than the slowest one's square: a nonlinear function of the slow one takes "
        "its place. Use a shorter stride between views, or treat slow and fast parts apart."
    ))  # fmt: skip


def isotropy(pairs: WhitePairs) -> Verdict:
    """log ρ_min / log ρ_max, the fastest decay over the slowest: 1 where there is one rate."""
    rates = _rates(pairs)

    def ratio(weights: np.ndarray) -> float:
        rho = np.clip(rates(weights), 1e-6, 1 - 1e-6)
        return float(np.log(rho[0]) / np.log(rho[-1]))

    return judge("isotropy", pairs.estimate("isotropy", ratio), (1.0, 1.0), RATES, (
        "All directions decay at about one rate, as the bound presumes.",
        "Directions decay at different rates: the bound, which presumes one ρ, does not apply as it stands.",
    ))  # fmt: skip


def _rates(pairs: WhitePairs) -> Callable[[np.ndarray], np.ndarray]:
    """Autocorrelations of the latents' directions, ascending: eigenvalues of the symmetric part of C01 against C00."""
    dim = pairs.h.shape[1]
    covariance = WeightedCovariance(np.concatenate([pairs.h, pairs.h_next], axis=1))

    def of(weights: np.ndarray) -> np.ndarray:
        joint = covariance(weights)
        cross = joint[:dim, dim:]
        return scipy.linalg.eigvalsh(cross + cross.T, joint[:dim, :dim] + joint[dim:, dim:])

    return of


def reversibility(pairs: WhitePairs) -> Verdict:
    """‖A‖/‖S‖ of the antisymmetric and the symmetric part of C01; exchanging views turns the sign of A."""
    cross = pairs.h.T @ pairs.h_next
    scale = max(float(np.linalg.norm(cross + cross.T)), 1e-300)

    def ratio(weights: np.ndarray) -> float:
        turned = (pairs.h * weights[:, None]).T @ pairs.h_next
        return float(np.linalg.norm(turned - turned.T) / scale)

    rng = pairs.rng("reversibility null")
    null = [ratio(rng.choice([-1.0, 1.0], pairs.groups)[pairs.labels]) for _ in range(DRAWS)]
    return judge("reversibility", pairs.estimate("reversibility", ratio), quantiles(null), TURNING, (
        "Pairs look the same in both orders of time.",
        "Pairs tell the direction of time: states turn about each other, and correlations understate how predictable "
        "they are.",
    ))  # fmt: skip
