"""Recovery up to a rotation and one shared monotone warp: what a JEPA can promise in a world that is not Gaussian.

    h ≈ Q w(z) + const,    QᵀQ = I,    w rising, the same scalar curve for every coordinate of z

Independent coordinates with the same law have one first eigenfunction w, and the alignment loss finds it up to a
rotation. Q and w are fitted in turns, Procrustes and monotone regression, on one half of the samples; the other half
is scored. The scale of h is w's. Whiten h first if its covariance is far from the identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jepatlas.base.errors import InputError
from jepatlas.base.linear import Split, least_squares, procrustes
from jepatlas.base.records import Estimate, LinearMap
from jepatlas.base.stats import bootstrap
from jepatlas.identify.checks import check_matrices
from jepatlas.identify.monotone import Monotone, fit_monotone

__all__ = ["WarpFit", "fit_warp", "warp_band", "warp_recovery"]

Curve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class WarpFit:
    """h ≈ turn(w(z)), and back: z ≈ unwarp(turn⁻¹(h))."""

    turn: LinearMap  # orthogonal: w(z) (b, n) → h (b, d)
    warp: Monotone  # w, in units of h; to be drawn
    unwarp: Monotone  # regression of z on w, which is w's inverse where h has no noise

    def encode(self, z: np.ndarray) -> np.ndarray:
        return self.turn.apply(self.warp(z))

    def decode(self, h: np.ndarray) -> np.ndarray:
        return self.unwarp(self.turn.invert().apply(h))


def fit_warp(h: np.ndarray, z: np.ndarray, *, pieces: int = 16, rounds: int = 30) -> WarpFit:
    """The best rotation and shared warp for latents h (b, d) and states z (b, n), on all rows.

    The turns end when Q rests. From Procrustes on z itself they rarely need more than three where d ≥ n: for
    independent z that are alike, E[h zᵀ] is already a multiple of Q.
    """
    check_matrices(h=h, z=z)
    h, z = h.astype(np.float64), z.astype(np.float64)
    ends = np.array([z.min(), z.max()])
    if ends[0] == ends[1]:
        raise InputError("A warp needs at least two different values of 'z', but all are the same.")
    warp, turn = Monotone(ends, ends), procrustes(z, h)  # w(z) = z
    for _ in range(rounds):
        before = turn.weight
        warp = fit_monotone(z, _warped(turn, warp, h, z), pieces=pieces)
        turn = procrustes(warp(z), h)
        if np.abs(turn.weight - before).max() < 1e-6:
            break
    return WarpFit(turn, warp, fit_monotone(turn.invert().apply(h), z, pieces=pieces))


def warp_recovery(
    h: np.ndarray,
    z: np.ndarray,
    split: Split,
    rng: np.random.Generator,
    *,
    predicted: Curve | None = None,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """Held-out estimates with group-bootstrap intervals:

    r2                        R² of z from h by least squares, as everywhere
    r2_unwarped               R² of z from h by one rotation and the warp undone
    gain                      r2_unwarped − r2
    r2_inverse                R² of h from z by least squares
    r2_inverse_warped         R² of h from Q w(z)

    and, where theory predicts a warp (any function of arrays; its scale is free):

    r2_inverse_predicted      R² of h from a Q w(z) with the predicted w
    agreement                 Corr(w(z), predicted w(z))², over all coordinates
    """
    check_matrices(groups, h=h, z=z)
    fit, (h_fit, z_fit) = fit_warp(h[split.fit], z[split.fit]), (h[split.fit], z[split.fit])
    h_score, z_score = h[split.score], z[split.score]
    misses = {
        "r2": z_score - least_squares(h_fit, z_fit).apply(h_score),
        "r2_unwarped": z_score - fit.decode(h_score),
        "r2_inverse": h_score - least_squares(z_fit, h_fit).apply(z_score),
        "r2_inverse_warped": h_score - fit.encode(z_score),
    }
    curves = None
    if predicted is not None:
        expected = _evaluated(predicted, z)
        turn = procrustes(expected[split.fit], h_fit, scaled=True)
        misses["r2_inverse_predicted"] = h_score - turn.apply(expected[split.score])
        curves = np.stack([fit.warp(z_score), expected[split.score]])
    squares = {name: np.square(miss).sum(1) for name, miss in misses.items()}

    def statistic(weights: np.ndarray) -> dict[str, float]:
        totals = {"z": _spread(z_score, weights), "h": _spread(h_score, weights)}
        scores = {
            name: 1 - float(weights @ square) / totals["h" if "inverse" in name else "z"]
            for name, square in squares.items()
        }
        scores["gain"] = scores["r2_unwarped"] - scores["r2"]
        return scores | ({} if curves is None else {"agreement": _agreement(curves[0], curves[1], weights)})

    held = None if groups is None else groups[split.score]
    return bootstrap(statistic, len(split.score), rng, groups=held, replicates=replicates)


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
    targets = _warped(fit.turn, fit.warp, h, z)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        curve = fit_monotone(z, targets, np.broadcast_to(weights[:, None], z.shape))
        return {str(x): float(y) for x, y in zip(at, curve(at), strict=True)}

    found = bootstrap(statistic, len(z), rng, groups=groups, replicates=replicates)
    return {float(x): found[str(x)] for x in at}


def _warped(turn: LinearMap, warp: Curve, h: np.ndarray, z: np.ndarray) -> np.ndarray:
    """h turned back, (b, n). What Q drops where d < n is filled from the present warp, and no turn makes it worse."""
    back, now = turn.invert(), warp(z)
    return back.apply(h) + now - back.apply(turn.apply(now))


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
