"""Isotropisation: weights that make the exploration of pairs isotropic and Gaussian, by a dose from 0 to 1.

    w(s) ∝ N(s; mean, c²I) / p(s)          W(s, s') = (w(s) w(s'))^{dose/2}

For small steps, the alignment loss of pairs with density p and the same noise everywhere is ∫ |Df|² p, so W turns it
into ∫ |Df|² N(0, c²I), whose slowest functions are linear and equally slow. Three consequences: the noise must be
additive, because reweighting changes where an agent goes, not how it moves. The units must be those in which steps are
isotropic: Gaussian states with unequal rates have unequal spreads there, and isotropisation equalises their rates. And
regions without data cannot be upweighted; `distance` measures what remains.

W is symmetric in s and s', so pairs of a reversible process stay reversible. The density of the weighted s is then
p √w E[√w(s') | s], which is N(0, c²I) up to the blur of one step.

The density ratio is that of a logistic classifier between samples of a standard Gaussian and the data,

    log N(t; 0, I)/p(t) = θᵀφ(t),     θ = argmin  mean log(1 + e^{−y θᵀφ}) + λ‖θ‖²/2,   y = 1 Gaussian, −1 data

(Sugiyama, Suzuki & Kanamori 2012). Moment matching fails outside the data: it puts all weight on the outermost rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from jepatlas.core.errors import InputError, check_count, check_positive
from jepatlas.core.linear import whitener
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.preconditions.sliced_distance import GroupDistance, SlicedFeatures
from jepatlas.identifiability.validation import check_matrices, check_same_shape, check_weights

__all__ = [
    "GaussianRatio",
    "Isotropised",
    "Isotropy",
    "fit_gaussian_ratio",
    "fit_isotropy",
    "isotropic_resample",
    "isotropic_weights",
]

DISTANCE_ROWS = 4000
MAX_WEIGHT = 20.0
"""Largest weight relative to the mean: a single outlier must not replace all the data missing around it. It also limits
the cost: with w ≤ 20·mean, the effective number of pairs is at least a twentieth, as Σw² ≤ 20·mean·Σw."""

PENALTIES = (1e-2, 1e-3, 1e-4, 1e-5)
WAVES = (1.0, 2.0, 3.0)
SLICES = 16  # random directions in addition to the axes
PRODUCTS_UP_TO = 16  # dimensions; above, only squares
MAX_EXCESS_RADIUS = 4.0  # beyond √d + 4 standard deviations, the ratio is held constant
MAX_RATIO_ROWS = 10_000  # of the data, and as many of the Gaussian
BATCH = 8192
NEWTON_ROUNDS = 50
NEWTON_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Isotropised:
    """Weights of pairs, and their cost."""

    weights: np.ndarray  # (b,), mean one
    dose: float
    ess: float  # effective number of pairs, (Σw)²/Σw²
    clipped: float  # share of pairs whose weight was clipped
    distance: float  # sliced distance of the weighted coordinates from the Gaussian, as in `audit`


@dataclass(frozen=True)
class Isotropy:
    """A density ratio, fitted once for all doses."""

    coordinates: LinearMap  # of s, to units in which the target is N(0, I)
    t: np.ndarray  # (b, d) the first states of the pairs, in those units
    log_ratio: np.ndarray  # (b,) of each pair: ½ log w(s) + ½ log w(s')
    seed: int

    def at(self, dose: float) -> Isotropised:
        if not 0 <= dose <= 1:
            raise InputError(f"dose must be between 0 and 1, but is {dose}.")
        ratio = np.exp(dose * (self.log_ratio - self.log_ratio.max()))
        weights = _clip(ratio)
        clipped = float((weights < ratio).mean())
        weights = weights / weights.mean()
        ess = float(weights.sum() ** 2 / np.square(weights).sum())
        return Isotropised(weights, dose, ess, clipped, self._distance(weights))

    def _distance(self, weights: np.ndarray) -> float:
        rng = numpy_generator(self.seed, "isotropise/distance")
        some = rng.permutation(len(self.t))[:DISTANCE_ROWS]
        features = SlicedFeatures(self.t.shape[1], rng)
        return GroupDistance(features(self.t[some]) - features.gaussian, np.arange(len(some)))(weights[some])


def _clip(weights: np.ndarray) -> np.ndarray:
    """Clip weights at τ, the largest with τ ≤ 20 times the mean *after* clipping.

    A limit relative to the mean before clipping would not restrain one row with nearly all the weight. With k rows
    clipped, τ = 20 (kτ + rest)/n, so τ = 20 rest/(n − 20k).
    """
    n = len(weights)
    order = np.sort(weights)[::-1]
    rest = np.cumsum(order[::-1])[::-1]  # sum of all rows but the k largest
    k = np.arange(-(-n // MAX_WEIGHT)).astype(int)  # at the last of these τ ≥ rest, which always suffices
    limits = MAX_WEIGHT * rest[k] / (n - MAX_WEIGHT * k)
    return np.minimum(weights, limits[np.argmax(order[k] <= limits)])


def isotropic_weights(
    s: np.ndarray,
    s_next: np.ndarray,
    dose: float,
    *,
    units: Literal["steps", "given"] = "steps",
    scale: float = 1.0,
    seed: int = 0,
) -> Isotropised:
    """Weights of the pairs with states s and s_next (b, d): the truth, or any coordinates that estimate it.

    dose    0 leaves all weights equal, 1 corrects the density fully, values between temper the correction
    units   "steps": units in which steps s' − s are isotropic. "given": those of s, if steps are isotropic there
    scale   c relative to the smallest standard deviation of s in any direction of those units. Below 1 the Gaussian
            fits better into a bounded region, at the cost of effective pairs

    >>> rng = np.random.default_rng(0)
    >>> s, noise = rng.standard_normal((2, 4000, 2))
    >>> rho = np.array([0.95, 0.8])
    >>> found = isotropic_weights(s, rho * s + np.sqrt(1 - rho**2) * noise, 1.0)
    >>> bool(0.5 < found.ess / 4000 < 0.8)
    True
    """
    return fit_isotropy(s, s_next, units=units, scale=scale, seed=seed).at(dose)


def fit_isotropy(
    s: np.ndarray,
    s_next: np.ndarray,
    *,
    units: Literal["steps", "given"] = "steps",
    scale: float = 1.0,
    seed: int = 0,
) -> Isotropy:
    """The same for many doses: `fit_isotropy(s, s_next).at(dose)`."""
    check_matrices(s=s, s_next=s_next)
    check_same_shape(s=s, s_next=s_next)
    if units not in ("steps", "given"):
        raise InputError(f"units must be 'steps' or 'given', but is '{units}'.")
    check_positive("scale", scale)
    s = s.astype(np.float64)
    s_next = s_next.astype(np.float64)
    coordinates = _coordinates(s, s_next, units, scale)
    t = coordinates.apply(s)
    t_next = coordinates.apply(s_next)
    ratio = fit_gaussian_ratio(np.concatenate([t, t_next]), numpy_generator(seed, "isotropise/ratio"))
    return Isotropy(coordinates, t, (ratio(t) + ratio(t_next)) / 2, seed)


def _coordinates(s: np.ndarray, s_next: np.ndarray, units: str, scale: float) -> LinearMap:
    """Centred, in the requested units, divided by c."""
    both = np.concatenate([s, s_next])
    weight = whitener(s_next - s).weight if units == "steps" else np.eye(s.shape[1])
    spreads = np.linalg.eigvalsh(np.atleast_2d(np.cov(both @ weight.T, rowvar=False)))
    if not spreads[0] > 1e-9 * spreads[-1]:
        raise InputError(
            "'s' or 's_next − s' does not vary in some direction. Drop that direction: use principal components, or "
            "the directions of a spectrum."
        )
    return LinearMap(weight / (scale * np.sqrt(spreads[0])), both.mean(0), np.zeros(s.shape[1]))


def isotropic_resample(weights: np.ndarray, rng: np.random.Generator, count: int | None = None) -> np.ndarray:
    """Row indices (count,), each drawn in proportion to its weight, for trainers without weights.

    Systematic resampling: one random offset, then equal steps through the cumulative weights. A row with expected
    count c is drawn ⌊c⌋ or ⌈c⌉ times. Copies are not new evidence: keep them in one group when rows are split.

    >>> isotropic_resample(np.array([1.0, 0.0, 2.0, 1.0]), np.random.default_rng(0)).tolist()
    [0, 2, 2, 3]
    """
    check_weights(weights, len(weights))
    if count is None:
        count = len(weights)
    check_count("count", count)
    if not weights.sum() > 0:
        raise InputError("'weights' must not all be zero.")
    cumulative = np.cumsum(weights) / weights.sum()
    places = (np.arange(count) + rng.uniform()) / count
    return np.minimum(np.searchsorted(cumulative, places, side="right"), np.flatnonzero(weights)[-1])


@dataclass(frozen=True)
class GaussianRatio:
    """log N(t; 0, I)/p(t) up to a constant, for rows t (b, d)."""

    directions: np.ndarray  # (d, k) of the waves
    theta: np.ndarray

    def __call__(self, t: np.ndarray) -> np.ndarray:
        batches = np.array_split(t, max(1, -(-len(t) // BATCH)))  # the features are much wider than t
        return np.concatenate([_features(batch, self.directions) @ self.theta for batch in batches])


def fit_gaussian_ratio(t: np.ndarray, rng: np.random.Generator) -> GaussianRatio:
    """Fit the ratio from rows t (b, d) of the data; λ is selected on held-out rows.

    >>> t = 2 * np.random.default_rng(0).standard_normal((4000, 1))
    >>> ratio = fit_gaussian_ratio(t, np.random.default_rng(1))
    >>> near, far = ratio(np.array([[0.0], [2.0]]))
    >>> bool(abs(near - far - 1.5) < 0.2)  # t²/2 − t²/8 at 2
    True
    """
    d = t.shape[1]
    count = min(len(t), MAX_RATIO_ROWS)
    others = rng.standard_normal((d, SLICES if d > 1 else 0))
    directions = np.concatenate([np.eye(d), others / np.linalg.norm(others, axis=0)], axis=1)
    rows = np.concatenate([rng.permutation(t)[:count], rng.standard_normal((count, d))])
    features = _features(rows, directions)
    signs = np.repeat([-1.0, 1.0], count)
    fit = rng.permutation(2 * count) < count
    losses = {}
    theta = np.zeros(features.shape[1])
    for penalty in PENALTIES:
        theta = _logistic_regression(features[fit], signs[fit], penalty, theta)
        losses[penalty] = _logistic_loss(features[~fit], signs[~fit], theta)
    best = min(PENALTIES, key=lambda penalty: losses[penalty])
    return GaussianRatio(directions, _logistic_regression(features, signs, best, theta))


def _features(t: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """A constant, terms of degree one and two for tails and correlations, and waves for shapes."""
    d = t.shape[1]
    radius = np.linalg.norm(t, axis=1, keepdims=True)
    t = t * np.minimum(1, (np.sqrt(d) + MAX_EXCESS_RADIUS) / np.maximum(radius, 1e-300))  # limits outliers' squares
    i, j = np.triu_indices(d) if d <= PRODUCTS_UP_TO else (np.arange(d), np.arange(d))
    angles = np.concatenate([frequency * (t @ directions) for frequency in WAVES], axis=1)
    return np.concatenate([np.ones((len(t), 1)), t, t[:, i] * t[:, j], np.cos(angles), np.sin(angles)], axis=1)


def _logistic_loss(features: np.ndarray, signs: np.ndarray, theta: np.ndarray) -> float:
    return float(np.logaddexp(0, -signs * (features @ theta)).mean())


def _logistic_regression(features: np.ndarray, signs: np.ndarray, penalty: float, theta: np.ndarray) -> np.ndarray:
    """Newton's method from an initial θ, with step halving until the objective decreases."""
    ridge = penalty * np.eye(features.shape[1])

    def objective(at: np.ndarray) -> float:
        return _logistic_loss(features, signs, at) + penalty * float(at @ at) / 2

    value = objective(theta)
    for _ in range(NEWTON_ROUNDS):
        wrong = expit(-signs * (features @ theta))
        gradient = penalty * theta - features.T @ (signs * wrong) / len(signs)
        hessian = (features * (wrong * (1 - wrong))[:, None]).T @ features / len(signs) + ridge
        step = np.linalg.solve(hessian, gradient)
        size = next((s for s in 0.5 ** np.arange(20) if objective(theta - s * step) < value), 0.0)
        theta = theta - size * step
        before = value
        value = objective(theta)
        if before - value < NEWTON_TOLERANCE:
            break
    return theta
