"""Checks of an alignment: whether its R² comes from few directions, and whether coordinates are warped."""

from __future__ import annotations

import numpy as np

from jepatlas.alignment import Evidence, PairedLatents, half_sample_intervals
from jepatlas.alignment.directions import TargetDirections
from jepatlas.core.figures import Curve, Curves
from jepatlas.core.linear import procrustes, r2, subsample, whitener
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.warps.monotone import Monotone
from jepatlas.identifiability.warps.warp import fit_warp
from jepatlas.workflows.align.align_robust import MOST_PAIRS, Finding, r2_interval
from jepatlas.workflows.align.align_study import Study
from jepatlas.workflows.align.refitted_nulls import Fit

__all__ = ["directions_figure", "directions_found", "warp_hint"]

MOSTLY = 0.5
"""Unweighted R², relative to R², from which R² describes most directions."""
NEARLY_LINEAR = 0.95
"""R² from which no warp is fitted."""
NEARLY_WARPED = 0.7
"""R² after the warp is undone, below which it explains little."""
BETTER = 0.1
"""R² that a warp must add."""
WARPED_NUMBERS = 300_000
"""Largest number of rows times width that a warp is fitted to."""
WARPED_COORDINATES = 64
WARP_ROUNDS = 5
SCREENED = 0.02
"""R² that the curve must add to a rotation, if it is fitted to all coordinates."""


# --- directions ---


def directions_found(found: TargetDirections, pairs: PairedLatents, study: Study, evidence: Evidence) -> Finding:
    """Warn if R² comes from about one direction; report effective ranks and the unweighted R²."""
    rows = study.scored
    unweighted = half_sample_intervals(
        found.unweighted,
        len(rows),
        numpy_generator(study.seed, "unweighted"),
        groups=None if study.groups is None else study.groups[rows],
        replicates=study.replicates,
    )["r2_unweighted"]
    d_a, d_b = pairs.a.h.shape[1], pairs.b.h.shape[1]
    few = (
        bool(evidence.passed)
        and found.predicted < _fewest_directions(min(d_a, d_b))
        and unweighted.value < MOSTLY * evidence.estimate.value
    )
    ranks = {"rank_a": (found.source_rank, d_a), "rank_b": (found.target_rank, d_b)}
    names = {"rank_a": pairs.a.name, "rank_b": pairs.b.name}
    verdicts = [
        Verdict.judge(
            "r2_unweighted",
            unweighted,
            direction="higher",
            good="Mean of R² over the principal directions of the target, each counted alike. R² itself weights them "
            "by their variance.",
        ),
        Verdict.judge(
            "predicted_directions",
            Estimate.exact(found.predicted, len(rows)),
            direction="higher",
            threshold=_fewest_directions(min(d_a, d_b)) if few else None,
            good=f"Effective number of target directions that the map predicts, of {d_b}.",
            bad=f"R² comes from about {found.predicted:.1f} of {d_b} target directions. If the latents have collapsed, "
            "train again; otherwise remove what is shared and known (--within), and align the rest.",
        ),
        *(
            Verdict.judge(
                name,
                Estimate.exact(rank, len(rows)),
                direction="higher",
                good=f"Effective rank of {names[name]}: exponential of the entropy of its variances, at most {width}.",
            )
            for name, (rank, width) in ranks.items()
        ),
    ]
    a, b = pairs.a.name, pairs.b.name
    warning = (
        f"Warning: R² {evidence.estimate.value:.3f} comes from about {found.predicted:.1f} of {d_b} directions "
        f"(effective ranks: {a} {found.source_rank:.1f}, {b} {found.target_rank:.1f}); unweighted, R² is "
        f"{unweighted.value:z.3f}."
    )
    return Finding(warning if few else "", tuple(verdicts))


def _fewest_directions(width: int) -> float:
    """1.5 directions; fewer if the latents have fewer than 4.

    >>> [_fewest_directions(width) for width in (1, 4, 100)]
    [1.0, 1.5, 1.5]
    """
    return min(1.5, 1 + (width - 1) / 6)


