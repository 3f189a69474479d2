"""Do rows look like N(0, I)? Their sliced distance from it, beside that of Gaussian samples of the same size."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jepatlas.core.linear import whitener
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.preconditions.sliced import GroupDistance, SlicedFeatures

__all__ = ["distance_from_gaussian", "gaussian_null"]

DRAWS = 200


def distance_from_gaussian(u: np.ndarray, labels: np.ndarray, seed: int) -> GroupDistance:
    """Of whitened rows, as a function of row weights; rows of one label belong together."""
    features = _features(u.shape[1], seed)
    return GroupDistance(features(u) - features.gaussian, labels)


@lru_cache(maxsize=32)
def gaussian_null(rows: int, dim: int, seed: int) -> tuple[float, float]:
    """Mean and 99% quantile of the distance of Gaussian samples, whitened by their own covariance."""
    few = max(min(rows, max(250, 4 * dim)), dim + 2)  # the null shrinks as 1/√n, so that of fewer samples will do
    features, rng = _features(dim, seed), numpy_generator(seed, "audit/gaussianity null")
    draws = (rng.standard_normal((few, dim)) for _ in range(DRAWS))
    null = [_distance(features(whitener(x).apply(x)) - features.gaussian) for x in draws]
    shrink = np.sqrt(few / rows)
    return float(np.mean(null) * shrink), float(np.quantile(null, 0.99) * shrink)


def _features(dim: int, seed: int) -> SlicedFeatures:
    return SlicedFeatures(dim, numpy_generator(seed, "audit/slices"))


def _distance(gap: np.ndarray) -> float:
    """`GroupDistance` where every row is a group of its own and has weight one."""
    square = np.square(gap.sum(0)).sum() - np.square(gap).sum()
    mean = square / (len(gap) * (len(gap) - 1))
    return float(np.copysign(np.sqrt(abs(mean)), mean))
