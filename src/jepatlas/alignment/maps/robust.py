"""Which pairs to trust, where some are mismatched: iteratively reweighted fits, each pair judged by the others.

A pair either belongs together or its y was dealt from those of other pairs, which gives it the weight (posterior)

    w = π N(y; Wx, Σ_e) / [π N(y; Wx, Σ_e) + (1 − π) N(y; ȳ, Σ_y)]

and W, Σ_e, ȳ, Σ_y, π follow from the weighted pairs, until w settles. Residuals are those of a map that was fitted on
other folds: with few pairs for its width a map bends towards whatever it is fitted on, mismatched pairs as well.
More than half of the pairs must belong together. Where the map does not bring most of all pairs nearer to each other,
nothing can be said about single ones, and all are trusted alike.

Chosen by measurement, against trimmed least squares with concentration steps, and Tukey's and Cauchy's weights on
residual norms: those reject up to half of clean pairs, or keep most of the mismatched ones where noise is large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
from scipy.special import expit

from jepatlas.alignment.splits import group_labels
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.pair_moments import PairMoments

__all__ = ["Fit", "trust"]

Fit = Callable[[PairMoments, PairMoments], LinearMap]
"""A map from pairs to fit on, and pairs to choose its penalty by, if there is one to be chosen."""

_SETTLED = 0.01  # largest change of a weight


def trust(
    x: np.ndarray,
    y: np.ndarray,
    fit: Fit,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    folds: int = 5,
    steps: int = 50,
) -> np.ndarray:
    """A weight from 0 to 1 for each of the pairs (b, d_in), (b, d_out); pairs of one group do not judge each other."""
    if folds < 3:
        raise InputError(
            f"Pairs are judged by maps from other folds, which takes at least 3 folds, but {folds} are given."
        )
    labels = group_labels(groups, len(x))
    count = int(labels.max(initial=-1)) + 1
    if count < 2 * folds:
        return np.ones(len(x))
    pairs = _Folded(x, y, fit, (rng.permutation(count) % folds)[labels])
    weights = _settle(pairs, _start(pairs), steps)
    return weights if _predicts(pairs, weights, count) else np.ones(len(x))


def _predicts(pairs: _Folded, weights: np.ndarray, count: int) -> bool:
    """A sign test, at two standard deviations: is y nearer to Wx than to ȳ for more than half of all pairs?

    Of all, not of the trusted ones: those were chosen because they are near. `count` is that of groups, because pairs
    of one group may all be near by one accident.
    """
    nearer = _squares(pairs.residuals(weights)) < _squares(pairs.y - weights @ pairs.y / weights.sum())
    return bool(nearer.mean() > 0.5 + 1 / np.sqrt(count))


class _Folded:
    """Pairs whose residuals come from maps fitted on other folds."""

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
    """The half of each fold that is missed least by a map in which far-off pairs count little."""
    misses = _squares(pairs.residuals(_central(np.hstack([pairs.x, pairs.y]))))
    weights = np.zeros(len(misses))
    for rows in pairs.rows:
        weights[rows] = misses[rows] <= np.median(misses[rows])
    return weights


def _central(rows: np.ndarray) -> np.ndarray:
    """1/‖z‖² about the median, in units of median deviations, at most 1: pairs far off in x or y pull at no map."""
    off = np.abs(rows - np.median(rows, axis=0))
    unit = np.median(off, axis=0)
    squares = _squares(off / np.where(unit > 0, unit, 1.0))
    return np.minimum(1.0, np.median(squares) / np.maximum(squares, np.finfo(np.float64).tiny))


def _settle(pairs: _Folded, weights: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        before, weights = weights, _posterior(pairs, weights)
        if np.abs(weights - before).max() < _SETTLED:
            break
    return weights


def _posterior(pairs: _Folded, weights: np.ndarray) -> np.ndarray:
    left, about = pairs.residuals(weights), pairs.y - weights @ pairs.y / weights.sum()
    floor = 1e-9 * weights @ _squares(about) / weights.sum() / about.shape[1]  # pairs without noise have no density
    matched = _log_density(left, weights, weights.sum() - pairs.x.shape[1] - 1, floor)
    dealt = _log_density(about, weights, weights.sum() - 1, floor)
    share = np.clip(weights.mean(), 0.5, 1 - 1 / len(weights))
    odds = np.log(share / (1 - share)) + matched - dealt
    # the better half is trusted, whatever the odds; and no weight is zero, so that no fold can be without any
    return expit(np.maximum(odds - min(np.median(odds), 0), -50))


def _log_density(rows: np.ndarray, weights: np.ndarray, freedom: float, floor: float) -> np.ndarray:
    """Of N(0, Σ), up to a constant. Σ is that of the weighted rows, drawn to its diagonal where rows are few."""
    covariance = (rows * weights[:, None]).T @ rows / weights.sum()
    kept = max(freedom, 1) / (max(freedom, 1) + len(covariance))
    covariance = kept * covariance + (1 - kept) * np.diag(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, max(floor, np.finfo(np.float64).tiny))
    return -(np.square(rows @ vectors) @ (1 / values) + np.log(values).sum()) / 2


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.square(rows).sum(1)
