"""The covariance of weighted rows, for the many weights that a bootstrap tries."""

from __future__ import annotations

import numpy as np

__all__ = ["WeightedCovariance"]


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
        drawn = np.flatnonzero(share)  # about two thirds of the rows
        mean = share @ self.rows
        scaled = self.rows[drawn] * np.sqrt(share[drawn])[:, None]
        return scaled.T @ scaled - np.outer(mean, mean)
