"""The covariance of weighted rows, for the many weights that a bootstrap or a null by signs tries.

A bootstrap leaves out a third of the rows, and Σ s a bᵀ over signs s is Σ (1 + s) a bᵀ − Σ a bᵀ, of half the rows:
those without weight are not multiplied.
"""

from __future__ import annotations

import numpy as np

__all__ = ["SignedProduct", "WeightedCovariance", "weighted_product"]

WIDE = 16  # columns from which on it is quicker to look for the rows that have weight


class WeightedCovariance:
    """Cov_w = Σ w (x − x̄_w)(x − x̄_w)ᵀ / Σ w.  The rows are centred once; then each w costs one symmetric product.

    >>> x = np.random.default_rng(0).standard_normal((50, 3))
    >>> np.allclose(WeightedCovariance(x)(np.ones(50)), np.cov(x.T, bias=True))
    True
    """

    def __init__(self, rows: np.ndarray) -> None:
        shifted = rows - rows[0]  # so that a constant column is exactly zero, not rounding
        self.rows = shifted - shifted.mean(0)

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        share = weights / weights.sum()
        mean = share @ self.rows
        return weighted_product(self.rows, self.rows, share) - np.outer(mean, mean)


def weighted_product(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ w a bᵀ over rows, for weights that are not negative; half the work where b is a."""
    if a.shape[1] < WIDE:
        return (a * weights[:, None]).T @ b
    kept = np.flatnonzero(weights)
    root = np.sqrt(weights[kept])[:, None]
    left = a[kept] * root
    return left.T @ (left if b is a else b[kept] * root)


class SignedProduct:
    """Σ s a bᵀ over rows, for many signs s = ±1.

    >>> a, b = np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]])
    >>> float(SignedProduct(a, b)(np.array([-1.0, 1.0]))[0, 0].round(9))
    7.0
    """

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self.a, self.b, self.whole = a, b, a.T @ b

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        return weighted_product(self.a, self.b, 1 + signs) - self.whole
