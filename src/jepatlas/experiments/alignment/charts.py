"""Charts that are linear by construction, h = A u + e, for experiments where the map between two must be known."""

from __future__ import annotations

import numpy as np

from jepatlas.worlds.random_matrices import semi_orthogonal

__all__ = ["noisy", "random_chart"]


def random_chart(dim: int, condition: float, rng: np.random.Generator) -> np.ndarray:
    """A = U diag(s) Vᵀ with s evenly spread (in logarithms) from κ^−½ to κ^½, so that |det A| = 1.

    >>> float(np.linalg.cond(random_chart(5, 7.0, np.random.default_rng(0))).round(9))
    7.0
    """
    u, v = semi_orthogonal(dim, dim, rng), semi_orthogonal(dim, dim, rng)
    return (u * condition ** np.linspace(-0.5, 0.5, dim)) @ v.T


def noisy(h: np.ndarray, noise: float, chart: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """h = A u with white noise of `noise` times the root mean square of A u, for u of covariance I."""
    return h + noise * np.sqrt(np.square(chart).sum(1).mean()) * rng.standard_normal(h.shape)
