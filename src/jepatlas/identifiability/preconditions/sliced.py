"""Distributions compared through the characteristic functions of random projections.

    d² = mean_a ∫ |φ_1(t a) − φ_2(t a)|² e^{−t²/2} dt

is zero iff the two distributions agree. Rows become features cos(t a·h), sin(t a·h) once; then a distance under any
weights of the rows is one matrix product, which makes bootstraps and exchanges cheap.
"""

from __future__ import annotations

import numpy as np

__all__ = ["GroupDistance", "SlicedFeatures"]

ROUNDING = 1e-12  # of a difference of two squares, beside either


class SlicedFeatures:
    """The features of `slices` random directions at `knots` frequencies in (0, limit]."""

    def __init__(
        self, dim: int, rng: np.random.Generator, slices: int = 32, knots: int = 8, limit: float = 3.0
    ) -> None:
        t = np.linspace(limit / knots, limit, knots)
        directions = rng.standard_normal((dim, slices))
        directions /= np.linalg.norm(directions, axis=0)
        self.frequencies = (directions[:, :, None] * t).reshape(dim, -1)
        # The square root of the quadrature weights: distances are then plain Euclidean norms of mean features.
        weight = np.exp(-(t**2) / 2) * (2 * limit / knots) / slices
        self.scale = np.sqrt(np.tile(weight, slices))
        self.gaussian = np.concatenate([self.scale * np.tile(np.exp(-(t**2) / 2), slices), np.zeros_like(self.scale)])

    def __call__(self, h: np.ndarray) -> np.ndarray:
        """(rows, features)"""
        angles = h @ self.frequencies
        return np.concatenate([self.scale * np.cos(angles), self.scale * np.sin(angles)], axis=1)


class GroupDistance:
    """‖E gap‖ of a gap per row, from the products of *different* groups: unbiased as a square, so it may be below zero.

    The plain norm of a mean is never zero, and its bootstrap does not even cover its own value. Rows are summed by
    group once; then weights that a group's rows share (a bootstrap's counts, an exchange's signs) cost one product.
    """

    def __init__(self, gap: np.ndarray, labels: np.ndarray) -> None:
        order = np.argsort(labels, kind="stable")
        self.first = order[np.searchsorted(labels[order], np.arange(labels.max() + 1))]
        starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
        self.sums = np.add.reduceat(gap[order], starts, axis=0)
        self.squares, self.counts = np.square(self.sums).sum(1), np.bincount(labels)
        self.effective_rows = _effective_rows(gap, self.sums, self.counts)

    def __call__(self, weights: np.ndarray) -> float:
        """Under row weights. Where all the weight is one group's (of five, a bootstrap draws that once in 625 times),
        there are no products of different groups, and what is left of them by rounding says nothing: 0."""
        w = weights[self.first]
        total = np.abs(w) @ self.counts
        pairs = total**2 - w**2 @ self.counts**2
        if pairs <= ROUNDING * total**2:
            return 0.0
        mean = (np.square(w @ self.sums).sum() - w**2 @ self.squares) / pairs
        return float(np.copysign(np.sqrt(abs(mean)), mean))


def _effective_rows(gap: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> int:
    """Independent rows that would give the mean gap the variance it has: all of them, or fewer where groups cohere."""
    mean = gap.mean(0)
    apart = np.square(gap).sum() - len(gap) * np.square(mean).sum()
    together = np.square(sums - counts[:, None] * mean).sum() * len(counts) / max(len(counts) - 1, 1)
    return int(np.clip(len(gap) * apart / max(together, 1e-300), 1, len(gap)))
