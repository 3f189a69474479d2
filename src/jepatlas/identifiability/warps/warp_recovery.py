"""Recovery up to a warp: fitted on one half of the rows, scored on the other; and the warp as a band to be drawn."""

from __future__ import annotations

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, least_squares, procrustes
from jepatlas.core.records import Estimate
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.checks import check_matrices
from jepatlas.identifiability.warps.monotone import fit_monotone
from jepatlas.identifiability.warps.sides import WarpSides, fit_sides
from jepatlas.identifiability.warps.warp import Curve, WarpFit, turned_back

__all__ = ["warp_band", "warp_recovery"]


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

    r2                        R² of z from h by least squares, as everywhere
    r2_unwarped_states        R² of z from h by one rotation and the warp of the states' coordinates undone
    r2_unwarped_latents       the same with the warp of the latents' coordinates undone
    r2_unwarped               that of the two (if the latents vary) which is better on the rows to fit on
    gain                      r2_unwarped − r2
    r2_inverse                R² of h from z by least squares
    r2_inverse_warped         R² of h from Q w(z)

    and, where theory predicts a warp (any function of arrays; its scale is free):

    r2_inverse_predicted      R² of h from a Q w(z) with the predicted w
    agreement                 Corr(w(z), predicted w(z))², over all coordinates

    `fits` are those of the rows to fit on, where they were made already; of one side only, if that is all to be asked.
    """
    check_matrices(groups, h=h, z=z)
    statistic = _Statistic(h, z, split, fits or fit_sides(h[split.fit], z[split.fit]), predicted)
    held = None if groups is None else groups[split.score]
    return bootstrap(statistic, len(split.score), rng, groups=held, replicates=replicates)


class _Statistic:
    """Everything that is fitted, once; then the numbers of the rows to score under any weights."""

    def __init__(self, h: np.ndarray, z: np.ndarray, split: Split, fits: WarpSides, predicted: Curve | None) -> None:
        self.better, self.z, self.curves = f"r2_unwarped_{fits.better}", z[split.score], None
        undone = {f"r2_unwarped_{side}": fits.decode(h[split.score], side) for side in fits.sides}
        (h_fit, self.h), z_fit = (fits.whitened(h)[rows] for rows in split), z[split.fit]
        misses = {
            "r2": self.z - least_squares(h_fit, z_fit).apply(self.h),
            **{name: self.z - found for name, found in undone.items()},
            "r2_inverse": self.h - least_squares(z_fit, h_fit).apply(self.z),
            "r2_inverse_warped": self.h - fits.states.encode(self.z),
        }
        if predicted is not None:
            expected = _evaluated(predicted, z)
            turn = procrustes(expected[split.fit], h_fit, scaled=True)
            misses["r2_inverse_predicted"] = self.h - turn.apply(expected[split.score])
            self.curves = fits.states.warp(self.z), expected[split.score]
        self.squares = {name: np.square(miss).sum(1) for name, miss in misses.items()}

    def __call__(self, weights: np.ndarray) -> dict[str, float]:
        totals = {"z": _spread(self.z, weights), "h": _spread(self.h, weights)}
        scores = {
            name: 1 - float(weights @ square) / totals["h" if "inverse" in name else "z"]
            for name, square in self.squares.items()
        }
        scores["r2_unwarped"] = scores[self.better]
        scores["gain"] = scores["r2_unwarped"] - scores["r2"]
        return scores | ({} if self.curves is None else {"agreement": _agreement(*self.curves, weights)})


def warp_band(
    fit: WarpFit,
    h: np.ndarray,
    z: np.ndarray,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    points: int = 41,
    replicates: int = 200,
) -> dict[float, Estimate]:
    """The warp with its interval at `points` values of z, for a figure; on other rows than the fit's, whose Q it takes.

    The values are quantiles from 0.5% to 99.5%: beyond, there are too few samples for a band.
    """
    check_matrices(groups, h=h, z=z)
    h, z = h.astype(np.float64), z.astype(np.float64)
    at = np.quantile(z, np.linspace(0.005, 0.995, points))
    targets = turned_back(fit.turn, fit.warp, h, z)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        curve = fit_monotone(z, targets, np.broadcast_to(weights[:, None], z.shape))
        return {str(x): float(y) for x, y in zip(at, curve(at), strict=True)}

    found = bootstrap(statistic, len(z), rng, groups=groups, replicates=replicates)
    return {float(x): found[str(x)] for x in at}


def _evaluated(predicted: Curve, z: np.ndarray) -> np.ndarray:
    values = np.asarray(predicted(z.astype(np.float64)), dtype=np.float64)
    if values.shape != z.shape or not np.isfinite(values).all():
        raise InputError("The predicted warp must give one finite number for each value of z.")
    return values


def _spread(rows: np.ndarray, weights: np.ndarray) -> float:
    """Σ w ‖x − x̄‖²; NaN where there is nothing to explain."""
    mean = weights @ rows / weights.sum()
    spread = float(weights @ np.square(rows - mean).sum(1))
    return spread if spread > 0 else float("nan")


def _agreement(one: np.ndarray, other: np.ndarray, weights: np.ndarray) -> float:
    each = np.repeat(weights, one.shape[1])
    covariance = np.cov(one.ravel(), other.ravel(), aweights=each)
    return float(covariance[0, 1] ** 2 / (covariance[0, 0] * covariance[1, 1]))
