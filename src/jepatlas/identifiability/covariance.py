"""Weighted covariances for bootstrap and sign-flip nulls, and the linear response Σ_yx Σ_xx⁻¹.

A bootstrap resample omits about a third of the rows, and Σ s a bᵀ over signs s = ±1 equals Σ (1 + s) a bᵀ − Σ a bᵀ,
which needs half of them. Rows of weight zero are skipped.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "SignedProduct",
    "WeightedCovariance",
    "linear_response",
    "matrix_power",
    "range_root",
    "response",
    "weighted_product",
]

WIDE = 16  # number of columns above which skipping rows of weight zero is faster than multiplying them
RANGE_FLOOR = 1e-12  # eigenvalues below this share of the largest are treated as zero


class WeightedCovariance:
    """Cov_w = Σ w (x − x̄_w)(x − x̄_w)ᵀ / Σ w. Rows are centred once; each call then costs one symmetric product.

    >>> x = np.random.default_rng(0).standard_normal((50, 3))
    >>> np.allclose(WeightedCovariance(x)(np.ones(50)), np.cov(x.T, bias=True))
    True
    """

    def __init__(self, rows: np.ndarray) -> None:
        shifted = rows - rows[0]  # a constant column becomes exactly zero instead of rounding error
        self.rows = shifted - shifted.mean(0)

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        share = weights / weights.sum()
        mean = share @ self.rows
        return weighted_product(self.rows, self.rows, share) - np.outer(mean, mean)


def weighted_product(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ w a bᵀ over rows, for non-negative weights; half the work where b is a."""
    if a.shape[1] < WIDE:
        return (a * weights[:, None]).T @ b
    kept = np.flatnonzero(weights)
    root = np.sqrt(weights[kept])[:, None]
    left = a[kept] * root
    right = left if b is a else b[kept] * root
    return left.T @ right


class SignedProduct:
    """Σ s a bᵀ over rows, for many vectors of signs s = ±1.

    >>> a, b = np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]])
    >>> float(SignedProduct(a, b)(np.array([-1.0, 1.0]))[0, 0].round(9))
    7.0
    """

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self.a = a
        self.b = b
        self.whole = a.T @ b

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        return weighted_product(self.a, self.b, 1 + signs) - self.whole


def linear_response(x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The least-squares map x → y on (weighted) rows: raw, Σ_yx Σ_xx⁻¹, and whitened, Σ_yy^{−½} Σ_yx Σ_xx^{−½}."""
    n = x.shape[1]
    if weights is None:
        weights = np.ones(len(x))
    joint = WeightedCovariance(np.concatenate([x, y], axis=1))(weights)
    raw = response(joint, n)
    whitened = matrix_power(joint[n:, n:], -0.5) @ raw @ matrix_power(joint[:n, :n], 0.5)
    return raw, whitened


def response(joint: np.ndarray, n: int) -> np.ndarray:
    """Σ_yx Σ_xx⁻¹ from the joint covariance of (x, y), where x is the first n coordinates."""
    return joint[n:, :n] @ matrix_power(joint[:n, :n], -1.0)


def matrix_power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    """Power of a symmetric matrix on its range; the null space maps to zero."""
    values, vectors = _range(matrix)
    return (vectors * values**exponent) @ vectors.T


def range_root(matrix: np.ndarray) -> np.ndarray:
    """R with RRᵀ = matrix, one column for each direction with non-zero variance."""
    values, vectors = _range(matrix)
    return vectors * np.sqrt(values)


def _range(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(matrix)
    kept = values > RANGE_FLOOR * max(values[-1], np.finfo(float).tiny)
    return values[kept], vectors[:, kept]
