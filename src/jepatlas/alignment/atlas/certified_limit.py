"""What the certificates of two charts promise about the map between them, beside what is measured.

    h₁ = Q₁z + e₁,  h₂ = Q₂z + e₂,  E‖eᵢ‖² ≤ Bᵢ     ⇒     min_W E‖h₂ − W h₁‖² ≤ (√B₁ + √B₂)²,   at W = Q₂Q₁ᵀ, orthogonal

Means are removed first, as the bounds presume.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jepatlas.alignment.atlas.atlas import Atlas
from jepatlas.alignment.atlas.charts import Chart
from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear import procrustes
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap

__all__ = [
    "certified_transition",
    "check_certified_pairs",
    "limit_verdicts",
    "mean_squares",
    "predicted_limit",
    "squares",
]


def predicted_limit(first: Estimate, second: Estimate) -> Estimate:
    """(√B₁ + √B₂)², with the interval that those of the bounds give.

    >>> limit = predicted_limit(Estimate(0.04, 0.01, 0.09, 500), Estimate(0.01, 0.01, 0.01, 800))
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
    """Prediction beside measurement for the atlas' own map, on latents of held-out states: (chart, (N, d)) each.

    The error is that of S₂(h₂) from S₁(h₁), in the standardised coordinates in which the atlas' maps are orthogonal.
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
    """Of the estimates `error`, and `fitted`: that of the rotation fitted to the very pairs it is measured on.

    The theorem speaks of the best rotation, so it is refuted only where even that one misses.
    """
    error = Verdict.judge(
        "certified.error",
        found["error"],
        direction="lower",
        threshold=limit.high,
        null=null,
        good="Measured E‖h₂ − Wh₁‖² of an orthogonal W: within what the charts' certificates promise.",
        bad="Measured E‖h₂ − Wh₁‖²: no rotation keeps to what the certificates promise. One of them does not hold for "
        "these states, or the two charts do not show the same state.",
    )
    if error.passed is False and not found["fitted"].low > limit.high:
        advice = (
            "Undecided: this W is not within the promise, but pairs are too few, or the limit too close, to say "
            "that no rotation is. Give more pairs."
        )
        error = replace(error, passed=None, advice=advice)
    promise = "Predicted from the two bounds alone: (√B₁ + √B₂)² limits E‖h₂ − Wh₁‖² of the best orthogonal W."
    return [Verdict.judge("certified.limit", limit, direction="lower", null=null, good=promise), error]


def mean_squares(
    rows: Mapping[str, np.ndarray], rng: np.random.Generator, groups: np.ndarray | None, replicates: int
) -> dict[str, Estimate]:
    """The mean of each column of errors, with its interval."""
    stacked = np.stack(list(rows.values()), axis=1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return dict(zip(rows, weights @ stacked / weights.sum(), strict=True))

    return bootstrap(statistic, len(stacked), rng, groups=groups, replicates=replicates)


def check_certified_pairs(a: np.ndarray, b: np.ndarray, groups: np.ndarray | None) -> None:
    """Refuse pairs that two certified charts cannot give."""
    for name, latents in (("a", a), ("b", b)):
        check_finite(name, latents)
    if a.ndim != 2 or a.shape != b.shape:
        raise InputError(
            f"Certified charts are rotations of one state, so both sides have the same shape (N, d), but "
            f"they have {a.shape} and {b.shape}."
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
        raise InputError(
            f"The chart '{chart.name}' carries no certificate that its latents are a rotation of the "
            "state, so no limit follows. Certify it first."
        )
    return chart.certificate.bound
