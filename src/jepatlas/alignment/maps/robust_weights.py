"""Robust weights of pairs, some of which are mismatched: iteratively reweighted fits with cross-fitted residuals.

A pair is either correct, or its y belongs to another pair. Its weight is the posterior probability of being correct,

    w = π N(y; Wx, Σ_e) / [π N(y; Wx, Σ_e) + (1 − π) N(y; ȳ, Σ_y)]

W, Σ_e, ȳ, Σ_y and π are estimated from the weighted pairs until w converges. Residuals come from maps fitted on other
folds: with few pairs, a map overfits its own pairs, mismatched ones included. More than half of the pairs must be
correct. If the map does not predict most pairs better than the mean, all weights are one.

Measured against trimmed least squares with concentration steps, and Tukey's and Cauchy's weights of residual norms:
those reject up to half of clean pairs, or keep most of the mismatched ones if noise is large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
from scipy.special import expit

from jepatlas.alignment.splits import group_labels
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.linear_moments import PairMoments

__all__ = ["Fit", "central_weights", "robust_weights"]

Fit = Callable[[PairMoments, PairMoments], LinearMap]
"""Fits a map on pairs, and chooses its penalty, if it has one, on other pairs."""

_CONVERGED = 0.01  # largest change of a weight


def robust_weights(
    x: np.ndarray,
    y: np.ndarray,
    fit: Fit,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    folds: int = 5,
    steps: int = 50,
) -> np.ndarray:
    """Weights (b,) from 0 to 1 of pairs (b, d_in), (b, d_out), each based on pairs of other groups."""
    if folds < 3:
        raise InputError(f"'folds' must be at least 3, but {folds} was given.")
    labels = group_labels(groups, len(x))
    count = int(labels.max(initial=-1)) + 1
    if count < 2 * folds:
        return np.ones(len(x))
    pairs = _Folded(x, y, fit, (rng.permutation(count) % folds)[labels])
    weights = _iterate(pairs, _start(pairs), steps)
    return weights if _predicts(pairs, weights, count) else np.ones(len(x))


def _predicts(pairs: _Folded, weights: np.ndarray, count: int) -> bool:
    """Sign test at two standard deviations: is y nearer to Wx than to ȳ for more than half of all pairs?

    All pairs are counted, because trusted ones were selected for being near. `count` is the number of groups, because
    pairs of one group are not independent.
    """
    nearer = _squares(pairs.residuals(weights)) < _squares(pairs.y - weights @ pairs.y / weights.sum())
    return bool(nearer.mean() > 0.5 + 1 / np.sqrt(count))


class _Folded:
    """Pairs with cross-fitted residuals."""

    def __init__(self, x: np.ndarray, y: np.ndarray, fit: Fit, fold: np.ndarray) -> None:
        self.x, self.y, self.fit, self.fold = x, y, fit, fold
        self.rows = [np.flatnonzero(fold == k) for k in np.unique(fold)]

    def residuals(self, weights: np.ndarray) -> np.ndarray:
        parts = [PairMoments.of(self.x[rows], self.y[rows], weights[rows]) for rows in self.rows]
        left = np.empty(self.y.shape)
        for k, rows in enumerate(self.rows):
            held, *others = [*parts[k + 1 :], *parts[:k]]
            fitted = self.fit(reduce(PairMoments.merge, others), held)
            left[rows] = self.y[rows] - fitted.apply(self.x[rows])
        return left


def _start(pairs: _Folded) -> np.ndarray:
    """The half of each fold with the smallest residuals of a map in which outlying pairs have little weight."""
    misses = _squares(pairs.residuals(central_weights(np.hstack([pairs.x, pairs.y]))))
    weights = np.zeros(len(misses))
    for rows in pairs.rows:
        weights[rows] = misses[rows] <= np.median(misses[rows])
    return weights


def central_weights(rows: np.ndarray) -> np.ndarray:
    """1/‖z‖² about the median, in units of median deviations, at most 1."""
    off = np.abs(rows - np.median(rows, axis=0))
    unit = np.median(off, axis=0)
    squares = _squares(off / np.where(unit > 0, unit, 1.0))
    return np.minimum(1.0, np.median(squares) / np.maximum(squares, np.finfo(np.float64).tiny))


def _iterate(pairs: _Folded, weights: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        before, weights = weights, _posterior(pairs, weights)
        if np.abs(weights - before).max() < _CONVERGED:
            break
    return weights


def _posterior(pairs: _Folded, weights: np.ndarray) -> np.ndarray:
    left, about = pairs.residuals(weights), pairs.y - weights @ pairs.y / weights.sum()
    floor = 1e-9 * weights @ _squares(about) / weights.sum() / about.shape[1]  # density is infinite without noise
    matched = _log_density(left, weights, weights.sum() - pairs.x.shape[1] - 1, floor)
    mismatched = _log_density(about, weights, weights.sum() - 1, floor)
    share = np.clip(weights.mean(), 0.5, 1 - 1 / len(weights))
    odds = np.log(share / (1 - share)) + matched - mismatched
    # at least half of the weights are ½ or more; none is zero, so that no fold is empty
    return expit(np.maximum(odds - min(np.median(odds), 0), -50))


def _log_density(rows: np.ndarray, weights: np.ndarray, freedom: float, floor: float) -> np.ndarray:
    """Log density of N(0, Σ) up to a constant; Σ of the weighted rows is shrunk to its diagonal if rows are few."""
    covariance = (rows * weights[:, None]).T @ rows / weights.sum()
    kept = max(freedom, 1) / (max(freedom, 1) + len(covariance))
    covariance = kept * covariance + (1 - kept) * np.diag(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, max(floor, np.finfo(np.float64).tiny))
    return -(np.square(rows @ vectors) @ (1 / values) + np.log(values).sum()) / 2


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.square(rows).sum(1)
