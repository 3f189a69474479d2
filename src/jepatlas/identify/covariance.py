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
        self.columns = np.ascontiguousarray((shifted - shifted.mean(0)).T)

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        share = weights / weights.sum()
        mean = self.columns @ share
        scaled = self.columns * np.sqrt(share)
        return scaled @ scaled.T - np.outer(mean, mean)
