"""The precondition audit: do a user's own pairs look like the world that the theorems speak of? No truth is needed.

Each check is the size of a violation, with an interval from a bootstrap by groups, beside its null: what the statistic
is where the assumption holds. It fails where even the lower end of the interval is above both the null's 99% quantile
and what matters in practice, for with enough samples every assumption is violated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from jepatlas.base.linear import least_squares, whitener
from jepatlas.base.records import Estimate, Verdict
from jepatlas.base.seeding import numpy_generator
from jepatlas.base.stats import bootstrap
from jepatlas.identify.checks import check_matrices, check_same_shape
from jepatlas.identify.covariance import WeightedCovariance
from jepatlas.identify.gaussianity import distance_from_gaussian, gaussian_null
from jepatlas.identify.rank import effective_rank, principal_axes
from jepatlas.identify.sliced import GroupDistance, SlicedFeatures

__all__ = ["audit"]

DRAWS = 200
ROWS = 4000  # as many as the sliced distances and dependences are taken over
DISTANCE, DEPENDENCE, TURNING, RATES = 0.05, 0.05, 0.05, 1.25  # violations that matter


def audit(h: np.ndarray, h_next: np.ndarray, *, groups: np.ndarray | None = None, seed: int = 0) -> list[Verdict]:
    """Verdicts on pairs of latents, or of any other coordinates; rows of one group are drawn and exchanged together.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 2000, 2))
    >>> [v.name for v in audit(z, 0.9 * z + np.sqrt(0.19) * noise) if v.passed is False]
    []
    """
    check_matrices(groups, h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    h, h_next = h.astype(np.float64), h_next.astype(np.float64)
    variances, axes, alive = principal_axes(h, h_next)
    if not alive.any():
        return [effective_rank(h, h_next)]
    labels = np.arange(len(h)) if groups is None else np.unique(groups, return_inverse=True)[1]
    scale = axes[:, alive] / np.sqrt(variances[alive])
    scale = scale @ axes.T if alive.all() else scale  # symmetric: coordinates stay as near to the given ones as can be
    mean = np.concatenate([h, h_next]).mean(0)
    pairs = _Pairs((h - mean) @ scale, (h_next - mean) @ scale, labels, seed)
    some = pairs.some(ROWS)
    return [
        effective_rank(h, h_next),
        _stationarity(some),
        _gaussianity(some),
        _rate_window(pairs),
        _isotropy(pairs),
        _additive_noise(some),
        _independence(some),
        _reversibility(pairs),
    ]


@dataclass(frozen=True)
class _Pairs:
    """Pairs in coordinates of unit covariance, with the randomness that their nulls and intervals need."""

    h: np.ndarray
    h_next: np.ndarray
    labels: np.ndarray
    seed: int

    @property
    def groups(self) -> int:
        return int(self.labels.max()) + 1

    def rng(self, name: str) -> np.random.Generator:
        return numpy_generator(self.seed, f"audit/{name}")

    def some(self, rows: int) -> _Pairs:
        """Random groups, about so many rows of them."""
        order = self.rng("rows").permutation(self.groups)
        sizes = np.cumsum(np.bincount(self.labels)[order])
        kept = np.isin(self.labels, order[: np.searchsorted(sizes, rows) + 1])
        labels = np.unique(self.labels[kept], return_inverse=True)[1]
        return _Pairs(self.h[kept], self.h_next[kept], labels, self.seed)

    def estimate(self, name: str, statistic: Callable[[np.ndarray], float]) -> Estimate:
        """Of a statistic of row weights."""
        draws = bootstrap(
            lambda w: {name: statistic(w)}, len(self.h), self.rng(name), groups=self.labels, replicates=DRAWS
        )
        return draws[name]


def _judge(
    name: str, estimate: Estimate, null: tuple[float, float], matters: float, advice: tuple[str, str]
) -> Verdict:
    """`null` is its mean and its 99% quantile, `advice` what to say of a pass and of a failure."""
    limit = max(null[1], matters)
    passed = bool(estimate.low <= limit)
    numbers = (estimate.value, estimate.low, estimate.high, estimate.n, null[0], limit)
    return Verdict(name, *numbers, direction="lower", passed=passed, advice=advice[not passed])


def _quantiles(null: list[float]) -> tuple[float, float]:
    return float(np.mean(null)), float(np.quantile(null, 0.99))


def _stationarity(pairs: _Pairs) -> Verdict:
    """Distance between the distributions of h and h'; exchanging the views of a group turns the sign of its gap."""
    features = SlicedFeatures(pairs.h.shape[1], pairs.rng("slices"))
    distance = GroupDistance(features(pairs.h) - features(pairs.h_next), pairs.labels)
    rng = pairs.rng("stationarity null")
    signs = (rng.choice([-1.0, 1.0], pairs.groups)[pairs.labels] for _ in range(DRAWS))
    null = [distance(sign) for sign in signs]
    return _judge("stationarity", pairs.estimate("stationarity", distance), _quantiles(null), DISTANCE, (
        "Both views of a pair are distributed alike.",
        "The second view is distributed otherwise than the first: draw pairs from the middle of longer episodes, or "
        "let the process settle.",
    ))  # fmt: skip


