"""Composition of latents: shares of variance that are linear in the state, a warp, a shear, a bend, and noise.

    linear | warp | shear | bend | noise        gains in held-out R² from one family of `regressions.py` to the next

Several frames are tried, because a curve along the axes of one frame is not a curve along those of another: latents as
functions of the state, h = Q w(z); the state as a function of latents, h = w(Qz); and, if neither explains the
nonlinear part, the state as a function of latents rotated to independent axes (ICA), h = Q₂ w(Q₁z). The frame whose
axes explain clearly more is used. If part of the state is missing, only the first is possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.linalg

from jepatlas.core.linear import whitener
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import explained_share
from jepatlas.identifiability.regressions import FAMILIES, decode, fit_families, standard_deviations
from jepatlas.identifiability.resampling import Halves

__all__ = ["Explained", "composition", "explain", "nonlinear_r2", "rounding", "unmix", "worst_direction"]

MAX_ROWS = 3000
ROWS_PER_DIMENSION = 20
"""Rows of each half that suffice to determine shares to one hundredth."""
AXES_EXPLAIN = 0.9
"""Share of the nonlinear part that curves along given axes must explain for other axes not to be tried."""
CLEARLY = 0.05
"""How much more of the nonlinear part another frame must explain to be used."""
UNMIXED_EXPLAIN = 0.5
"""Share of the nonlinear part that curves along axes found by ICA must explain to be used."""
ROWS_PER_VALUE = 10  # a coordinate with fewer rows for each of its values takes any value
ICA_ROUNDS = 200
ICA_TOLERANCE = 1e-6

MEANING = {
    "linear": "a linear map of the {x}",
    "warp": "a monotone curve along each coordinate of the {x}",
    "shear": "a curve of one coordinate of the {x} in the direction of others",
    "bend": "a nonlinear mixture of coordinates of the {x}, neither a warp nor a shear",
    "noise": "not explained by any function of the {x} that was tried",
}


@dataclass(frozen=True)
class Explained:
    """Predictions by each family, fitted on one half: of h from z, of z from h, and of z from unmixed h.

    The last only if the axes of neither the state nor the latents explain the nonlinear part.
    """

    halves: Halves
    encoded: dict[str, np.ndarray]  # (b, d) each
    decoded: dict[str, np.ndarray]  # (b, n) each
    unmixed: dict[str, np.ndarray] | None = None  # (b, n) each

    def gain(self, y: np.ndarray, found: Mapping[str, np.ndarray]) -> float:
        """Share of a linear map's residual variance that is explained by curves along the axes."""
        score = self.halves.split.score
        linear = np.square(y[score] - found["linear"][score]).sum()
        additive = np.square(y[score] - found["additive"][score]).sum()
        return float(1 - additive / linear) if linear > 0 else 0.0


def explain(halves: Halves, rng: np.random.Generator) -> Explained:
    """Fit all families in both directions, on a subsample of the rows."""
    widest = max(halves.h.shape[1], halves.z.shape[1])
    some = halves.subsampled(max(MAX_ROWS, ROWS_PER_DIMENSION * widest), rng)
    decoded = decode(some, rng)
    encoded = fit_families(some.z / standard_deviations(some), some.h, some.split.fit, rng, some.groups)
    plain = Explained(some, encoded, decoded)
    fit = some.split.fit
    is_linear = np.array_equal(decoded["linear"][fit], decoded["any"][fit])
    if is_linear or some.h.shape[1] != some.z.shape[1]:
        return plain
    if max(plain.gain(some.h, encoded), plain.gain(some.z, decoded)) > AXES_EXPLAIN:
        return plain
    rotated = replace(some, h=unmix(some.h, fit, rng))
    return replace(plain, unmixed=decode(rotated, rng))


