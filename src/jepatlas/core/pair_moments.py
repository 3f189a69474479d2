"""Sums over pairs that every linear fit, and its score on other rows, is a function of.

    n,   z̄,   S = Σ (z − z̄)(z − z̄)ᵀ        of joint rows z = (x, y), with blocks S_xx, S_xy, S_yy

Rows may be streamed in any number; what is kept has the size of a map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.stats import explained_share

__all__ = ["PairMoments", "Products"]

Products = Literal["float64", "float32"]

_BLOCK = 4096  # rows multiplied at once: enough for the full speed of a matrix product, few enough to stay in cache
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class PairMoments:
    """Count, mean and scatter of joint rows (x, y), in float64; moments of parts merge to those of the whole.

    >>> x, y = np.random.default_rng(0).normal(size=(2, 100, 3))
    >>> both = PairMoments.of(x[:30], y[:30]).merge(PairMoments.of(x[30:], y[30:]))
    >>> np.allclose(both.xy, 99 * np.cov(x.T, y.T)[:3, 3:])
    True
    """

    count: float  # of pairs, or the sum of their weights
    mean: np.ndarray  # (d_in + d_out,)
    scatter: np.ndarray  # (d_in + d_out, d_in + d_out)
    d_in: int
    rounding: float  # relative, of the products that were summed

    @classmethod
    def of(
        cls, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None, *, products: Products = "float64"
    ) -> PairMoments:
        """Moments of rows (b, d_in) and (b, d_out), a block at a time: the arrays may be mapped from disk.

        float32 products take less than half the time, and their sums over blocks are float64 all the same. But
        they lose directions whose variance is below 2e-6 of the largest, which float32 rows do have: hence no default.
        """
        if len(x) != len(y):
            raise InputError(f"A map needs as many rows on both sides, but x has {len(x)} and y has {len(y)}.")
        if not len(x):
            return cls.empty(x.shape[1], y.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            found = cls._of_blocks(x, y, weights, products)
        if not np.isfinite(found.scatter).all():  # asked once, of the sums: neither NaN nor infinity vanish in them
            check_finite("x", x)
            check_finite("y", y)
            raise InputError(f"x or y has values too large to be squared in {products}. Divide it by its largest one.")
        return found

    @classmethod
    def empty(cls, d_in: int, d_out: int) -> PairMoments:
        """Of no rows: they change nothing that they are merged with."""
        width = d_in + d_out
        return cls(0, np.zeros(width), np.zeros((width, width)), d_in, 0.0)

    @classmethod
    def _of_blocks(cls, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None, products: Products) -> PairMoments:
        shifts = [_near_mean(side, products) for side in (x, y)]
        width = x.shape[1] + y.shape[1]
        rows, squares = np.empty((min(len(x), _BLOCK), width), products), np.empty((width, width), products)
        count, total, scatter = 0.0, np.zeros(width), np.zeros((width, width))
        for start in range(0, len(x), _BLOCK):
            part = slice(start, start + _BLOCK)
            block = rows[: len(x[part])]
            np.subtract(x[part], shifts[0], out=block[:, : x.shape[1]], casting="same_kind")
            np.subtract(y[part], shifts[1], out=block[:, x.shape[1] :], casting="same_kind")
            roots = np.ones(len(block), products)
            if weights is not None:
                roots = np.sqrt(weights[part]).astype(products)
                block *= roots[:, None]
            count += float(np.square(roots, dtype=np.float64).sum())
            total += roots @ block
            scatter += np.matmul(block.T, block, out=squares)
        mean = total / max(count, _TINY)
        scatter -= count * np.outer(mean, mean)
        return cls(count, np.concatenate(shifts) + mean, scatter, x.shape[1], float(np.finfo(products).eps))

    def merge(self, other: PairMoments) -> PairMoments:
        count = self.count + other.count
        if self.mean.shape != other.mean.shape or self.d_in != other.d_in:
            raise InputError(
                f"All pairs of a map must have the same widths, but there are some of {self.d_in} → {self.d_out} "
                f"and some of {other.d_in} → {other.d_out} dimensions."
            )
        if count == 0:
            return self
        shift = other.mean - self.mean
        scatter = self.scatter + other.scatter + np.outer(shift, shift) * (self.count * other.count / count)
        mean = self.mean + shift * (other.count / count)
        return PairMoments(count, mean, scatter, self.d_in, max(self.rounding, other.rounding))

    @property
    def d_out(self) -> int:
        return len(self.mean) - self.d_in

    @property
    def x_mean(self) -> np.ndarray:
        return self.mean[: self.d_in]

    @property
    def y_mean(self) -> np.ndarray:
        return self.mean[self.d_in :]

    @property
    def xx(self) -> np.ndarray:
        return self.scatter[: self.d_in, : self.d_in]

    @property
    def xy(self) -> np.ndarray:
        return self.scatter[: self.d_in, self.d_in :]

    @property
    def yy(self) -> np.ndarray:
        return self.scatter[self.d_in :, self.d_in :]

    def about_origin(self) -> PairMoments:
        """The same about zero and not about the mean, for fits without an offset."""
        scatter = self.scatter + self.count * np.outer(self.mean, self.mean)
        return replace(self, mean=np.zeros_like(self.mean), scatter=scatter)

    def spread(self) -> np.ndarray:
        """Root mean square of each column of (x, y) about the mean; 1 where it does not vary."""
        spread = np.sqrt(np.maximum(np.diag(self.scatter), 0) / max(self.count, _TINY))
        return np.where(spread > 0, spread, 1.0)

    def residual(self, fitted: LinearMap) -> float:
        """Σ‖y − ŷ‖² over the rows summed up, none of which is needed any more."""
        weight = fitted.raw_weight
        both = np.hstack([-weight, np.eye(self.d_out)])  # y − ŷ, from (x, y)
        middle = both @ (self.mean - np.concatenate([fitted.x_mean, fitted.y_mean]))
        return max(float(np.einsum("ij,ij", both @ self.scatter, both) + self.count * middle @ middle), 0.0)

    def r2(self, fitted: LinearMap) -> float:
        """1 − Σ‖y − ŷ‖² / Σ‖y − ȳ‖², pooled over dimensions; NaN where y does not vary."""
        return explained_share(self.residual(fitted), np.trace(self.yy))


def _near_mean(rows: np.ndarray, products: Products) -> np.ndarray:
    """What to subtract before squaring: near the mean, and exactly the value of a constant column.

    Products of rows far off the origin would round away their spread; those of rows this near do not. It has no digits
    that the rows lack, so that subtracting it from those adds no rounding.
    """
    first = rows[0].astype(np.float64)
    near = first + (rows[:: -(-len(rows) // 64)] - first).mean(0)
    return near.astype(products) if rows.dtype == products else near
