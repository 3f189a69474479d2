"""The rates of pairs and their sense of time, from C01 = E[h h'ᵀ]: its symmetric part decays, its other part turns.

Sampled rates spread even where there is one: of d directions and N pairs the largest eigenvalue is too large, and the
smallest too small. So both checks of rates have the null of `one_rate.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.identifiability.covariance import SignedProduct, WeightedCovariance, weighted_product
from jepatlas.identifiability.preconditions.one_rate import effective_pairs, sampled_rates
from jepatlas.identifiability.preconditions.pairs import DRAWS, WhitePairs, beside, judge, quantiles

__all__ = ["rate_verdicts", "reversibility"]

TURNING, RATES = 0.05, 1.25  # violations that matter
VARIES = 1e-9  # of the largest variance: a direction that a resample has left out has less


def rate_verdicts(pairs: WhitePairs) -> list[Verdict]:
    """`rate_window` and `isotropy`."""
    rates = _rates(pairs)
    found = pairs.estimates("rates", lambda weights: _measures(rates(weights)), {"window": -np.inf, "ratio": 1.0})
    rho = float(np.clip(np.mean(rates(np.ones(len(pairs.h)))), 0.0, 1 - 1e-9))
    worth = effective_pairs(pairs.h, pairs.h_next, pairs.labels, rho)
    drawn = [
        _measures(sample) for sample in sampled_rates(rho, pairs.h.shape[1], worth, pairs.rng("rates null"), DRAWS)
    ]
    null = {name: np.array([draw[name] for draw in drawn] or [np.nan]) for name in found}
    return [_window(found["window"], null["window"], rho - rho**2), _isotropy(found["ratio"], null["ratio"])]


def _measures(rho: np.ndarray) -> dict[str, float]:
    """Of rates, ascending: ρ_min − ρ_max², and log ρ_min / log ρ_max, the fastest decay over the slowest."""
    if not len(rho):
        return {"window": np.nan, "ratio": np.nan}
    inside = np.clip(rho, 1e-6, 1 - 1e-6)
    return {
        "window": float(rho[0] - max(rho[-1], 0.0) ** 2),
        "ratio": float(np.log(inside[0]) / np.log(inside[-1])),
    }


def _window(found: Estimate, null: np.ndarray, expected: float) -> Verdict:
    """Where it is negative, a slow direction's second harmonic outlives a fast one's first.

    The null is of one rate, where the window is `expected` but for sampling; as much is granted to other rates.
    """
    least = float(np.quantile(null, 0.01))
    threshold, passed = min(0.0, least - expected), None
    if found.high < threshold:
        passed = False
    elif found.value >= 0 and least >= 0:
        passed = True
    advice = {
        True: "The slowest and the fastest direction are close enough to be recovered together.",
        False: "The fastest direction decays faster than the slowest one's square: a nonlinear function of the slow "
        "one takes its place. Use a shorter stride between views, or treat slow and fast parts apart.",
        None: "Undecided: with so few independent pairs the slowest and the fastest direction could lie so far apart "
        "by chance. More pairs (or groups) will tell."
        if not least >= 0
        else "Undecided: the fastest direction and the slowest one's square are too close to tell apart.",
    }[passed]
    return Verdict(
        "rate_window",
        found.value,
        found.low,
        found.high,
        found.n,
        float(null.mean()),
        threshold if np.isfinite(threshold) else 0.0,
        "higher",
        passed,
        advice,
    )


def _isotropy(found: Estimate, draws: np.ndarray) -> Verdict:
    """1 where there is one rate, but for sampling."""
    null = quantiles(draws)
    return judge(
        "isotropy",
        found,
        null,
        RATES * null[0],
        (
            "All directions decay at about one rate, as the bound presumes.",
            "Directions decay at different rates: the bound, which presumes one ρ, does not apply as "
            "it stands. Bring the "
            "pairs toward one rate (isotropise), or pair states that lie as many steps apart in every direction.",
        ),
    )


def _rates(pairs: WhitePairs) -> Callable[[np.ndarray], np.ndarray]:
    """Autocorrelations of the latents' directions, ascending: eigenvalues of the symmetric part of C01 against C00.

    Of the directions that vary under the weights: a resample may leave out the few rows that one of them lives on.
    """
    dim = pairs.h.shape[1]
    covariance = WeightedCovariance(np.concatenate([pairs.h, pairs.h_next], axis=1))

    def of(weights: np.ndarray) -> np.ndarray:
        joint = covariance(weights)
        cross = joint[:dim, dim:]
        values, vectors = np.linalg.eigh(joint[:dim, :dim] + joint[dim:, dim:])
        kept = values > VARIES * max(values[-1], np.finfo(float).tiny)
        root = vectors[:, kept] / np.sqrt(values[kept])
        return np.linalg.eigvalsh(root.T @ (cross + cross.T) @ root) if kept.any() else np.empty(0)

    return of


def reversibility(pairs: WhitePairs) -> Verdict:
    """‖A‖/‖S‖ of the antisymmetric and the symmetric part of C01; exchanging views turns the sign of A."""
    cross = pairs.h.T @ pairs.h_next
    scale = max(float(np.linalg.norm(cross + cross.T)), 1e-300)

    def ratio(turned: np.ndarray) -> float:
        return float(np.linalg.norm(turned - turned.T) / scale)

    signed = SignedProduct(pairs.h, pairs.h_next)
    null = quantiles(ratio(signed(sign)) for sign in pairs.signs("reversibility null"))
    estimate = pairs.estimate(
        "reversibility", lambda weights: ratio(weighted_product(pairs.h, pairs.h_next, weights)), least=0.0
    )
    return judge(
        "reversibility",
        estimate,
        null,
        beside(null, TURNING),
        (
            "Pairs look the same in both orders of time.",
            "Pairs tell the direction of time: states turn about each other, and correlations "
            "understate how predictable "
            "they are. Pair states in both orders, or leave out what turns.",
        ),
    )
