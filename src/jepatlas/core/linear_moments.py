"""Linear fits from streamed moments of pairs.

    n,   z̄,   S = Σ (z − z̄)(z − z̄)ᵀ        of joint rows z = (x, y), with blocks S_xx, S_xy, S_yy

determine every linear fit of y on x, and its score:

    least squares   W = S_yx S_xx⁺          ridge   W = S_yx (S_xx + λI)⁻¹          Procrustes   Q = UVᵀ, S_yx = UΣVᵀ

Rows may be streamed in any number; the moments have the size of a map. S squares the condition number of the rows:
directions of x whose variance (in units of their columns) is below 16 rounding errors of the largest are lost and are
treated as constant. `linear.least_squares`, which works on the rows, resolves finer ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.linalg

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.stats import explained_share

__all__ = [
    "PairMoments",
    "Products",
    "fit_between",
    "is_lost",
    "least_squares_of",
    "live_directions",
    "prepared",
    "procrustes_of",
    "ridge_of",
]

Products = Literal["float64", "float32"]

_BLOCK = 4096  # rows multiplied at once: fast matrix products that still fit the cache
_TINY = np.finfo(np.float64).tiny
_ROUNDINGS = 16  # rounding leaves 1 to 2 in constant directions, measured at all widths and numbers of rows


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
        """Moments of rows (b, d_in) and (b, d_out), one block at a time, so that arrays may be memory-mapped.

        float32 products take less than half the time; sums over blocks are float64 in any case. They are not the
        default, because they lose directions whose variance is below 2e-6 of the largest.
        """
        if len(x) != len(y):
            raise InputError(f"x and y must have the same number of rows, but x has {len(x)} and y has {len(y)}.")
        if not len(x):
            return cls.empty(x.shape[1], y.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            found = cls._of_blocks(x, y, weights, products)
        if not np.isfinite(found.scatter).all():  # sums keep NaN and infinity, so one check suffices
            check_finite("x", x)
            check_finite("y", y)
            raise InputError(f"x or y has values too large to be squared in {products}. Rescale it.")
        return found

    @classmethod
    def empty(cls, d_in: int, d_out: int) -> PairMoments:
        """The moments of no rows, neutral under `merge`."""
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
                f"All pairs of a map must have the same widths, but some map {self.d_in} → {self.d_out} and some "
                f"{other.d_in} → {other.d_out} dimensions."
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
        """Moments about zero instead of the mean, for fits without an offset."""
        scatter = self.scatter + self.count * np.outer(self.mean, self.mean)
        return replace(self, mean=np.zeros_like(self.mean), scatter=scatter)

    def spread(self) -> np.ndarray:
        """Standard deviation of each column of (x, y); 1 for constant columns."""
        spread = np.sqrt(np.maximum(np.diag(self.scatter), 0) / max(self.count, _TINY))
        return np.where(spread > 0, spread, 1.0)

    def residual(self, fitted: LinearMap) -> float:
        """Σ‖y − ŷ‖² over the rows of these moments."""
        weight = fitted.raw_weight
        both = np.hstack([-weight, np.eye(self.d_out)])  # y − ŷ, from (x, y)
        middle = both @ (self.mean - np.concatenate([fitted.x_mean, fitted.y_mean]))
        return max(float(np.einsum("ij,ij", both @ self.scatter, both) + self.count * middle @ middle), 0.0)

    def r2(self, fitted: LinearMap) -> float:
        """1 − Σ‖y − ŷ‖² / Σ‖y − ȳ‖², pooled over dimensions; NaN if y is constant."""
        return explained_share(self.residual(fitted), np.trace(self.yy))


def _near_mean(rows: np.ndarray, products: Products) -> np.ndarray:
    """A shift to subtract before squaring: near the mean, and exactly the value of a constant column.

    Products of rows far from the origin would lose their spread to rounding. The shift has the precision of the rows,
    so that subtracting it adds no rounding error.
    """
    first = rows[0].astype(np.float64)
    near = first + (rows[:: -(-len(rows) // 64)] - first).mean(0)
    return near.astype(products) if rows.dtype == products else near


def least_squares_of(moments: PairMoments) -> LinearMap:
    """W = S_yx S_xx⁺; the minimum-norm W if x is rank deficient."""
    values, vectors, units = live_directions(moments)
    live, dead = values > 0, values == 0
    inverse = (vectors[:, live] / values[live]) @ vectors[:, live].T
    weight = (moments.xy.T / units) @ inverse / units
    if dead.any():  # the minimum-norm solution maps constant directions to zero
        null = np.linalg.qr(vectors[:, dead] / units[:, None])[0]
        weight = weight - (weight @ null) @ null.T
    return LinearMap(weight, moments.x_mean, moments.y_mean)


def live_directions(moments: PairMoments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, eigenvectors and units of S_xx with columns divided by their spread.

    In these units the rank does not depend on the scales of the columns. Eigenvalues of lost directions are 0.
    """
    diagonal = np.maximum(np.diag(moments.xx), 0)
    units = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(moments.xx / units[:, None] / units)
    return np.where(values > _ROUNDINGS * moments.rounding * values[-1], values, 0.0), vectors, units


def ridge_of(moments: PairMoments, penalty: float) -> LinearMap:
    """W = S_yx (S_xx + λI)⁻¹; least squares if λ is below the rounding error of S_xx."""
    if is_lost(moments, penalty):
        return least_squares_of(moments)
    penalised = moments.xx + penalty * np.eye(moments.d_in)
    solution = scipy.linalg.solve(penalised, moments.xy, assume_a="pos")
    return LinearMap(solution.T, moments.x_mean, moments.y_mean)


def is_lost(moments: PairMoments, penalty: float) -> bool:
    """Whether a ridge penalty changes S_xx by less than its rounding error."""
    if not 0 <= penalty < np.inf:
        raise InputError(f"penalty must be finite and ≥ 0, but {penalty} was given.")
    return bool(penalty <= moments.d_in * moments.rounding * np.trace(moments.xx))


def procrustes_of(moments: PairMoments, *, scaled: bool = False) -> LinearMap:
    """The orthogonal (or, `scaled`, similarity) map: Q = UVᵀ where S_yx = UΣVᵀ.

    For a narrower target Q maximises the agreement tr(Q S_xy); the residual then has no closed-form minimum.
    """
    u, sigma, vt = np.linalg.svd(moments.xy.T, full_matrices=False)
    q = u @ vt
    # ‖XQᵀ‖² instead of ‖X‖², because Q into a narrower space drops a part of X; a constant x has scale 0
    scale = sigma.sum() / max(np.einsum("ij,ij", q @ moments.xx, q), np.finfo(np.float64).tiny) if scaled else 1.0
    return LinearMap(scale * q, moments.x_mean, moments.y_mean)


def fit_between(
    moments: PairMoments, fit: Callable[[PairMoments], LinearMap], *, offset: bool = True, standardise: bool = False
) -> LinearMap:
    """A fit with or without an offset, on columns as given or standardised."""
    inner = fit(prepared(moments, offset=offset, standardise=standardise))
    if not standardise:
        return inner
    spread = (moments if offset else moments.about_origin()).spread()
    return replace(inner, x_scale=spread[: moments.d_in], y_scale=spread[moments.d_in :])


def prepared(moments: PairMoments, *, offset: bool, standardise: bool) -> PairMoments:
    """Moments without an offset, or of standardised columns."""
    moments = moments if offset else moments.about_origin()
    spread = moments.spread() if standardise else np.ones(len(moments.mean))
    return replace(moments, scatter=moments.scatter / spread[:, None] / spread)
