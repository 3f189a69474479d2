"""The certified map: between two charts that are rotations of one state, h₂ = W h₁ with W = Q₂Q₁ᵀ orthogonal.

That W is orthogonal is a prior worth d(d+1)/2 of its d² numbers: as many pairs as dimensions suffice for the
Procrustes map, at about twice the error of endless pairs (twice as many come within 1.4 times), where least squares
needs several times more. With s_i the singular values of the centred h₁ (white, n rows)
their errors are, over those with endless pairs and to first order in the charts' errors,

    rotation  (1 + 1/n)(1 + (1/d) Σ_{i≠j} 1/(s_i² + s_j²)) ≈ 1 + (d+1)/2n     least squares  (1 + 1/n)(1 + Σ_i 1/s_i²)

(beyond first order, the sign of a direction that the pairs hardly show may come out wrong). Least squares takes over
where its cross-fitted error is lower beyond doubt: no chart is certified to be exact, and pairs may be many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jepatlas.alignment.atlas.certified_limit import (
    check_certified_pairs,
    limit_verdicts,
    mean_squares,
    predicted_limit,
    squares,
)
from jepatlas.core.linear import distance_from_identity, hold_out, least_squares, procrustes, whitener
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap

__all__ = ["CertifiedMap", "certified_map", "pair_prices"]

FOLDS = 10
Fit = Callable[[np.ndarray, np.ndarray], LinearMap]


@dataclass(frozen=True)
class CertifiedMap:
    """A map a → b, the prior it was fitted with, and prediction beside measurement."""

    map: LinearMap
    method: Literal["procrustes", "least squares"]
    verdicts: tuple[Verdict, ...]


def certified_map(
    a: np.ndarray,
    b: np.ndarray,
    bounds: tuple[Estimate, Estimate],
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> CertifiedMap:
    """The map between paired latents (N, d) of two certified charts, in the coordinates that their bounds speak of.

    Errors are cross-fitted: every pair is judged by a map of the others. The map itself is of all pairs. Verdicts:

    certified.limit           predicted: E‖h₂ − Wh₁‖² of the best rotation
    certified.error           measured for the Procrustes map
    certified.pairs           predicted: how many times larger these few pairs make it than endless ones would
    certified.least_squares   measured for the map without the prior, where the pairs are enough to fit one
    certified.orthogonality   ‖WᵀW − I‖/‖I‖ of that map in whitened coordinates, by halves: predicted to be near 0
    """
    check_certified_pairs(a, b, groups)
    a, b = a.astype(np.float64), b.astype(np.float64)
    folds = _folds(len(a), groups, rng)
    smallest = len(a) - int(np.bincount(folds).max())
    rows = {"error": _cross_fitted(procrustes, a, b, folds), "fitted": squares(b - procrustes(a, b).apply(a))}
    if smallest > a.shape[1] + 1:
        rows["least_squares"] = _cross_fitted(least_squares, a, b, folds)
        rows["gain"] = rows["error"] - rows["least_squares"]
    found = mean_squares(rows, rng, groups, replicates)
    better = "gain" in found and found["gain"].low > 0
    null = float(_cross_fitted(procrustes, a, b[rng.permutation(len(b))], folds).mean())
    verdicts = (
        *limit_verdicts(predicted_limit(*bounds), found, null),
        _pairs_verdict(a),
        _least_squares_verdict(found, len(a), a.shape[1], better),
        _orthogonality_verdict(a, b, rng, groups, replicates),
    )
    method, fit = ("least squares", least_squares) if better else ("procrustes", procrustes)
    return CertifiedMap(fit(a, b), method, verdicts)


def pair_prices(a: np.ndarray) -> tuple[float, float]:
    """Error over that with endless pairs, predicted for these ones: of a rotation, and of least squares.

    >>> [round(price, 2) for price in pair_prices(np.random.default_rng(0).standard_normal((32, 16)))]
    [1.37, 2.09]
    """
    n, d = a.shape
    squares = np.zeros(d)
    squares[: min(n, d)] = np.linalg.svd(a - a.mean(0), compute_uv=False) ** 2
    squares[squares <= 1e-20 * squares.max()] = 0.0
    with np.errstate(divide="ignore"):
        apart = 1 / (squares[:, None] + squares)[~np.eye(d, dtype=bool)]
        return float((1 + 1 / n) * (1 + apart.sum() / d)), float((1 + 1 / n) * (1 + (1 / squares).sum()))


def _pairs_verdict(a: np.ndarray) -> Verdict:
    rotation, free = pair_prices(a)
    predicted = f"Predicted from the {len(a)} pairs: error over that with endless pairs, {rotation:.2f} for a rotation"
    return Verdict.judge(
        "certified.pairs",
        Estimate(rotation, rotation, rotation, len(a)),
        direction="lower",
        good=f"{predicted}, {free:.2f} for a map without that prior.",
    )


def _least_squares_verdict(found: Mapping[str, Estimate], pairs: int, width: int, better: bool) -> Verdict:
    name, nothing = "certified.least_squares", Estimate(float("nan"), float("nan"), float("nan"), pairs)
    if "least_squares" not in found:
        advice = f"{pairs} pairs do not determine a free map of {width} dimensions; the prior (a rotation) is used."
        return Verdict.judge(name, nothing, direction="lower", good=advice)
    advice = (
        "The map without the prior is better beyond doubt, and is used: the charts are no exact rotations of the state."
        if better
        else "The map without the prior is not better beyond doubt; the rotation is used."
    )
    return Verdict.judge(name, found["least_squares"], direction="lower", good=advice)


def _orthogonality_verdict(
    a: np.ndarray, b: np.ndarray, rng: np.random.Generator, groups: np.ndarray | None, replicates: int
) -> Verdict:
    """WᵀW by the W of one half against that of the other: within one half, few rows would fit a perfect map."""
    (fit, score), d = hold_out(len(a), rng, groups=groups), a.shape[1]
    found = Estimate(float("nan"), float("nan"), float("nan"), len(score))
    advice = "Too few pairs to see whether a free map would be orthogonal, as theory predicts."
    if min(len(fit), len(score)) > d + 1:
        a, b = whitener(a[fit]).apply(a), whitener(b[fit]).apply(b)
        one, both = least_squares(a[fit], b[fit]).weight, np.concatenate([a, b], axis=1)[score].T
        held = None if groups is None else groups[score]

        def statistic(weights: np.ndarray) -> dict[str, float]:
            joint = np.cov(both, aweights=weights, bias=True)
            gram = one.T @ joint[d:, :d] @ np.linalg.pinv(joint[:d, :d])
            return {"o": distance_from_identity((gram + gram.T) / 2)}

        found = bootstrap(statistic, len(score), rng, groups=held, replicates=replicates)["o"]
        advice = (
            "Of the map without the prior, in whitened coordinates. Predicted: 0, up to what the bounds leave open."
        )
    return Verdict.judge("certified.orthogonality", found, direction="lower", null=1.0, good=advice)


def _cross_fitted(fit: Fit, a: np.ndarray, b: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """‖b − W a‖² of each row, by a map that was fitted without its fold."""
    missed = np.empty(len(a))
    for fold in np.unique(folds):
        held = folds == fold
        missed[held] = squares(b[held] - fit(a[~held], b[~held]).apply(a[held]))
    return missed


def _folds(n: int, groups: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    labels = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    return (rng.permutation(labels.max() + 1) % FOLDS)[labels]
