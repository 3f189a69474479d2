"""Latents for the tests of similarity metrics, and the transformations that leave some metrics unchanged."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

__all__ = ["SHAPES", "gaussian", "invertible", "related", "rotation"]

SHAPES = st.tuples(st.integers(6, 40), st.integers(1, 12), st.integers(1, 12), st.integers(0, 10_000))
"""Number of rows, widths of both sides, and a seed; there may be fewer rows than columns."""


def gaussian(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, dim))


def related(rows: int, wide_a: int, wide_b: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two noisy linear images of the same states, far from the origin."""
    z = gaussian(rows, 3, seed)
    a = z @ gaussian(3, wide_a, seed + 1) + 0.5 * gaussian(rows, wide_a, seed + 2) + 5
    return a, z @ gaussian(3, wide_b, seed + 3) + 0.5 * gaussian(rows, wide_b, seed + 4) - 2


def rotation(dim: int, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(gaussian(dim, dim, seed))[0]


def invertible(dim: int, seed: int = 0) -> np.ndarray:
    """A random matrix with a condition number of at most 10."""
    return rotation(dim, seed) * np.linspace(1, 10, dim) @ rotation(dim, seed + 1)
