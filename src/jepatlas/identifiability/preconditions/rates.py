"""Audit checks on rates and reversibility: the symmetric and the antisymmetric part of C01 = E[h h'ᵀ].

Sampled rates spread even if all true rates are equal: with d directions and N pairs the largest eigenvalue is too large
and the smallest too small. With p = (h + h')/√(2(1+ρ)) and q = (h − h')/√(2(1−ρ)), Gaussian pairs of one rate ρ are two
independent white samples. P = Σ ppᵀ and Q = Σ qqᵀ are Wishart matrices with N − 1 degrees of freedom, and the sampled
rates are

    λ = ((1+ρ)θ − (1−ρ)) / ((1+ρ)θ + (1−ρ))        θ: the eigenvalues of P relative to Q

so that a draw from the null costs d³ for any N. If rows are correlated or heavy-tailed, the effective number is

    N = n² E‖m‖² / Σ_g ‖Σ_{i∈g} m_i‖²        m = ½(h h'ᵀ + h' hᵀ) − ½ρ(h hᵀ + h' h'ᵀ),  E‖m‖² = ½ d(d+1)(1−ρ²)²

the variance of the entries of S − ρ C₀₀ in a Gaussian world, relative to that in the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.linalg

from jepatlas.core.records import Estimate, Verdict
from jepatlas.identifiability.covariance import UnitProducts, WeightedCovariance
from jepatlas.identifiability.preconditions.white_pairs import (
    WhitePairs,
    add_in_quadrature,
    judge,
    mean_and_quantile,
)

__all__ = ["effective_pairs", "rate_verdicts", "reversibility", "sampled_rates"]

RELEVANT_ROTATION = 0.05
RELEVANT_RATIO = 1.25
VARIES = 1e-9  # relative variance below which a direction was left out by a resample


def rate_verdicts(pairs: WhitePairs) -> list[Verdict]:
    """`rate_window` and `isotropy`."""
    dim = pairs.h.shape[1]
    rates = _rates(pairs)
    found = pairs.estimates("rates", lambda weights: _measures(rates(weights)), {"window": -np.inf, "ratio": 1.0})
    rho = float(np.clip(np.mean(rates(np.ones(len(pairs.h)))), 0.0, 1 - 1e-9))
    effective = effective_pairs(pairs.h, pairs.h_next, pairs.labels, rho)
    drawn = [_measures(sample) for sample in sampled_rates(rho, dim, effective, pairs.rng("rates null"), pairs.draws)]
    null = {name: np.array([draw[name] for draw in drawn] or [np.nan]) for name in found}
    return [_window_verdict(found["window"], null["window"], rho - rho**2), _isotropy(found["ratio"], null["ratio"])]


def _measures(rho: np.ndarray) -> dict[str, float]:
    """Of rates, ascending: ρ_min − ρ_max², and log ρ_min / log ρ_max, the ratio of the fastest to the slowest decay."""
    if not len(rho):
        return {"window": np.nan, "ratio": np.nan}
    inside = np.clip(rho, 1e-6, 1 - 1e-6)
    return {
        "window": float(rho[0] - max(rho[-1], 0.0) ** 2),
        "ratio": float(np.log(inside[0]) / np.log(inside[-1])),
    }


def _window_verdict(found: Estimate, null: np.ndarray, expected: float) -> Verdict:
    """Negative if the second harmonic of a slow direction is slower than a fast direction.

    The null has one rate, where the window is `expected` up to sampling; the same deviation is allowed for other rates.
    """
    smallest = float(np.quantile(null, 0.01))
    threshold = min(0.0, smallest - expected)
    passed = None
    if found.high < threshold:
        passed = False
        advice = (
            "The fastest direction decays faster than the square of the slowest, so a nonlinear function of the slow "
            "one takes its place. Use a shorter stride between views, or treat slow and fast parts separately."
        )
    elif found.value >= 0 and smallest >= 0:
        passed = True
        advice = "The rates of the slowest and the fastest direction are close enough to recover both."
    elif smallest >= 0:
        advice = (
            "Undecided: the rate of the fastest direction is too close to the square of the slowest. Give more pairs."
        )
    else:
        advice = (
            "Undecided: with so few independent pairs, equal rates could look this different by chance. Give more "
            "pairs or groups."
        )
    return Verdict(
        "rate_window",
        found.value,
        found.low,
        found.high,
        found.n,
        null=float(null.mean()),
        threshold=threshold if np.isfinite(threshold) else 0.0,
        direction="higher",
        passed=passed,
        advice=advice,
    )


def _isotropy(found: Estimate, draws: np.ndarray) -> Verdict:
    """1 if all rates are equal, up to sampling."""
    null = mean_and_quantile(draws)
    return judge(
        "isotropy",
        found,
        null,
        RELEVANT_RATIO * null[0],
        good="All directions decay at about the same rate, as the bound assumes.",
        bad="Directions decay at different rates, but the bound assumes one ρ. Isotropise the pairs "
        "(`isotropic_weights`), or pair states that are equally many steps apart in every direction.",
    )


def _rates(pairs: WhitePairs) -> Callable[[np.ndarray], np.ndarray]:
    """Autocorrelations of the latents' directions, ascending: eigenvalues of the symmetric part of C01 relative to C00.

    Directions without variance under the weights are left out: a resample may omit the few rows that carry one.
    """
    dim = pairs.h.shape[1]
    covariance = WeightedCovariance(np.concatenate([pairs.h, pairs.h_next], axis=1), pairs.units)

    def rates(weights: np.ndarray) -> np.ndarray:
        joint = covariance(weights)
        cross = joint[:dim, dim:]
        values, vectors = np.linalg.eigh(joint[:dim, :dim] + joint[dim:, dim:])
        kept = values > VARIES * max(values[-1], np.finfo(float).tiny)
        if not kept.any():
            return np.empty(0)
        root = vectors[:, kept] / np.sqrt(values[kept])
        return np.linalg.eigvalsh(root.T @ (cross + cross.T) @ root)

    return rates


def effective_pairs(h: np.ndarray, h_next: np.ndarray, labels: np.ndarray, rho: float) -> float:
    """N for white rows (b, d), where rows with the same label are correlated; at most b."""
    plus = h + h_next
    plus = plus - plus.mean(0)
    minus = h - h_next
    minus = minus - minus.mean(0)
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    n, dim = h.shape
    groups = len(starts)
    if groups == n:
        plus_lengths = np.square(plus).sum(1)
        minus_lengths = np.square(minus).sum(1)
        crossed = np.square((plus * minus).sum(1))
        each = (1 - rho) ** 2 * plus_lengths**2 + (1 + rho) ** 2 * minus_lengths**2 - 2 * (1 - rho**2) * crossed
        square = float(each.sum()) / 16 - float(np.square(_part(plus, minus, rho)).sum()) / n
    else:
        whole = _part(plus, minus, rho) / n
        square = 0.0
        for rows in np.split(order, starts[1:]):
            square += float(np.square(_part(plus[rows], minus[rows], rho) - len(rows) * whole).sum())
    expected = dim * (dim + 1) * (1 - rho**2) ** 2 / 2
    return float(min(n**2 * expected * (groups - 1) / (groups * max(square, 1e-300)), n))


def _part(plus: np.ndarray, minus: np.ndarray, rho: float) -> np.ndarray:
    """Σ m over some rows: ¼((1−ρ)(h+h')(h+h')ᵀ − (1+ρ)(h−h')(h−h')ᵀ)."""
    return ((1 - rho) * plus.T @ plus - (1 + rho) * minus.T @ minus) / 4


def sampled_rates(rho: float, dim: int, pairs: float, rng: np.random.Generator, draws: int) -> Iterator[np.ndarray]:
    """Null draws of the d rates, ascending; none if pairs are too few for d directions."""
    if pairs - 1 <= dim:
        return
    for _ in range(draws):
        p = _wishart(dim, pairs - 1, rng)
        q = _wishart(dim, pairs - 1, rng)
        theta = scipy.linalg.eigvalsh(p, q)
        yield ((1 + rho) * theta - (1 - rho)) / ((1 + rho) * theta + (1 - rho))


def _wishart(dim: int, freedom: float, rng: np.random.Generator) -> np.ndarray:
    """Σ ppᵀ of white Gaussian rows, by Bartlett's decomposition."""
    root = np.tril(rng.standard_normal((dim, dim)), -1)
    np.fill_diagonal(root, np.sqrt(rng.chisquare(freedom - np.arange(dim))))
    return root @ root.T


def reversibility(pairs: WhitePairs) -> Verdict:
    """‖A‖/‖S‖ of the antisymmetric and the symmetric part of C01; exchanging the views flips the sign of A."""
    cross = pairs.h.T @ pairs.h_next
    scale = max(float(np.linalg.norm(cross + cross.T)), 1e-300)

    def ratio(matrix: np.ndarray) -> float:
        return float(np.linalg.norm(matrix - matrix.T) / scale)

    products = UnitProducts(pairs.h, pairs.h_next, pairs.units)
    null = mean_and_quantile(ratio(products(sign)) for sign in pairs.unit_signs("reversibility null"))
    estimate = pairs.estimate("reversibility", lambda weights: ratio(products(weights)), minimum=0.0)
    return judge(
        "reversibility",
        estimate,
        null,
        add_in_quadrature(null, RELEVANT_ROTATION),
        good="The pairs look the same in both orders of time.",
        bad="The pairs have a direction of time: states rotate, and correlations understate how predictable they are. "
        "Use pairs in both orders, or leave out the rotating coordinates.",
    )
