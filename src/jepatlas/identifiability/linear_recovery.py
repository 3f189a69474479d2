"""Linear recovery: how far latents h and true states z are from one linear, and one orthogonal, map of each other.

All maps are fitted on one half of the samples and scored on the other. h and z may have different widths.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import scipy  # submodules are imported on first use

from jepatlas.core.linear import Split, least_squares, orthogonality_error, procrustes, symmetric_product
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap, explained_share
from jepatlas.identifiability.covariance import WeightedCovariance, matrix_power, range_root, resampling_units, response
from jepatlas.identifiability.resampling import Halves
from jepatlas.identifiability.standards import UNEXPLAINED
from jepatlas.identifiability.validation import as_arrays, check_matrices, check_split

__all__ = [
    "MAX_ORTHOGONALITY_ERROR",
    "MIN_R2",
    "PARTS",
    "adjusted",
    "r2_of_parts",
    "recovery",
    "recovery_null",
    "recovery_verdicts",
]

MIN_R2 = 1 - UNEXPLAINED
"""Held-out R² from which latents count as linearly recovered."""
MAX_ORTHOGONALITY_ERROR = 0.1
"""Relative distance from an orthogonal map up to which a map counts as a rotation."""
PARTS = 10
MAX_STRETCH = 0.3
"""Relative deviation of a direction's variance from the mean above which a linear map counts as a shear.