def unmix(h: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """FastICA (Hyvärinen 1999): all of h (b, d), whitened and rotated to maximally non-Gaussian axes found on `rows`.

        V ← E[tanh(Vu) uᵀ] − diag(E tanh'(Vu)) V,        V ← (VVᵀ)^{−½} V        alternately, until V converges

    Latents h = Q₂ w(Q₁z) of a Gaussian state are a rotation of independent non-Gaussian coordinates, so this recovers
    w(Q₁z) without z. For Gaussian rows, the rotation is arbitrary.

    >>> rng = np.random.default_rng(0)
    >>> cubes = rng.standard_normal((4000, 2)) ** 3
    >>> found = unmix(cubes @ np.array([[0.6, -0.8], [0.8, 0.6]]), np.arange(4000), rng)
    >>> np.sort(np.abs(np.corrcoef(found.T, cubes.T)[:2, 2:]), axis=None).round(1).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    white = whitener(h[rows]).apply(h)
    u = white[rows]
    turn = scipy.linalg.orth(rng.standard_normal((h.shape[1], h.shape[1])))
    for _ in range(ICA_ROUNDS):
        squashed = np.tanh(u @ turn.T)
        raw = squashed.T @ u / len(u) - (1 - np.square(squashed)).mean(0)[:, None] * turn
        left, _, right = np.linalg.svd(raw)
        before = turn
        turn = left @ right
        if np.abs(np.abs(np.sum(turn * before, axis=1)) - 1).max() < ICA_TOLERANCE:
            break
    return white @ turn.T


def nonlinear_r2(explained: Explained, rng: np.random.Generator, replicates: int = 500) -> Verdict:
    """`r2_nonlinear`: R² of the state from the best function of the latents that was tried."""
    halves = explained.halves
    score = halves.split.score
    z = halves.z[score]
    residual = np.square(z - explained.decoded["any"][score]).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        deviation = np.square(z - weights @ z / weights.sum()).sum(1)
        return {"r2_nonlinear": explained_share(weights @ residual, weights @ deviation)}

    return Verdict.judge(
        "r2_nonlinear",
        halves.estimates(statistic, rng, replicates)["r2_nonlinear"],
        direction="higher",
        good="R² of the state from the best nonlinear function of the latents that was tried.",
    )


def composition(
    explained: Explained, rng: np.random.Generator, *, complete: bool, replicates: int = 500
) -> list[Verdict]:
    """Verdicts `share_linear` … `share_noise` without threshold; they sum to 1. `complete`: h determines all of z."""
    halves = explained.halves
    score = halves.split.score
    frame = _frame(explained, complete)
    y = frame.target
    residuals = np.stack([np.square(y[score] - frame.found[family][score]).sum(1) for family in FAMILIES], axis=1)
    deviation = np.square(y[score] - y[score].mean(0)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        total = float(weights @ deviation)
        explained_r2 = 1 - weights @ residuals / total if total > 0 else np.full(len(FAMILIES), np.nan)
        levels = np.maximum.accumulate([0.0, *explained_r2])  # a richer family is worse only by its noise
        levels = [*levels, 1.0]
        return {share: float(after - before) for share, (before, after) in zip(MEANING, pairwise(levels), strict=True)}

    whole = "latents'" if frame.source == "state" else "state's"
    verdicts = []
    for share, estimate in halves.estimates(statistic, rng, replicates).items():
        meaning = MEANING[share].format(x=frame.source)
        verdicts.append(
            Verdict.judge(
                f"share_{share}",
                estimate,
                direction="higher" if share == "linear" else "lower",
                good=f"Share of the {whole} variance that is {meaning}.",
            )
        )
    return verdicts


def rounding(h: np.ndarray) -> Verdict:
    """`share_rounding`: Σ step² / 12 of the coordinates that take few values, relative to the total variance."""
    lost = 0.0
    for column in h.T:
        values = np.unique(column)
        if 1 < len(values) < len(column) / ROWS_PER_VALUE:
            lost += float(np.diff(values).min()) ** 2 / 12
    total = float(h.var(0).sum())
    return Verdict.judge(
        "share_rounding",
        Estimate.exact(lost / total if total > 0 else 0.0, len(h)),
        direction="lower",
        good="Share of the latents' variance that rounding them to their few values explains.",
    )


@dataclass(frozen=True)
class _Frame:
    source: str  # what the function is of
    target: np.ndarray
    found: dict[str, np.ndarray]  # predictions of the target by each family


def _frame(explained: Explained, complete: bool) -> _Frame:
    h = explained.halves.h
    z = explained.halves.z
    best = _Frame("state", h, explained.encoded)
    if not complete:
        return best
    highest = explained.gain(h, explained.encoded)
    for source, found, minimum in (
        ("latents", explained.decoded, 0.0),
        ("latents, rotated", explained.unmixed, UNMIXED_EXPLAIN),
    ):
        if found is None:
            continue
        gain = explained.gain(z, found)
        if gain > max(highest + CLEARLY, minimum):
            best = _Frame(source, z, found)
            highest = gain
    return best


def worst_direction(
    explained: Explained, rng: np.random.Generator, *, complete: bool, replicates: int = 500
) -> list[Verdict]:
    """Verdicts `worst_nonlinear` and `worst_noise`: the largest such share of a single direction's variance.

        max_v E(v·e)² / Var(v·y)        e: the nonlinear part, or the noise

    Shares of the total variance are diluted by linear coordinates: one cube among 24 is 1.7% of the total, but 40% of
    its own direction. v is found on the fit rows and its share measured on the score rows, so that many directions and
    few rows do not inflate it. The verdicts have no threshold.
    """
    halves = explained.halves
    fit, score = halves.split
    frame = _frame(explained, complete)
    y = frame.target
    white = whitener(y[fit])
    parts = {"nonlinear": frame.found["any"] - frame.found["linear"], "noise": y - frame.found["any"]}
    along = {}
    whole = {}
    for name, part in parts.items():
        direction = white.weight @ _principal_direction(part[fit] @ white.weight.T)
        along[name] = part[score] @ direction
        whole[name] = (y[score] - white.x_mean) @ direction

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {f"worst_{name}": _variance_share(along[name], whole[name], weights) for name in parts}

    estimates = halves.estimates(statistic, rng, replicates)
    return [
        Verdict.judge(
            "worst_nonlinear",
            estimates["worst_nonlinear"],
            direction="lower",
            good="Largest nonlinear share of the variance of a single direction.",
        ),
        Verdict.judge(
            "worst_noise",
            estimates["worst_noise"],
            direction="lower",
            good="Largest share of the variance of a single direction that no function that was tried explains.",
        ),
    ]


def _principal_direction(rows: np.ndarray) -> np.ndarray:
    return np.linalg.eigh(rows.T @ rows)[1][:, -1]


def _variance_share(part: np.ndarray, whole: np.ndarray, weights: np.ndarray) -> float:
    """0 for a constant direction."""
    mean = weights @ whole / weights.sum()
    total = float(weights @ np.square(whole - mean))
    return float(weights @ np.square(part)) / total if total > 0 else 0.0
