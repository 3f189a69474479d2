"""Held-out recovery up to a shared warp: fitted on one half of the rows, scored on the other."""

from __future__ import annotations

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, least_squares, procrustes
from jepatlas.core.records import Estimate
from jepatlas.core.stats import bootstrap, explained_share
from jepatlas.identifiability.validation import check_matrices
from jepatlas.identifiability.warps.warp import Curve, WarpSides, fit_sides

__all__ = ["warp_recovery"]


def warp_recovery(
    h: np.ndarray,
    z: np.ndarray,
    split: Split,
    rng: np.random.Generator,
    *,
    fits: WarpSides | None = None,
    predicted: Curve | None = None,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """Held-out estimates with group-bootstrap intervals:

    r2                        R² of z from h by least squares
    r2_unwarped_states        R² of z from h by one rotation, with the warp of the states' coordinates undone
    r2_unwarped_latents       the same with the warp of the latents' coordinates undone (if the latents vary)
    r2_unwarped               the one of the two that is better on the fit rows
    gain                      r2_unwarped − r2
    r2_inverse                R² of h from z by least squares
    r2_inverse_warped         R² of h from Q w(z)

    and, if theory predicts a warp (any function of arrays; its scale is free):

    r2_inverse_predicted      R² of h from a Q w(z) with the predicted w
    agreement                 Corr(w(z), predicted w(z))², over all coordinates

    `fits` are warps already fitted on the fit rows.
    """
    check_matrices(groups, h=h, z=z)
    if fits is None:
        fits = fit_sides(h[split.fit], z[split.fit])
    statistic = _Statistic(h, z, split, fits, predicted)
    score_groups = None if groups is None else groups[split.score]
    return bootstrap(statistic, len(split.score), rng, groups=score_groups, replicates=replicates)


class _Statistic:
    """Fits everything once; calls return the scores under row weights."""

    def __init__(self, h: np.ndarray, z: np.ndarray, split: Split, fits: WarpSides, predicted: Curve | None) -> None:
        self.better = f"r2_unwarped_{fits.better}"
        self.z = z[split.score]
        self.curves = None
        residuals = {f"r2_unwarped_{side}": self.z - fits.decode(h[split.score], side) for side in fits.sides}
        whitened = fits.whitened(h)
        h_fit = whitened[split.fit]
        z_fit = z[split.fit]
        self.h = whitened[split.score]
        residuals["r2"] = self.z - least_squares(h_fit, z_fit).apply(self.h)
        residuals["r2_inverse"] = self.h - least_squares(z_fit, h_fit).apply(self.z)
        residuals["r2_inverse_warped"] = self.h - fits.states.encode(self.z)
        if predicted is not None:
            expected = _evaluate(predicted, z)
            turn = procrustes(expected[split.fit], h_fit, scaled=True)
            residuals["r2_inverse_predicted"] = self.h - turn.apply(expected[split.score])
            self.curves = fits.states.warp(self.z), expected[split.score]
        self.squares = {name: np.square(residual).sum(1) for name, residual in residuals.items()}

    def __call__(self, weights: np.ndarray) -> dict[str, float]:
        z_total = _total_variation(self.z, weights)
        h_total = _total_variation(self.h, weights)
        scores = {}
        for name, square in self.squares.items():
            total = h_total if "inverse" in name else z_total
            scores[name] = explained_share(weights @ square, total)
        scores["r2_unwarped"] = scores[self.better]
        scores["gain"] = scores["r2_unwarped"] - scores["r2"]
        if self.curves is not None:
            scores["agreement"] = _agreement(*self.curves, weights)
        return scores


def _evaluate(predicted: Curve, z: np.ndarray) -> np.ndarray:
    values = np.asarray(predicted(z.astype(np.float64)), dtype=np.float64)
    if values.shape != z.shape or not np.isfinite(values).all():
        raise InputError("predicted must return one finite number for each value of z.")
    return values


def _total_variation(rows: np.ndarray, weights: np.ndarray) -> float:
    """Σ w ‖x − x̄‖²; NaN if zero."""
    mean = weights @ rows / weights.sum()
    total = float(weights @ np.square(rows - mean).sum(1))
    return total if total > 0 else float("nan")


def _agreement(one: np.ndarray, other: np.ndarray, weights: np.ndarray) -> float:
    repeated = np.repeat(weights, one.shape[1])
    covariance = np.cov(one.ravel(), other.ravel(), aweights=repeated)
    return float(covariance[0, 1] ** 2 / (covariance[0, 0] * covariance[1, 1]))
