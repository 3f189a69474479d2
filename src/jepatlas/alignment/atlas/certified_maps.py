"""Certified maps between two charts that are rotations of one state, and their predicted errors.

    h₁ = Q₁z + e₁,  h₂ = Q₂z + e₂,  E‖eᵢ‖² ≤ Bᵢ     ⇒     min_W E‖h₂ − W h₁‖² ≤ (√B₁ + √B₂)²,   at W = Q₂Q₁ᵀ, orthogonal

Means are removed first, as the bounds assume. Orthogonality fixes d(d+1)/2 of the d² entries of W: with as many pairs
as dimensions the Procrustes map has about twice the error of infinitely many pairs (with twice as many, 1.4 times),
whereas least squares needs several times more pairs. With the singular values s_i of the centred, white h₁ (n rows),
the errors relative to infinitely many pairs are, to first order in the charts' errors,

    rotation  (1 + 1/n)(1 + (1/d) Σ_{i≠j} 1/(s_i² + s_j²)) ≈ 1 + (d+1)/2n     least squares  (1 + 1/n)(1 + Σ_i 1/s_i²)

Least squares is used if its cross-fitted error is significantly lower: charts are not certified to be exact, and there
may be many pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from jepatlas.alignment.atlas.chart import Chart
from jepatlas.alignment.atlas.chart_atlas import Atlas
from jepatlas.core.arrays import check_finite, group_numbers
from jepatlas.core.errors import InputError
from jepatlas.core.linear import distance_from_identity, hold_out, least_squares, procrustes, whitener
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap

__all__ = ["CertifiedMap", "certified_map", "certified_transition", "pair_prices", "predicted_limit"]

FOLDS = 10
Fit = Callable[[np.ndarray, np.ndarray], LinearMap]


@dataclass(frozen=True)
class CertifiedMap:
    """A map a → b, the method it was fitted with, and verdicts."""

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
    """Map between paired latents (N, d) of two certified charts, in the coordinates of their bounds.

    Errors are cross-fitted; the map itself is fitted on all pairs. Verdicts:

    certified.limit           predicted E‖h₂ − Wh₁‖² of the best rotation
    certified.error           measured error of the Procrustes map
    certified.pairs           predicted error relative to infinitely many pairs
    certified.least_squares   measured error of the unconstrained map, if there are enough pairs to fit one
    certified.orthogonality   ‖WᵀW − I‖/‖I‖ of that map in whitened coordinates, from halves; theory predicts 0
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
    """Predicted error relative to infinitely many pairs, of a rotation and of least squares.

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
    predicted = f"Predicted error of {len(a)} pairs relative to infinitely many: {rotation:.2f} for a rotation"
    return Verdict.judge(
        "certified.pairs",
        Estimate.exact(rotation, len(a)),
        direction="lower",
        good=f"{predicted}, {free:.2f} for an unconstrained map.",
    )


def _least_squares_verdict(found: Mapping[str, Estimate], pairs: int, width: int, better: bool) -> Verdict:
    name, undefined = "certified.least_squares", Estimate.undefined(pairs)
    if "least_squares" not in found:
        advice = f"{pairs} pairs do not determine an unconstrained map of {width} dimensions, so the rotation is used."
        return Verdict.judge(name, undefined, direction="lower", good=advice)
    if better:
        advice = "The unconstrained map is significantly better and is used: the charts are not exact rotations."
    else:
        advice = "The unconstrained map is not significantly better, so the rotation is used."
    return Verdict.judge(name, found["least_squares"], direction="lower", good=advice)


def _orthogonality_verdict(
    a: np.ndarray, b: np.ndarray, rng: np.random.Generator, groups: np.ndarray | None, replicates: int
) -> Verdict:
    """WᵀW from the W of one half and the moments of the other, to avoid overfitting with few rows."""
    (fit, score), d = hold_out(len(a), rng, groups=groups), a.shape[1]
    found = Estimate.undefined(len(score))
    advice = "Too few pairs to measure whether an unconstrained map is orthogonal, as theory predicts."
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
            "Orthogonality error of the unconstrained map in whitened coordinates; theory predicts 0 up to the bounds."
        )
    return Verdict.judge("certified.orthogonality", found, direction="lower", null=1.0, good=advice)


def _cross_fitted(fit: Fit, a: np.ndarray, b: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """‖b − W a‖² of each row with a map that was fitted without its fold."""
    errors = np.empty(len(a))
    for fold in np.unique(folds):
        held = folds == fold
        errors[held] = squares(b[held] - fit(a[~held], b[~held]).apply(a[held]))
    return errors


def _folds(n: int, groups: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    labels = group_numbers(groups, n)
    return (rng.permutation(labels.max() + 1) % FOLDS)[labels]


def predicted_limit(first: Estimate, second: Estimate) -> Estimate:
    """(√B₁ + √B₂)² with the interval that follows from those of the bounds.

    >>> limit = predicted_limit(Estimate(0.04, 0.01, 0.09, 500), Estimate.exact(0.01, 800))
    >>> round(limit.value, 6), round(limit.low, 6), round(limit.high, 6), limit.n
    (0.09, 0.04, 0.16, 500)
    """
    roots = [np.sqrt(np.maximum([one.value, one.low, one.high], 0)) for one in (first, second)]
    value, low, high = np.square(np.sum(roots, axis=0)).tolist()
    return Estimate(value, low, high, min(first.n, second.n))


def certified_transition(
    atlas: Atlas,
    a: tuple[str, np.ndarray],
    b: tuple[str, np.ndarray],
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> list[Verdict]:
    """Predicted limit and measured error of the atlas' own map, on held-out states; `a` and `b` are (chart, (N, d)).

    The error is measured between S₁(h₁) and S₂(h₂), the standardised coordinates in which the map is orthogonal.
    """
    (first, x), (second, y) = ((atlas.chart(name), latents) for name, latents in (a, b))
    limit = predicted_limit(_bound(first), _bound(second))
    x, y = first.standardiser.apply(x), second.standardiser.apply(y)
    check_certified_pairs(x, y, groups)
    turn = first.to_frame.compose(second.to_frame.invert())
    rows = {"error": squares(y - turn.apply(x)), "fitted": squares(y - procrustes(x, y).apply(x))}
    null = float(squares(y[rng.permutation(len(y))] - turn.apply(x)).mean())
    return limit_verdicts(limit, mean_squares(rows, rng, groups, replicates), null)


def limit_verdicts(limit: Estimate, found: Mapping[str, Estimate], null: float) -> list[Verdict]:
    """Verdicts on the limit and on `found["error"]`; `found["fitted"]` is the in-sample error of the best rotation.

    The theorem applies to the best rotation, so it is refuted only if the in-sample error also exceeds the limit.
    """
    error = Verdict.judge(
        "certified.error",
        found["error"],
        direction="lower",
        threshold=limit.high,
        null=null,
        good="Measured E‖h₂ − Wh₁‖² of an orthogonal W is within the limit that the certificates predict.",
        bad="Measured E‖h₂ − Wh₁‖² of every rotation exceeds the limit that the certificates predict. One of them does "
        "not hold for these states, or the charts do not show the same states.",
    )
    if error.passed is False and not found["fitted"].low > limit.high:
        advice = "Undecided: the error of this W exceeds the limit, but another rotation may not. Give more pairs."
        error = replace(error, passed=None, advice=advice)
    advice = "Predicted from the two bounds: (√B₁ + √B₂)² limits E‖h₂ − Wh₁‖² of the best orthogonal W."
    return [Verdict.judge("certified.limit", limit, direction="lower", null=null, good=advice), error]


def mean_squares(
    rows: Mapping[str, np.ndarray], rng: np.random.Generator, groups: np.ndarray | None, replicates: int
) -> dict[str, Estimate]:
    """Mean of each array of errors, with its interval."""
    stacked = np.stack(list(rows.values()), axis=1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return dict(zip(rows, weights @ stacked / weights.sum(), strict=True))

    return bootstrap(statistic, len(stacked), rng, groups=groups, replicates=replicates)


def check_certified_pairs(a: np.ndarray, b: np.ndarray, groups: np.ndarray | None) -> None:
    """Raise InputError for pairs of unequal shapes, or too few of them."""
    for name, latents in (("a", a), ("b", b)):
        check_finite(name, latents)
    if a.ndim != 2 or a.shape != b.shape:
        raise InputError(
            "Certified charts are rotations of one state, so 'a' and 'b' must have the same shape (N, d), but they "
            f"have {a.shape} and {b.shape}."
        )
    count = len(a) if groups is None else len(np.unique(groups))
    if count < 3 or (groups is not None and len(groups) != len(a)):
        raise InputError(
            f"A certified map needs at least 3 pairs (or groups of pairs, one label for each), but there "
            f"are {count} for {len(a)} rows."
        )


def squares(rows: np.ndarray) -> np.ndarray:
    return np.square(rows).sum(1)


def _bound(chart: Chart) -> Estimate:
    if chart.certificate is None or not chart.certificate.identified:
        raise InputError(f"The chart '{chart.name}' has no certificate that identifies its latents. Certify it first.")
    return chart.certificate.bound
