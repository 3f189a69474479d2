"""Four nested families of regressions x → y. The first that explains y shows what kind of map it is.

    linear      y = A x
    warped      y = A w(x),         w increasing, one curve for each coordinate of x
    additive    y = Σ_i f_i(x_i),   each f_i any curve into the space of y
    any         y = f(x),           on random features

A warp moves points along the straight axes of x. An additive map also bends the axes, as the shear (z₀ + s(z₁), z₁)
does. Each family except warps is fitted to the residual of the previous one, so that all stay cheap in many dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.special import ndtr

from jepatlas.core.arrays import group_numbers
from jepatlas.core.linear import least_squares, r2, whitener
from jepatlas.core.linear_map import LinearMap
from jepatlas.identifiability.resampling import Halves
from jepatlas.identifiability.spectral.spectral_encoder import Features, random_frequencies
from jepatlas.identifiability.warps.monotone import fit_monotone

__all__ = ["FAMILIES", "decode", "fit_families", "standard_deviations"]

FAMILIES: tuple[str, ...] = ("linear", "warped", "additive", "any")

KNOTS = 11
ROWS_PER_TERM = 20
VALIDATION_STRIDE = 4  # every fourth group is used for validation
MIN_ROWS = 200  # with fewer rows to fit curves on, all four families are the linear map
ENOUGH = 0.9995  # R² from which richer families are not tried
FREQUENCIES = 128
LENGTH_SCALES = (0.05, 0.25, 0.5, 1.0, 2.0)
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
QUADRATIC_UP_TO = 16
PREDICTED = 0.9  # squared canonical correlation from which a direction counts as linear
MAX_REST = 8  # directions that are not linear, up to which functions of them alone are tried


def fit_families(
    x: np.ndarray, y: np.ndarray, rows: np.ndarray, rng: np.random.Generator, groups: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Predictions of y on *all* rows by each family, fitted on `rows` only.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((2000, 2))
    >>> sheared = np.c_[x[:, 0] + x[:, 1] ** 2, x[:, 1]]
    >>> found = fit_families(x, sheared, np.arange(1000), rng)
    >>> [round(r2(sheared[1000:], found[family][1000:]), 1) for family in FAMILIES]
    [0.5, 0.5, 1.0, 1.0]
    """
    linear = least_squares(x[rows], y[rows])
    found: dict[str, np.ndarray] = dict.fromkeys(FAMILIES, linear.apply(x))
    if len(rows) < MIN_ROWS:
        return found
    labels = group_numbers(None if groups is None else groups[rows], len(rows))
    training = _Training(rows, labels % VALIDATION_STRIDE == 0)
    if not r2(y[rows], found["linear"][rows]) < ENOUGH:
        return found
    found["warped"] = _warped(x, y, rows, linear)
    found["additive"] = found["linear"] + _additive(x, y - found["linear"], training)
    found["any"] = found["additive"]
    if r2(y[rows], found["additive"][rows]) < ENOUGH:
        white = whitener(x[rows]).apply(x)
        spaces = [white]
        rest = _unpredicted(white, y, rows)
        if 0 < rest.shape[1] <= MAX_REST < white.shape[1]:
            spaces.append(rest)
        found["any"] = found["additive"] + _any(spaces, y - found["additive"], training, rng)
    return found


