"""Four families of maps x → y, each richer than the one before: the first that explains y tells what kind of map it is.

    linear      y = A x
    warped      y = A w(x),         w rising, one curve for each coordinate of x
    additive    y = Σ_i f_i(x_i),   each f_i any curve into the space of y
    any         y = f(x),           on random features

A warp moves points along the straight axes of x. An additive map also bends axes, as the shear (z₀ + s(z₁), z₁) does.
Each family but the warps is fitted to what the one before leaves, so that all stay cheap in many dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.special import ndtr

from jepatlas.core.linear import least_squares, r2, whitener
from jepatlas.core.linear_map import LinearMap
from jepatlas.identifiability.spectral.features import Features, random_frequencies
from jepatlas.identifiability.warps.monotone import fit_monotone

__all__ = ["FAMILIES", "fit_families"]

FAMILIES: tuple[str, ...] = ("linear", "warped", "additive", "any")

KNOTS = 11
ROWS_PER_TERM = 20
ASIDE = 4  # every so manieth group
FEWEST = 200  # rows to fit curves on; from fewer, all four are the linear map
ENOUGH = 0.9995  # R² from which there is nothing left for a richer family to explain
FREQUENCIES, SCALES, RIDGES = 128, (0.05, 0.25, 0.5, 1.0, 2.0), (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
QUADRATIC_UP_TO = 16


def fit_families(
    x: np.ndarray, y: np.ndarray, rows: np.ndarray, rng: np.random.Generator, groups: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """For each family, its prediction of y on *all* rows; it was fitted on `rows` alone.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((2000, 2))
    >>> sheared = np.c_[x[:, 0] + x[:, 1] ** 2, x[:, 1]]
    >>> found = fit_families(x, sheared, np.arange(1000), rng)
    >>> [round(r2(sheared[1000:], found[family][1000:]), 1) for family in FAMILIES]
    [0.5, 0.5, 1.0, 1.0]
    """
    linear = least_squares(x[rows], y[rows])
    found: dict[str, np.ndarray] = dict.fromkeys(FAMILIES, linear.apply(x))
    if len(rows) < FEWEST:
        return found
    labels = np.arange(len(rows)) if groups is None else np.unique(groups[rows], return_inverse=True)[1]
    part = _Part(rows, labels % ASIDE == 0)
    if not r2(y[rows], found["linear"][rows]) < ENOUGH:
        return found
    found["warped"] = _warped(x, y, rows, linear)
    found["any"] = found["additive"] = found["linear"] + _additive(x, y - found["linear"], part)
    if r2(y[rows], found["additive"][rows]) < ENOUGH:
        found["any"] = found["additive"] + _any(whitener(x[rows]).apply(x), y - found["additive"], part, rng)
    return found


class _Part(NamedTuple):
    """Rows to fit on, and those of them that are set aside to choose a penalty by; groups are not torn apart."""

    rows: np.ndarray
    aside: np.ndarray


def _warped(x: np.ndarray, y: np.ndarray, rows: np.ndarray, linear: LinearMap) -> np.ndarray:
    """y is taken back through the linear map; then each coordinate is one rising curve of its own x."""
    back, curved = linear.invert().apply(y), x.astype(np.float64)
    for i in range(x.shape[1]):
        if np.ptp(x[rows, i]) > 0:
            curved[:, i] = fit_monotone(x[rows, i], back[rows, i])(x[:, i])
    return linear.apply(curved)


def _additive(x: np.ndarray, y: np.ndarray, part: _Part) -> np.ndarray:
    """Piecewise linear curves, with as many knots as the rows can support."""
    rows = part.rows
    knots = min(KNOTS, len(rows) // (ROWS_PER_TERM * x.shape[1]))
    spread = x[rows].std(0)
    unit = (x - x[rows].mean(0)) / np.where(spread > 0, spread, 1.0)
    places = np.quantile(unit[rows], ndtr(np.linspace(-2.5, 2.5, knots)), axis=0)
    hinges = [np.maximum(unit - place, 0) for place in places]
    return _ridge([np.concatenate([unit, *hinges], axis=1)], y, part)


def _any(u: np.ndarray, y: np.ndarray, part: _Part, rng: np.random.Generator) -> np.ndarray:
    d = u.shape[1]
    same, frequencies = LinearMap(np.eye(d), np.zeros(d), np.zeros(d)), random_frequencies(FREQUENCIES, d, rng)
    quadratic = 0.1 if d <= QUADRATIC_UP_TO else 0.0
    return _ridge([Features(same, frequencies / (scale * np.sqrt(d)), quadratic)(u) for scale in SCALES], y, part)


def _ridge(terms: Sequence[np.ndarray], y: np.ndarray, part: _Part) -> np.ndarray:
    """Ridge regression on those of the terms, and with the penalty, that do best on the rows set aside."""
    rows, fit, judge, tried = part.rows, part.rows[~part.aside], part.rows[part.aside], []
    for number, features in enumerate(terms):
        solve = _Ridge(features[fit], y[fit])
        for penalty in RIDGES:
            left = y[judge] - solve(penalty).apply(features[judge])
            tried.append((np.square(y[judge]).sum(1) - np.square(left).sum(1), number, penalty))
    gains, number, penalty = max(tried, key=lambda one: -np.inf if np.isnan(one[0]).any() else one[0].mean())
    # The best of many is above nothing by luck alone, and the noise of its fit would only harm.
    if not gains.mean() > 2 * gains.std() / np.sqrt(len(gains)):
        return np.zeros_like(y)
    return _Ridge(terms[number][rows], y[rows])(penalty).apply(terms[number])


class _Ridge:
    """Ridge regressions of y on x for several penalties, relative to the mean variance, from one decomposition."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x_mean, self.y_mean = x.mean(0), y.mean(0)
        centred = x - self.x_mean
        self.values, self.vectors = scipy.linalg.eigh(centred.T @ centred / len(x))
        self.moment = self.vectors.T @ (centred.T @ (y - self.y_mean)) / len(x)

    def __call__(self, penalty: float) -> LinearMap:
        damped = np.maximum(self.values, 0) + penalty * max(self.values.mean(), np.finfo(float).tiny)
        weight = self.vectors @ (self.moment / damped[:, None])
        return LinearMap(weight.T, self.x_mean, self.y_mean)
