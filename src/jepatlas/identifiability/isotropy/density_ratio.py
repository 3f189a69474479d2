"""How many times denser a standard Gaussian is than the data, at any point: by telling samples of both apart.

    log N(t; 0, I)/p(t) = θᵀφ(t),     θ = argmin  mean log(1 + e^{−y θᵀφ}) + λ‖θ‖²/2,   y = 1 Gaussian, −1 data

(Sugiyama, Suzuki & Kanamori 2012). Matching moments instead fails where the data do not reach: it piles all weight on
the outermost rows. A classifier is already sure of itself there and asks for no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

__all__ = ["GaussianRatio", "fit_gaussian_ratio"]

PENALTIES = (1e-2, 1e-3, 1e-4, 1e-5)
WAVES = (1.0, 2.0, 3.0)
SLICES = 16  # directions besides the axes
PRODUCTS_UP_TO = 16  # dimensions; beyond, squares alone
REACH = 4.0  # standard deviations beyond the Gaussian's typical radius √d, from which on the ratio is held constant
MOST_ROWS = 10_000  # of the data, and as many of the Gaussian: more change the weights little
PIECE = 8192
ROUNDS, ENOUGH = 50, 1e-8


@dataclass(frozen=True)
class GaussianRatio:
    """log N(t; 0, I)/p(t) up to a constant, for rows t (b, d)."""

    directions: np.ndarray  # (d, k) of the waves
    theta: np.ndarray

    def __call__(self, t: np.ndarray) -> np.ndarray:
        pieces = np.array_split(t, max(1, -(-len(t) // PIECE)))  # the features are far wider than t
        return np.concatenate([_features(piece, self.directions) @ self.theta for piece in pieces])


def fit_gaussian_ratio(t: np.ndarray, rng: np.random.Generator) -> GaussianRatio:
    """From rows t (b, d) of the data; λ is the one that tells other rows apart best.

    >>> t = 2 * np.random.default_rng(0).standard_normal((4000, 1))
    >>> ratio = fit_gaussian_ratio(t, np.random.default_rng(1))
    >>> near, far = ratio(np.array([[0.0], [2.0]]))
    >>> bool(abs(near - far - 1.5) < 0.2)  # t²/2 − t²/8 at 2
    True
    """
    count, d = min(len(t), MOST_ROWS), t.shape[1]
    others = rng.standard_normal((d, SLICES if d > 1 else 0))
    directions = np.concatenate([np.eye(d), others / np.linalg.norm(others, axis=0)], axis=1)
    rows = np.concatenate([rng.permutation(t)[:count], rng.standard_normal((count, d))])
    features, signs = _features(rows, directions), np.repeat([-1.0, 1.0], count)
    fit = rng.permutation(2 * count) < count
    tried, theta = {}, np.zeros(features.shape[1])
    for penalty in PENALTIES:
        theta = _logistic(features[fit], signs[fit], penalty, theta)
        tried[penalty] = _loss(features[~fit], signs[~fit], theta)
    best = min(PENALTIES, key=lambda penalty: tried[penalty])
    return GaussianRatio(directions, _logistic(features, signs, best, theta))


def _features(t: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """A constant, terms of degree one and two for tails and correlations, waves for shapes."""
    d = t.shape[1]
    radius = np.linalg.norm(t, axis=1, keepdims=True)
    t = t * np.minimum(1, (np.sqrt(d) + REACH) / np.maximum(radius, 1e-300))  # a square of a far row would decide alone
    i, j = np.triu_indices(d) if d <= PRODUCTS_UP_TO else (np.arange(d), np.arange(d))
    angles = np.concatenate([frequency * (t @ directions) for frequency in WAVES], axis=1)
    return np.concatenate([np.ones((len(t), 1)), t, t[:, i] * t[:, j], np.cos(angles), np.sin(angles)], axis=1)


def _loss(features: np.ndarray, signs: np.ndarray, theta: np.ndarray) -> float:
    return float(np.logaddexp(0, -signs * (features @ theta)).mean())


def _logistic(features: np.ndarray, signs: np.ndarray, penalty: float, theta: np.ndarray) -> np.ndarray:
    """Newton's method from a first θ; a step is halved until it is one down."""
    ridge = penalty * np.eye(features.shape[1])

    def total(at: np.ndarray) -> float:
        return _loss(features, signs, at) + penalty * float(at @ at) / 2

    value = total(theta)
    for _ in range(ROUNDS):
        wrong = expit(-signs * (features @ theta))
        slope = penalty * theta - features.T @ (signs * wrong) / len(signs)
        curvature = (features * (wrong * (1 - wrong))[:, None]).T @ features / len(signs) + ridge
        step = np.linalg.solve(curvature, slope)
        size = next((s for s in 0.5 ** np.arange(20) if total(theta - s * step) < value), 0.0)
        theta, before = theta - size * step, value
        value = total(theta)
        if before - value < ENOUGH:
            break
    return theta