def directions_figure(found: TargetDirections) -> Curves:
    total, _ = found.totals()
    count = list(range(1, len(total) + 1))
    shares = total / total.sum() if total.sum() > 0 else total
    return Curves(
        title="R² by direction of the target",
        note="Principal directions of the target, largest variance first; held-out rows.",
        series=[
            Curve("R²", count, np.nan_to_num(np.maximum(found.r2, 0)).tolist(), points=len(count) <= 32),
            Curve("share of the variance", count, shares.tolist(), dash=True),
        ],
        x_label="direction",
        y_label="R² (below 0 as 0), share",
    )


# --- warps ---


def warp_hint(pairs: PairedLatents, fit: Fit, study: Study, straight: LinearMap, evidence: Evidence) -> Finding:
    """Whether one monotone curve of all coordinates of a side makes the relation linear, with the held-out R².

    The curve must predict more than the map without it, also where the curve of the target is applied to both: a curve
    that compresses heavy tails would otherwise look like a warp.
    """
    linear = evidence.estimate.value
    if not linear < NEARLY_LINEAR:
        return Finding()
    rows, held = subsample(study.split.fit, MOST_PAIRS), study.scored
    groups = None if study.groups is None else study.groups[rows]
    a, b = pairs.a.h, pairs.b.h
    best: tuple[float, str, np.ndarray, np.ndarray] | None = None
    for side, other in ((pairs.a, b), (pairs.b, a)):
        warp = _warp(other, side.h, rows, held)
        if warp is None:
            continue
        fit_a, held_a = (warp(a[part]) if side is pairs.a else a[part] for part in (rows, held))
        fit_b, held_b = (warp(b[part]) if side is pairs.b else b[part] for part in (rows, held))
        predicted = fit(fit_a, fit_b, groups).map_.apply(held_a)
        value = r2(held_b, predicted)
        least = linear
        if side is pairs.b:
            least = max(linear, r2(held_b, warp(straight.apply(a[held]))))
        if value >= max(least + BETTER, NEARLY_WARPED) and (best is None or value > best[0]):
            best = value, side.name, held_b, predicted
    if best is None:
        return Finding()
    value, name, truth, predicted = best
    held_groups = None if study.groups is None else study.groups[held]
    return Finding(
        f"Hint: {name} looks warped. With one monotone curve undone in all of its coordinates, the held-out R² is "
        f"{value:.3f}.",
        (
            Verdict.judge(
                "r2_unwarped",
                r2_interval(truth, predicted, study, "unwarped", held_groups),
                direction="higher",
                good=f"R² after one monotone curve is undone in all coordinates of {name}, if that adds {BETTER} or "
                "more to the linear R².",
            ),
        ),
    )


def _warp(fixed: np.ndarray, bent: np.ndarray, rows: np.ndarray, held: np.ndarray) -> Monotone | None:
    """The curve with fixed ≈ Q w(bent), if a rotation then fits better on held-out rows than one of a straight line."""
    bent = bent[:, subsample(np.arange(bent.shape[1]), WARPED_COORDINATES)]
    width = max(fixed.shape[1], bent.shape[1])
    rows = subsample(rows, max(WARPED_NUMBERS // width, 1))
    if len(rows) < 2 * width or np.ptp(bent[rows]) == 0:
        return None
    white = whitener(fixed[rows])
    fixed, held_out = white.apply(fixed[rows]), white.apply(fixed[held])
    found = fit_warp(fixed, bent[rows], rounds=WARP_ROUNDS)
    straight = procrustes(bent[rows], fixed, scaled=True)
    gain = r2(held_out, found.encode(bent[held])) - r2(held_out, straight.apply(bent[held]))
    return found.warp if gain > SCREENED * min(1.0, bent.shape[1] / fixed.shape[1]) else None