def _gaussianity(pairs: _Pairs) -> Verdict:
    """Distance of the whitened latents from N(0, I), and of Gaussian samples that were whitened likewise."""
    estimate = pairs.estimate("gaussianity", distance_from_gaussian(pairs.h, pairs.labels, pairs.seed))
    return _judge("gaussianity", estimate, gaussian_null(*pairs.h.shape, pairs.seed), DISTANCE, (
        "The latents look Gaussian in every direction tried.",
        "The latents are not Gaussian, and linear identifiability is proven for Gaussian worlds only: expect recovery "
        "up to a monotone warp at best, or explore more isotropically.",
    ))  # fmt: skip


def _rates(pairs: _Pairs) -> Callable[[np.ndarray], np.ndarray]:
    """Autocorrelations of the latents' directions, ascending: eigenvalues of the symmetric part of C01 against C00."""
    dim = pairs.h.shape[1]
    covariance = WeightedCovariance(np.concatenate([pairs.h, pairs.h_next], axis=1))

    def of(weights: np.ndarray) -> np.ndarray:
        joint = covariance(weights)
        cross = joint[:dim, dim:]
        return scipy.linalg.eigvalsh(cross + cross.T, joint[:dim, :dim] + joint[dim:, dim:])

    return of


def _rate_window(pairs: _Pairs) -> Verdict:
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


def _isotropy(pairs: _Pairs) -> Verdict:
    """log ρ_min / log ρ_max, the fastest decay over the slowest: 1 where there is one rate."""
    rates = _rates(pairs)

    def ratio(weights: np.ndarray) -> float:
        rho = np.clip(rates(weights), 1e-6, 1 - 1e-6)
        return float(np.log(rho[0]) / np.log(rho[-1]))

    return _judge("isotropy", pairs.estimate("isotropy", ratio), (1.0, 1.0), RATES, (
        "All directions decay at about one rate, as the bound presumes.",
        "Directions decay at different rates: the bound, which presumes one ρ, does not apply as it stands.",
    ))  # fmt: skip


def _residuals(pairs: _Pairs) -> np.ndarray:
    """Of the linear prediction, whitened: what is left must not owe its dependence to unequal rates."""
    residual = pairs.h_next - least_squares(pairs.h, pairs.h_next).apply(pairs.h)
    return whitener(residual).apply(residual)


def _dependence(columns: list[tuple[np.ndarray, np.ndarray]]) -> Callable[[np.ndarray], float]:
    """Root mean square of the correlations between the columns on the left and those on the right; 0 for the same one.

    Of independent columns it is 1/√n (the permutation variance of a correlation is 1/(n − 1)).
    """

    def of(weights: np.ndarray) -> float:
        share, squares = weights / weights.sum(), []
        for left, right in columns:
            a, b = left - share @ left, right - share @ right
            spread = np.sqrt(np.outer(share @ a**2, share @ b**2))
            correlation = (a * share[:, None]).T @ b / np.maximum(spread, 1e-300)
            squares.append(correlation[~np.eye(len(correlation), dtype=bool)] if left is right else correlation.ravel())
        return float(np.sqrt(np.mean(np.concatenate(squares) ** 2)))

    return of


def _independent(pairs: _Pairs) -> tuple[float, float]:
    null = 1 / np.sqrt(max(pairs.groups - 1, 1))
    return null, 1.5 * null


def _additive_noise(pairs: _Pairs) -> Verdict:
    """Whether the residual of the linear prediction, or its size, depends on the state it started from."""
    residual = _residuals(pairs)
    noise = np.concatenate([residual, residual**2], axis=1)
    state = np.concatenate([pairs.h**2, np.abs(pairs.h) * pairs.h], axis=1)
    estimate = pairs.estimate("additive_noise", _dependence([(noise, state)]))
    return _judge("additive_noise", estimate, _independent(pairs), DEPENDENCE, (
        "What a linear prediction leaves over does not depend on the state.",
        "The residual of a linear prediction depends on the state: the noise is not additive, or the latents are bent.",
    ))  # fmt: skip


def _independence(pairs: _Pairs) -> Verdict:
    """Whether the squares of different coordinates are correlated, of the latents and of their residuals."""
    if pairs.h.shape[1] == 1:
        alone = Estimate(0.0, 0.0, 0.0, len(pairs.h))
        return Verdict.judge("independence", alone, direction="lower", good="There is only one coordinate.")
    squares = [np.square(part) for part in (pairs.h, _residuals(pairs))]
    estimate = pairs.estimate("independence", _dependence([(part, part) for part in squares]))
    return _judge("independence", estimate, _independent(pairs), DEPENDENCE, (
        "Coordinates, and their residuals, vary independently as far as their squares tell.",
        "Coordinates vary together in size: they are not independent, in the state or in its noise.",
    ))  # fmt: skip


def _reversibility(pairs: _Pairs) -> Verdict:
    """‖A‖/‖S‖ of the antisymmetric and the symmetric part of C01; exchanging views turns the sign of A."""
    cross = pairs.h.T @ pairs.h_next
    scale = max(float(np.linalg.norm(cross + cross.T)), 1e-300)

    def ratio(weights: np.ndarray) -> float:
        turned = (pairs.h * weights[:, None]).T @ pairs.h_next
        return float(np.linalg.norm(turned - turned.T) / scale)

    rng = pairs.rng("reversibility null")
    null = [ratio(rng.choice([-1.0, 1.0], pairs.groups)[pairs.labels]) for _ in range(DRAWS)]
    return _judge("reversibility", pairs.estimate("reversibility", ratio), _quantiles(null), TURNING, (
        "Pairs look the same in both orders of time.",
        "Pairs tell the direction of time: states turn about each other, and correlations understate how predictable "
        "they are.",
    ))  # fmt: skip