Trained agents that recover the state (R² above .98) had .004 to .007; the shear (z₀ + .8 z₁, z₁) has .65.
"""


def recovery(
    h: np.ndarray,
    z: np.ndarray,
    split: Split,
    rng: np.random.Generator,
    *,
    white: LinearMap | None = None,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """Held-out estimates with group-bootstrap intervals:

    r2                    R² of z from h by least squares
    r2_adjusted           the same for the optimal linear map: corrected for the error of fitting one
    r2_inverse            R² of h from z
    mcc                   mean |correlation| of states with latents, matched one to one
    mcc_linear            the same with the latents mapped by least squares
    procrustes            E‖h − Qz‖², means removed, for the best orthogonal Q
    procrustes_whitened   the same for whitened latents, if the whitening map `white` is given
    orthogonality         ‖WᵀW − I‖/‖I‖ of the map z → h in whitened coordinates (0 for any linear h)
    orthogonality_raw     the same in the latents' own coordinates (0 only for h = Qz)
    stretch               max |λ/λ̄ − 1| over the eigenvalues λ of WᵀW (0 only for h = cQz)

    WᵀW is estimated by the W of one half times the W of the other: within one half with as many rows as dimensions, a
    perfect map would be fitted between unrelated arrays. Both are whitened by the first half. `stretch` uses z or
    whitened z, whichever gives less: h = QΣ^{−½}z is as good a chart as h = Qz.
    """
    h, z, groups = as_arrays(h=h, z=z, groups=groups)
    check_matrices(groups, h=h, z=z)
    check_split(split, len(h))
    score_groups = None if groups is None else groups[split.score]
    units = resampling_units(len(split.score), score_groups, h.shape[1] + z.shape[1])
    statistic = _Statistic(h, z, split, white, units)
    return bootstrap(statistic, len(split.score), rng, groups=units, replicates=replicates)


class _Statistic:
    """Fits everything once; calls return the scores under row weights."""

    def __init__(self, h: np.ndarray, z: np.ndarray, split: Split, white: LinearMap | None, units: np.ndarray) -> None:
        fit, score = split
        self.n = z.shape[1]
        self.fit_rows = len(fit)
        self.predictors = h.shape[1]
        self.decoder = least_squares(h[fit], z[fit])
        encoder = least_squares(z[fit], h[fit])
        self.forms = {"procrustes": h}
        if white is not None:
            self.forms["procrustes_whitened"] = white.apply(h)
        residuals = {name: _procrustes_residual(form, z, split) for name, form in self.forms.items()}
        residuals["z"] = _squares(z[score] - self.decoder.apply(h[score]))
        residuals["h"] = _squares(h[score] - encoder.apply(z[score]))
        self.names = list(residuals)
        self.residuals = np.stack(list(residuals.values()), axis=1)
        self.covariance = WeightedCovariance(np.concatenate([z[score], h[score]], axis=1), units)
        fitted = WeightedCovariance(np.concatenate([z[fit], h[fit]], axis=1))(np.ones(len(fit)))
        self.mean_correlation = _MatchedCorrelation(fitted, self.n)
        self.map_shape = _MapShape(fitted, self.n)

    def __call__(self, weights: np.ndarray) -> dict[str, float]:
        joint = self.covariance(weights)
        n = self.n
        residual = dict(zip(self.names, weights @ self.residuals / weights.sum(), strict=True))
        r2 = explained_share(residual["z"], np.trace(joint[:n, :n]))
        return {
            "r2": r2,
            "r2_adjusted": adjusted(r2, self.fit_rows, self.predictors),
            "r2_inverse": explained_share(residual["h"], np.trace(joint[n:, n:])),
            "mcc": self.mean_correlation(joint),
            "mcc_linear": _decoded_correlation(joint, self.decoder.weight),
            **{name: float(residual[name]) for name in self.forms},
            **self.map_shape(joint),
        }


class _MapShape:
    """Distance of the map W from a rotation, estimated from the W of the fit rows and the W of the score rows."""

    def __init__(self, fitted: np.ndarray, n: int) -> None:
        self.n = n
        self.raw = response(fitted, n)
        self.z_root = matrix_power(fitted[:n, :n], 0.5)
        self.h_root = matrix_power(fitted[n:, n:], -0.5)
        roots = (np.eye(n), range_root(fitted[:n, :n]))
        self.units = min(roots, key=lambda root: np.nan_to_num(_stretch(self.raw @ root, self.raw @ root)))

    def __call__(self, joint: np.ndarray) -> dict[str, float]:
        raw = response(joint, self.n)
        white_fit = self.h_root @ self.raw @ self.z_root
        white_score = self.h_root @ raw @ self.z_root
        return {
            "orthogonality": orthogonality_error(white_fit, white_score),
            "orthogonality_raw": orthogonality_error(self.raw, raw),
            "stretch": _stretch(self.raw @ self.units, raw @ self.units),
        }


def recovery_null(h: np.ndarray, z: np.ndarray, split: Split, rng: np.random.Generator) -> dict[str, float]:
    """Permutation null: the same statistics after permuting the states."""
    h, z = as_arrays(h=h, z=z)
    permuted = z[rng.permutation(len(z))]
    estimates = recovery(h, permuted, split, rng, replicates=1)
    return {name: estimate.value for name, estimate in estimates.items()}


def r2_of_parts(halves: Halves) -> Verdict:
    """`r2_parts`: R² of z from h with a linear map of its own for each of ten parts of the rows, in their order.

    It exceeds `r2` if the map from state to latents changes along the rows: over time, or from file to file.
    """
    residual = 0.0
    total = 0.0
    edges = np.linspace(0, len(halves.h), PARTS + 1)
    enough = 2 * (halves.h.shape[1] + 1)
    value = float("nan")
    for low, high in pairwise(edges):
        fit, score = (side[(side >= low) & (side < high)] for side in halves.split)
        if min(len(fit), len(score)) < enough:
            break
        z = halves.z[score]
        residual += _squares(z - least_squares(halves.h[fit], halves.z[fit]).apply(halves.h[score])).sum()
        total += _squares(z - z.mean(0)).sum()
    else:
        value = explained_share(residual, total)
    return Verdict.judge(
        "r2_parts",
        Estimate.exact(value, len(halves.split.score)),
        direction="higher",
        good=f"R² of the state with a linear map for each of {PARTS} parts of the rows.",
    )


def adjusted(r2: float, rows: int, predictors: int) -> float:
    """R² of the optimal linear map, from the held-out R² of one fitted on N = `rows` rows with p predictors.

    In-sample R² is adjusted downwards for the number of predictors. Held out it is the other way round: the noise of p
    fitted coefficients multiplies the error, for Gaussian predictors by (N+1)(N−2) / N(N−p−2). Without the adjustment,
    latents of different width, or certificates from different numbers of samples, cannot be compared. NaN with too
    few rows.

    >>> round(adjusted(0.98, 20_000, 2), 4), round(adjusted(0.5, 100, 48), 4)
    (0.98, 0.7474)
    """
    if rows <= predictors + 2:
        return float("nan")
    return 1 - (1 - r2) * rows * (rows - predictors - 2) / ((rows + 1) * (rows - 2))


class _MatchedCorrelation:
    """MCC, the mean correlation coefficient of nonlinear ICA: latents and states matched one to one.

        MCC = (1/n) Σ_i |Corr(h_{π(i)}, z_i)|        with the assignment π that maximises it

    Assignment and signs are chosen on the fit rows and evaluated on the score rows, so unrelated latents have MCC 0. A
    state without a latent counts as 0. MCC has no threshold: a rotation, which theory allows, lowers it, to about .8 on
    average in two dimensions and less in more.
    """

    def __init__(self, joint: np.ndarray, n: int) -> None:
        found = _correlations(joint, n)
        self.n = n
        self.latents, self.states = scipy.optimize.linear_sum_assignment(-np.abs(found))
        self.signs = np.sign(found[self.latents, self.states])

    def __call__(self, joint: np.ndarray) -> float:
        return float(self.signs @ _correlations(joint, self.n)[self.latents, self.states] / self.n)


def _correlations(joint: np.ndarray, n: int) -> np.ndarray:
    """Corr(h_j, z_i), (d, n), from the covariance of (z, h); 0 for constant columns."""
    spread = np.sqrt(np.maximum(np.diag(joint), 0))
    scale = np.outer(spread[n:], spread[:n])
    return np.where(scale > 0, joint[n:, :n] / np.where(scale > 0, scale, 1.0), 0.0)


def _decoded_correlation(joint: np.ndarray, weight: np.ndarray) -> float:
    """Mean Corr(ẑ_i, z_i) for ẑ = weight·h."""
    n = len(weight)
    both = np.block([[np.eye(n), np.zeros_like(weight)], [np.zeros((n, n)), weight]])
    return float(np.mean(np.diag(_correlations(both @ joint @ both.T, n))))


def _stretch(one: np.ndarray, other: np.ndarray) -> float:
    """max |λ/λ̄ − 1|; NaN without a map. For unrelated halves some λ are negative, so λ̄ is the mean of |λ|."""
    values = np.linalg.eigvalsh(symmetric_product(one, other))
    mean = np.abs(values).mean() if len(values) else 0.0
    return float(np.abs(values / mean - 1).max()) if mean > 0 else float("nan")


def _procrustes_residual(h: np.ndarray, z: np.ndarray, split: Split) -> np.ndarray:
    """‖h − Qz‖² of each score row."""
    turn = procrustes(z[split.fit], h[split.fit])
    return _squares(h[split.score] - turn.apply(z[split.score]))


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.square(rows).sum(1)


def recovery_verdicts(found: Mapping[str, Estimate], null: Mapping[str, float]) -> list[Verdict]:
    """Verdicts on the estimates of `recovery`, with those of permuted states as null."""
    return [
        Verdict.judge(
            "r2",
            found["r2"],
            direction="higher",
            threshold=MIN_R2,
            null=null["r2"],
            good="The true state is a linear function of the latents.",
            bad="The true state is not a linear function of the latents. Train longer, or check the assumptions on the "
            "world (Gaussian, one rate, enough latent dimensions).",
        ),
        Verdict.judge(
            "r2_inverse",
            found["r2_inverse"],
            direction="higher",
            threshold=MIN_R2,
            null=null["r2_inverse"],
            good="The latents are a linear function of the state.",
            bad="The latents are not a linear function of the state: they contain nonlinear terms, noise, or surplus "
            "dimensions.",
        ),
        Verdict.judge(
            "orthogonality",
            found["orthogonality"],
            direction="lower",
            threshold=MAX_ORTHOGONALITY_ERROR,
            null=null["orthogonality"],
            good="In whitened coordinates, the map from state to latent is a rotation.",
            bad="Even in whitened coordinates, the map from state to latent is not a rotation.",
        ),
        Verdict.judge(
            "stretch",
            found["stretch"],
            direction="lower",
            threshold=MAX_STRETCH,
            null=0.0,
            good="The linear map from state to latent scales all directions equally.",
            bad="The linear map from state to latent scales directions differently, as a shear does. Whiten the "
            "latents to undo it.",
        ),
        Verdict.judge(
            "orthogonality_raw",
            found["orthogonality_raw"],
            direction="lower",
            null=null["orthogonality_raw"],
            good="Orthogonality error without whitening: also measures the distance of training from Cov h = I.",
        ),
        Verdict.judge(
            "r2_adjusted",
            found["r2_adjusted"],
            direction="higher",
            null=null["r2_adjusted"],
            good="R² of the optimal linear map, corrected for fitting it on a finite number of rows.",
        ),
        Verdict.judge(
            "mcc",
            found["mcc"],
            direction="higher",
            null=null["mcc"],
            good="Mean correlation of states with latents, matched one to one. An allowed rotation lowers it.",
        ),
        Verdict.judge(
            "mcc_linear",
            found["mcc_linear"],
            direction="higher",
            null=null["mcc_linear"],
            good="Mean correlation after the best linear map. A rotation does not lower it.",
        ),
        Verdict.judge(
            "procrustes",
            found["procrustes"],
            direction="lower",
            null=null["procrustes"],
            good="E‖h − Qz‖² for the best rotation Q: the quantity that Theorem 3 bounds.",
        ),
        Verdict.judge(
            "procrustes_whitened",
            found["procrustes_whitened"],
            direction="lower",
            good="E‖h − Qz‖² after whitening the latents.",
        ),
    ]
