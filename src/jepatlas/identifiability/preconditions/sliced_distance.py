"""Sliced distances between distributions, from characteristic functions of random projections.

    d² = mean_a ∫ |φ_1(t a) − φ_2(t a)|² e^{−t²/2} dt        zero iff the two distributions are equal

Rows become features cos(t a·h), sin(t a·h) once; a distance under any row weights is then one matrix product, which
makes bootstraps and sign-flip nulls cheap.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jepatlas.core.linear import whitener
from jepatlas.core.seeding import numpy_generator

__all__ = ["GroupDistance", "SlicedFeatures", "distance_from_gaussian", "gaussian_null"]

ROUNDING = 1e-12  # relative size below which a difference of two squares is rounding error
NULL_DRAWS = 200


class SlicedFeatures:
    """Features for `slices` random directions at `knots` frequencies in (0, limit]."""

    def __init__(
        self, dim: int, rng: np.random.Generator, slices: int = 32, knots: int = 8, limit: float = 3.0
    ) -> None:
        t = np.linspace(limit / knots, limit, knots)
        directions = rng.standard_normal((dim, slices))
        directions /= np.linalg.norm(directions, axis=0)
        self.frequencies = (directions[:, :, None] * t).reshape(dim, -1)
        # With the square root of the quadrature weights, distances are Euclidean norms of mean features.
        weight = np.exp(-(t**2) / 2) * (2 * limit / knots) / slices
        self.scale = np.sqrt(np.tile(weight, slices))
        self.gaussian = np.concatenate([self.scale * np.tile(np.exp(-(t**2) / 2), slices), np.zeros_like(self.scale)])

    def __call__(self, h: np.ndarray) -> np.ndarray:
        """(rows, features)"""
        angles = h @ self.frequencies
        return np.concatenate([self.scale * np.cos(angles), self.scale * np.sin(angles)], axis=1)


class GroupDistance:
    """‖E gap‖ from per-row gaps, using products of *different* groups: unbiased as a square, so it may be negative.

    The plain norm of a mean is never zero, and its bootstrap interval does not even contain its own value. Rows are
    summed by group once; weights that are constant within groups (bootstrap counts, signs) then cost one product.
    """

    def __init__(self, gap: np.ndarray, labels: np.ndarray) -> None:
        order = np.argsort(labels, kind="stable")
        self.first = order[np.searchsorted(labels[order], np.arange(labels.max() + 1))]
        starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
        self.sums = np.add.reduceat(gap[order], starts, axis=0)
        self.squares = np.square(self.sums).sum(1)
        self.counts = np.bincount(labels)
        self.effective_rows = _effective_rows(gap, self.sums, self.counts)

    def __call__(self, weights: np.ndarray) -> float:
        """The signed distance under row weights.

        0 if all the weight is on one group (with five groups, one bootstrap draw in 625): there are no products of
        different groups, only rounding errors.
        """
        w = weights[self.first]
        total = np.abs(w) @ self.counts
        pairs = total**2 - w**2 @ self.counts**2
        if pairs <= ROUNDING * total**2:
            return 0.0
        return _signed_root((np.square(w @ self.sums).sum() - w**2 @ self.squares) / pairs)


def _signed_root(square: float) -> float:
    return float(np.copysign(np.sqrt(abs(square)), square))


def _effective_rows(gap: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> int:
    """Number of independent rows with the same variance of the mean gap: fewer than rows if groups are correlated."""
    mean = gap.mean(0)
    independent = np.square(gap).sum() - len(gap) * np.square(mean).sum()
    grouped = np.square(sums - counts[:, None] * mean).sum() * len(counts) / max(len(counts) - 1, 1)
    return int(np.clip(len(gap) * independent / max(grouped, 1e-300), 1, len(gap)))


def distance_from_gaussian(u: np.ndarray, labels: np.ndarray, seed: int) -> GroupDistance:
    """Distance of whitened rows from N(0, I), as a function of row weights; rows with one label form a group."""
    features = _features(u.shape[1], seed)
    return GroupDistance(features(u) - features.gaussian, labels)


@lru_cache(maxsize=32)
def gaussian_null(rows: int, dim: int, seed: int, draws: int = NULL_DRAWS) -> tuple[float, float]:
    """Mean and 99% quantile of the distance of Gaussian samples, whitened by their own covariance."""
    few = max(min(rows, max(250, 4 * dim)), dim + 2)  # the null scales as 1/√n, so fewer samples suffice
    features = _features(dim, seed)
    rng = numpy_generator(seed, "audit/gaussianity null")
    null = []
    for _ in range(draws):
        x = rng.standard_normal((few, dim))
        null.append(_ungrouped_distance(features(whitener(x).apply(x)) - features.gaussian))
    shrink = np.sqrt(few / rows)
    return float(np.mean(null) * shrink), float(np.quantile(null, 0.99) * shrink)


def _features(dim: int, seed: int) -> SlicedFeatures:
    return SlicedFeatures(dim, numpy_generator(seed, "audit/slices"))


def _ungrouped_distance(gap: np.ndarray) -> float:
    """`GroupDistance` if every row is its own group with weight one."""
    square = np.square(gap.sum(0)).sum() - np.square(gap).sum()
    return _signed_root(square / (len(gap) * (len(gap) - 1)))
