"""Recovery: how far latents h and true states z are one linear, and one orthogonal, map apart.

Everything is held out: maps are fitted on one half of the samples and scored on the other. h and z may have
different widths. Nothing here knows who trained the encoder.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.linear import Split, least_squares, orthogonality_error, procrustes, symmetric_product
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate
from jepatlas.core.stats import bootstrap, explained_share
from jepatlas.identifiability.checks import as_arrays, check_matrices, check_split
from jepatlas.identifiability.covariance import WeightedCovariance
from jepatlas.identifiability.truth.mcc import Matching, correlations
from jepatlas.identifiability.truth.response import power, range_root, response

__all__ = ["adjusted", "recovery", "recovery_null"]


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
    r2_adjusted           the same for the best linear map of all: the price of fitting one is given back
    r2_inverse            R² of h from z
    mcc                   mean |correlation| of states with latents, matched one to one
    mcc_linear            the same with the latents mapped by least squares
    procrustes            E‖h − Qz‖², means removed, for the best orthogonal Q
    procrustes_whitened   the same of `white` latents, where the whitening map is given
    orthogonality         ‖WᵀW − I‖/‖I‖ of the map z → h in whitened coordinates (zero for any linear h)
    orthogonality_raw     the same in the latents' own coordinates (zero for h = Qz only)
    stretch               max |λ/λ̄ − 1| over the eigenvalues λ of WᵀW (zero for h = cQz only)

    WᵀW is estimated by the W of one half against the W of the other: within one half, as many rows as dimensions
    would fit a perfect map between things that have nothing to do with each other. Both are whitened by the first.
    `stretch` is that of W for z as it is, or whitened, whichever is less: h = QΣ^{−½}z is as good a chart as h = Qz.
    """
    h, z, groups = as_arrays(h=h, z=z, groups=groups)
    check_matrices(groups, h=h, z=z)
    check_split(split, len(h))
    statistic = _Statistic(h, z, split, white)
    held = None if groups is None else groups[split.score]
    return bootstrap(statistic, len(split.score), rng, groups=held, replicates=replicates)


class _Statistic:
    """Everything that is fitted, once; then the numbers of the rows to score under any weights."""

    def __init__(self, h: np.ndarray, z: np.ndarray, split: Split, white: LinearMap | None) -> None:
        fit, score = split
        self.n, self.rows, self.predictors = z.shape[1], len(fit), h.shape[1]
        self.decode, encode = least_squares(h[fit], z[fit]), least_squares(z[fit], h[fit])
        self.forms = {"procrustes": h} | ({} if white is None else {"procrustes_whitened": white.apply(h)})
        self.misses = {name: _misfit(form, z, split) for name, form in self.forms.items()} | {
            "z": _squares(z[score] - self.decode.apply(h[score])),
            "h": _squares(h[score] - encode.apply(z[score])),
        }
        self.residuals = np.stack(list(self.misses.values()), axis=1)
        self.covariance = WeightedCovariance(np.concatenate([z[score], h[score]], axis=1))
        fitted = WeightedCovariance(np.concatenate([z[fit], h[fit]], axis=1))(np.ones(len(fit)))
        self.matching, self.turn = Matching(fitted, self.n), _Turn(fitted, self.n)

    def __call__(self, weights: np.ndarray) -> dict[str, float]:
        joint, n = self.covariance(weights), self.n
        missed = dict(zip(self.misses, weights @ self.residuals / weights.sum(), strict=True))
        r2 = explained_share(missed["z"], np.trace(joint[:n, :n]))
        return {
            "r2": r2,
            "r2_adjusted": adjusted(r2, self.rows, self.predictors),
            "r2_inverse": explained_share(missed["h"], np.trace(joint[n:, n:])),
            "mcc": self.matching(joint),
            "mcc_linear": _mapped_correlation(joint, self.decode.weight),
            **{name: float(missed[name]) for name in self.forms},
            **self.turn(joint),
        }


class _Turn:
    """How far W, of one half of the rows, is from a rotation, beside the W of the other."""

    def __init__(self, fitted: np.ndarray, n: int) -> None:
        self.n, self.raw = n, response(fitted, n)
        self.z_root, self.h_root = power(fitted[:n, :n], 0.5), power(fitted[n:, n:], -0.5)
        roots = (np.eye(n), range_root(fitted[:n, :n]))
        self.units = min(roots, key=lambda root: np.nan_to_num(_stretch(*[self.raw @ root] * 2)))

    def __call__(self, joint: np.ndarray) -> dict[str, float]:
        raw = response(joint, self.n)
        white = (self.h_root @ one @ self.z_root for one in (self.raw, raw))
        return {
            "orthogonality": orthogonality_error(*white),
            "orthogonality_raw": orthogonality_error(self.raw, raw),
            "stretch": _stretch(self.raw @ self.units, raw @ self.units),
        }


def recovery_null(h: np.ndarray, z: np.ndarray, split: Split, rng: np.random.Generator) -> dict[str, float]:
    """The same statistics where states are dealt to latents at random: what there is to see in nothing."""
    h, z = as_arrays(h=h, z=z)
    dealt = z[rng.permutation(len(z))]
    estimates = recovery(h, dealt, split, rng, replicates=1)
    return {name: estimate.value for name, estimate in estimates.items()}


def adjusted(r2: float, rows: int, predictors: int) -> float:
    """R² of the best linear map, from the held-out R² of one that was fitted on so many rows.

    In-sample R² is adjusted downwards for the number of predictors. Held out it is the other way round: more predictors
    earn nothing by themselves, and the noise of the p fitted coefficients costs a factor in the error, for Gaussian
    predictors (N+1)(N−2) / N(N−p−2). Without it, charts of different width, or certificates from different numbers of
    samples, could not be compared. NaN where the rows are too few to say.

    >>> round(adjusted(0.98, 20_000, 2), 4), round(adjusted(0.5, 100, 48), 4)
    (0.98, 0.7474)
    """
    if rows <= predictors + 2:
        return float("nan")
    return 1 - (1 - r2) * rows * (rows - predictors - 2) / ((rows + 1) * (rows - 2))


def _stretch(one: np.ndarray, other: np.ndarray) -> float:
    """max |λ/λ̄ − 1|; NaN where there is no map. Of unrelated halves some λ are negative: their size counts for λ̄."""
    values = np.linalg.eigvalsh(symmetric_product(one, other))
    mean = np.abs(values).mean() if len(values) else 0.0
    return float(np.abs(values / mean - 1).max()) if mean > 0 else float("nan")


def _mapped_correlation(joint: np.ndarray, weight: np.ndarray) -> float:
    """Mean Corr(ẑ_i, z_i) for ẑ = weight·h."""
    n = len(weight)
    both = np.block([[np.eye(n), np.zeros_like(weight)], [np.zeros((n, n)), weight]])
    return float(np.mean(np.diag(correlations(both @ joint @ both.T, n))))


def _misfit(h: np.ndarray, z: np.ndarray, split: Split) -> np.ndarray:
    """‖h − Qz‖² of each held-out row."""
    turn = procrustes(z[split.fit], h[split.fit])
    return _squares(h[split.score] - turn.apply(z[split.score]))


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.square(rows).sum(1)