def decode(halves: Halves, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Predictions of z from h on all rows, by each family, with z standardised during the fit."""
    units = standard_deviations(halves)
    found = fit_families(halves.h, halves.z / units, halves.split.fit, rng, halves.groups)
    return {family: z * units for family, z in found.items()}


def standard_deviations(halves: Halves) -> np.ndarray:
    """Standard deviations of the states on the fit rows; 1 for constant coordinates."""
    spread = halves.z[halves.split.fit].std(0)
    return np.where(spread > 0, spread, 1.0)


class _Training(NamedTuple):
    """Rows to fit on, and a mask of those that are used to select a penalty; groups are not split."""

    rows: np.ndarray
    validation: np.ndarray


def _warped(x: np.ndarray, y: np.ndarray, rows: np.ndarray, linear: LinearMap) -> np.ndarray:
    """A w(x): y is mapped back through A, then each coordinate is a monotone regression on its own x."""
    back = linear.invert().apply(y)
    curved = x.astype(np.float64)
    for i in range(x.shape[1]):
        if np.ptp(x[rows, i]) > 0:
            curved[:, i] = fit_monotone(x[rows, i], back[rows, i])(x[:, i])
    return linear.apply(curved)


def _additive(x: np.ndarray, y: np.ndarray, training: _Training) -> np.ndarray:
    """Piecewise linear curves, with as many knots as the rows support."""
    rows = training.rows
    knots = min(KNOTS, len(rows) // (ROWS_PER_TERM * x.shape[1]))
    spread = x[rows].std(0)
    unit = (x - x[rows].mean(0)) / np.where(spread > 0, spread, 1.0)
    places = np.quantile(unit[rows], ndtr(np.linspace(-2.5, 2.5, knots)), axis=0)
    hinges = [np.maximum(unit - place, 0) for place in places]
    return _ridge([np.concatenate([unit, *hinges], axis=1)], y, training)


def _unpredicted(white: np.ndarray, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The canonical directions of x that y does not determine linearly.

    If two of 64 coordinates are tangled, these are two directions, in which a curve can be found that cannot be found
    among functions of all 64.
    """
    target = whitener(y[rows]).apply(y[rows])
    directions, correlations, _ = np.linalg.svd(white[rows].T @ target / len(rows))
    along = np.zeros(len(directions))
    along[: len(correlations)] = correlations
    return white @ directions[:, along**2 < PREDICTED]


def _any(spaces: Sequence[np.ndarray], y: np.ndarray, training: _Training, rng: np.random.Generator) -> np.ndarray:
    """Random features of the space and at the length scale that validate best."""
    candidates = []
    for u in spaces:
        d = u.shape[1]
        identity = LinearMap(np.eye(d), np.zeros(d), np.zeros(d))
        frequencies = random_frequencies(FREQUENCIES, d, rng)
        quadratic = 0.1 if d <= QUADRATIC_UP_TO else 0.0
        for scale in LENGTH_SCALES:
            features = Features(identity, frequencies / (scale * np.sqrt(d)), quadratic)
            candidates.append(features(u))
    return _ridge(candidates, y, training)


def _ridge(candidates: Sequence[np.ndarray], y: np.ndarray, training: _Training) -> np.ndarray:
    """Ridge regression with the features and penalty that do best on the validation rows."""
    rows = training.rows
    fit = rows[~training.validation]
    validation = rows[training.validation]
    best_mean = -np.inf
    best = None
    for features in candidates:
        solve = _Ridge(features[fit], y[fit])
        for penalty in RIDGES:
            residual = y[validation] - solve(penalty).apply(features[validation])
            gains = np.square(y[validation]).sum(1) - np.square(residual).sum(1)
            mean = -np.inf if np.isnan(gains).any() else gains.mean()
            if best is None or mean > best_mean:
                best_mean = mean
                best = (gains, features, penalty)
    assert best is not None
    gains, features, penalty = best
    # The best of many candidates gains something by chance alone; the noise of its fit would only do harm.
    if not gains.mean() > 2 * gains.std() / np.sqrt(len(gains)):
        return np.zeros_like(y)
    return _Ridge(features[rows], y[rows])(penalty).apply(features)


class _Ridge:
    """Ridge regressions of y on x for several penalties, relative to the mean variance, from one decomposition."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.x_mean = x.mean(0)
        self.y_mean = y.mean(0)
        centred = x - self.x_mean
        self.values, self.vectors = scipy.linalg.eigh(centred.T @ centred / len(x))
        self.moment = self.vectors.T @ (centred.T @ (y - self.y_mean)) / len(x)

    def __call__(self, penalty: float) -> LinearMap:
        damped = np.maximum(self.values, 0) + penalty * max(self.values.mean(), np.finfo(float).tiny)
        weight = self.vectors @ (self.moment / damped[:, None])
        return LinearMap(weight.T, self.x_mean, self.y_mean)
