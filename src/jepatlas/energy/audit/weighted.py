"""Statistics of weighted numbers, sorted once and weighed often: AUC, rank correlation, quantiles.

Pairs of states that share a state are not independent: intervals draw *states*, and a pair weighs w_x·w_y. With weights
of one each statistic is the plain one.
"""

from __future__ import annotations

import numpy as np

__all__ = ["WeightedAuc", "WeightedQuantiles", "WeightedRanks", "weighted_spearman"]

_HUGE = 1e300  # stands for infinity where numbers are interpolated


class WeightedAuc:
    """P(score of a positive > of a negative) + ½ P(equal); NaN where one of them is missing.

    >>> WeightedAuc(np.array([1.0, 2.0, 2.0]), np.array([False, False, True]))(np.ones(3))
    0.75
    """

    def __init__(self, scores: np.ndarray, positive: np.ndarray) -> None:
        self.values, self.level = np.unique(scores, return_inverse=True)
        self.positive = positive

    def __call__(self, weights: np.ndarray) -> float:
        hits, misses = self.counts(weights)
        total = hits.sum() * misses.sum()
        below = np.cumsum(misses) - misses / 2  # of its own level, half
        return float(hits @ below / total) if total > 0 else float("nan")

    def counts(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weight of positives and of negatives at each distinct score, ascending."""
        positive, size = np.where(self.positive, weights, 0.0), len(self.values)
        return np.bincount(self.level, positive, size), np.bincount(self.level, weights - positive, size)


class WeightedRanks:
    """Ranks under weights: the weight below, and half of that at the same level."""

    def __init__(self, values: np.ndarray) -> None:
        self.level = np.unique(values, return_inverse=True)[1]

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        at = np.bincount(self.level, weights)
        return (np.cumsum(at) - at / 2)[self.level]


def weighted_spearman(x: WeightedRanks, y: WeightedRanks, weights: np.ndarray) -> float:
    """Correlation of ranks; 0 where one does not vary, for it has no order."""
    ranks = np.stack([x(weights), y(weights)])
    centred = ranks - np.average(ranks, axis=1, weights=weights)[:, None]
    moments = (centred * weights) @ centred.T
    spread = np.sqrt(moments[0, 0] * moments[1, 1])
    return float(np.clip(moments[0, 1] / spread, -1, 1)) if spread > 1e-12 * weights.sum() else 0.0


class WeightedQuantiles:
    """Quantiles with each number in the middle of its weight (Hazen's), so that the median is the usual one."""

    def __init__(self, values: np.ndarray) -> None:
        self.order = np.argsort(values)
        self.values = np.minimum(values[self.order], _HUGE)

    def __call__(self, weights: np.ndarray, levels: list[float]) -> list[float]:
        ordered = weights[self.order]
        kept = ordered > 0
        if not kept.any():
            return [float("nan")] * len(levels)
        middle = (np.cumsum(ordered) - ordered / 2)[kept] / ordered.sum()
        found = np.interp(levels, middle, self.values[kept])
        return [float("inf") if value > _HUGE / 1e6 else float(value) for value in found]
