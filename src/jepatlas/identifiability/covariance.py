"""Weighted covariances for bootstrap and sign-flip nulls, and the linear response Σ_yx Σ_xx⁻¹.

A bootstrap resample omits about a third of the rows, and Σ s a bᵀ over signs s = ±1 equals Σ (1 + s) a bᵀ − Σ a bᵀ,
which needs half of them. Rows of weight zero are skipped.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.arrays import group_numbers

__all__ = [
    "SignedProduct",
    "UnitProducts",
    "WeightedCovariance",
    "linear_response",
    "matrix_power",
    "range_root",
    "resampling_units",
    "response",
    "weighted_product",
]

MOST_UNITS = 200
FEWEST_UNITS = 50
MOST_SUMS = 8_000_000  # numbers in the sums of all units
WIDE = 16  # number of columns above which skipping rows of weight zero is faster than multiplying them
RANGE_FLOOR = 1e-12  # eigenvalues below this share of the largest are treated as zero


def resampling_units(rows: int, groups: np.ndarray | None, columns: int) -> np.ndarray:
    """The unit (b,) that each row is resampled with: some groups, or without groups some consecutive rows.

    Intervals need no more than a few hundred units, and sums over units make a resample as quick as if there were no
    more rows than that. Wide rows have fewer units, so that the sums fit into memory.

    >>> np.bincount(resampling_units(1000, None, 4)).tolist() == [5] * 200
    True
    """
    labels = group_numbers(groups, rows)
    count = int(labels.max()) + 1
    most = min(MOST_UNITS, max(FEWEST_UNITS, MOST_SUMS // columns**2))
    return labels * min(count, most) // count


class WeightedCovariance:
    """Cov_w = Σ w (x − x̄_w)(x − x̄_w)ᵀ / Σ w. Rows are centred once; each call then costs one symmetric product.

    With `units`, rows of one unit always have the same weight, and each call costs a sum over units.

    >>> x = np.random.default_rng(0).standard_normal((50, 3))
    >>> np.allclose(WeightedCovariance(x)(np.ones(50)), np.cov(x.T, bias=True))
    True
    """

    def __init__(self, rows: np.ndarray, units: np.ndarray | None = None) -> None:
        shifted = rows - rows[0]  # a constant column becomes exactly zero instead of rounding error
        self.rows = shifted - shifted.mean(0)
        self.products = None if units is None else UnitProducts(self.rows, self.rows, units)
        if units is not None:
            self.rows = UnitProducts(self.rows, np.ones((len(rows), 1)), units).sums[:, :, 0]

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        share = weights / weights.sum()
        if self.products is None:
            mean = share @ self.rows
            return weighted_product(self.rows, self.rows, share) - np.outer(mean, mean)
        mean = share[self.products.first] @ self.rows
        return self.products(share) - np.outer(mean, mean)


class UnitProducts:
    """Σ w a bᵀ over rows, for weights that are equal within units.

    >>> a, b = np.array([[1.0], [2.0], [4.0]]), np.array([[3.0], [5.0], [1.0]])
    >>> float(UnitProducts(a, b, np.array([0, 1, 1]))(np.array([2.0, 1.0, 1.0]))[0, 0])
    20.0
    """

    def __init__(self, a: np.ndarray, b: np.ndarray, units: np.ndarray) -> None:
        order = np.argsort(units, kind="stable")
        starts = np.flatnonzero(np.diff(units[order], prepend=-1))
        self.first = order[starts]  # a row of each unit, to read its weight from
        self.sums = np.stack([a[rows].T @ b[rows] for rows in np.split(order, starts[1:])])

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        units, *shape = self.sums.shape
        return (weights[self.first] @ self.sums.reshape(units, -1)).reshape(shape)


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
