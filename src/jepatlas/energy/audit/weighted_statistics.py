"""Weighted AUC, ranks, Spearman correlation and quantiles, for bootstrap intervals over states.

Pairs of states that share a state are dependent. A bootstrap therefore resamples states, and a pair (x, y) gets the
weight w_x·w_y. Values are sorted once; each call takes new weights. Unit weights give the unweighted statistics.
"""

from __future__ import annotations

import numpy as np

__all__ = ["WeightedAuc", "WeightedQuantiles", "WeightedRanks", "weighted_spearman"]

_HUGE = 1e300  # replaces infinity in interpolation


class WeightedAuc:
    """P(score of a positive > score of a negative) + ½ P(equal); NaN if a class is empty.

    >>> WeightedAuc(np.array([1.0, 2.0, 2.0]), np.array([False, False, True]))(np.ones(3))
    0.75
    """

    def __init__(self, scores: np.ndarray, positive: np.ndarray) -> None:
        self.values, self.level = np.unique(scores, return_inverse=True)
        self.positive = positive

    def __call__(self, weights: np.ndarray) -> float:
        positives, negatives = self.counts(weights)
        total = positives.sum() * negatives.sum()
        below = np.cumsum(negatives) - negatives / 2  # ties count half
        return float(positives @ below / total) if total > 0 else float("nan")

    def counts(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights of positives and of negatives at each distinct score, ascending."""
        positive = np.where(self.positive, weights, 0.0)
        size = len(self.values)
        return np.bincount(self.level, positive, size), np.bincount(self.level, weights - positive, size)


class WeightedRanks:
    """Weighted midranks: the weight below a value plus half of the weight at it."""

    def __init__(self, values: np.ndarray) -> None:
        self.level = np.unique(values, return_inverse=True)[1]

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        at = np.bincount(self.level, weights)
        return (np.cumsum(at) - at / 2)[self.level]


def weighted_spearman(x: WeightedRanks, y: WeightedRanks, weights: np.ndarray) -> float:
    """Weighted Spearman correlation; 0 if one variable is constant."""
    ranks = np.stack([x(weights), y(weights)])
    centred = ranks - np.average(ranks, axis=1, weights=weights)[:, None]
    moments = (centred * weights) @ centred.T
    spread = np.sqrt(moments[0, 0] * moments[1, 1])
    return float(np.clip(moments[0, 1] / spread, -1, 1)) if spread > 1e-12 * weights.sum() else 0.0


class WeightedQuantiles:
    """Quantiles by Hazen's definition: each value sits in the middle of its weight, so the median is the usual one."""

    def __init__(self, values: np.ndarray) -> None:
        self.order = np.argsort(values)
        self.values = np.minimum(values[self.order], _HUGE)

    def __call__(self, weights: np.ndarray, levels: list[float]) -> list[float]:
        ordered = weights[self.order]
        kept = ordered > 0
        if not kept.any():
            return [float("nan")] * len(levels)
        middle = (np.cumsum(ordered) - ordered / 2)[kept] / ordered.sum()
        quantiles = np.interp(levels, middle, self.values[kept])
        return [float("inf") if value > _HUGE / 1e6 else float(value) for value in quantiles]
