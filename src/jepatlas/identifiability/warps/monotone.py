"""Monotone regression y = w(x) by a non-decreasing cubic spline (I-splines and non-negative least squares).

w(x) = w_0 + Σ_l θ_l I_l(x),   θ_l ≥ 0,   I_l = Σ_{j≥l} B_j        linear beyond the outer knots
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # submodules are imported on first use

from jepatlas.core.errors import InputError

__all__ = ["Monotone", "fit_monotone"]

ORDER = 3
BLOCK = 1 << 16


@dataclass(frozen=True)
class Monotone:
    """A non-decreasing piecewise linear curve through points (x, y), extrapolated linearly."""

    x: np.ndarray  # (m,): increasing
    y: np.ndarray  # (m,): non-decreasing

    def __call__(self, x: np.ndarray) -> np.ndarray:
        slopes = np.diff(self.y)[[0, -1]] / np.diff(self.x)[[0, -1]]
        beyond = np.minimum(x - self.x[0], 0) * slopes[0] + np.maximum(x - self.x[-1], 0) * slopes[1]
        return np.interp(x, self.x, self.y) + beyond


def fit_monotone(
    x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None, *, pieces: int = 16, points: int = 513
) -> Monotone:
    """Least-squares non-decreasing curve for samples y at x, of any common shape, with knots at quantiles of x.

    >>> x = np.linspace(-1, 1, 2001)
    >>> float(np.abs(fit_monotone(x, x**3)(x) - x**3).max()) < 1e-3
    True
    """
    x = x.ravel()
    y = y.ravel()
    weights = np.ones(len(x)) if weights is None else weights.ravel()
    basis = _Basis(x, pieces)
    moments = np.zeros((basis.size + 1, basis.size + 1))
    for start in range(0, len(x), BLOCK):
        rows = slice(start, start + BLOCK)
        joint = np.c_[basis(x[rows]), y[rows]]
        moments += (joint * weights[rows, None]).T @ joint
    moments /= weights.sum()
    mean = moments[0].copy()  # the first column is the constant
    centred = (moments - np.outer(mean, mean))[1:, 1:]
    theta = _non_negative_least_squares(centred[:-1, :-1], centred[:-1, -1])
    at = basis.grid(points)
    rise = (basis(at)[:, 1:] - mean[1:-1]) @ theta
    return Monotone(at, np.maximum.accumulate(mean[-1] + rise))  # removes decreases due to rounding


class _Basis:
    """Columns: the constant and the I-splines."""

    def __init__(self, x: np.ndarray, pieces: int) -> None:
        levels = scipy.special.ndtr(np.linspace(-3, 3, pieces - 1))  # equidistant knots where x is Gaussian
        knots = np.unique(np.quantile(x, np.r_[0, levels, 1]))
        if len(knots) < 2:
            raise InputError("x must have at least two distinct values to fit a curve, but is constant.")
        self.knots = knots
        self.size = len(knots) + ORDER - 1
        padded = np.r_[[knots[0]] * ORDER, knots, [knots[-1]] * ORDER]
        coefficients = np.tri(self.size)  # I_l sums the B-splines from l on; I_0 is the constant
        self._spline = scipy.interpolate.BSpline(padded, coefficients, ORDER)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self._spline(x)

    def grid(self, points: int) -> np.ndarray:
        """About equally many points between any two knots, so that the grid is fine where samples are dense."""
        places = np.linspace(0, len(self.knots) - 1, points)
        return np.unique(np.r_[self.knots, np.interp(places, np.arange(len(self.knots)), self.knots)])


def _non_negative_least_squares(gram: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """argmin_{θ≥0} θᵀGθ − 2θᵀm."""
    ridge = max(1e-10 * np.trace(gram) / len(gram), np.finfo(float).tiny) * np.eye(len(gram))
    root = scipy.linalg.cholesky(gram + ridge)
    return scipy.optimize.nnls(root, scipy.linalg.solve_triangular(root, moment, trans=1))[0]
