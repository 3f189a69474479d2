"""Reacher from pixels: recovery against the correlation of a pair's angles, set by ρ or by a stride of k steps (ρᵏ).

Theory depends on that correlation only, so a stride must have the effect of a lower ρ: recovery with strides is
compared with the curve over ρ, at ρᵏ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.core.figures import Curve, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import spearman
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, outcome_of_criteria
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, select
from jepatlas.experiments.reacher.reacher_encoders import probed_trial, reacher_recipe
from jepatlas.worlds import OrnsteinUhlenbeckMotion

__all__ = ["EXPERIMENT", "PUBLISHED", "R2"]

PUBLISHED = {0.3: 0.67, 0.5: 0.86, 0.7: 0.93, 0.8: 0.94, 0.9: 0.95, 0.95: 0.95, 0.99: 0.95}
STRIDED = 0.95
STRIDES = (2, 4, 8)  # a stride of 1 is on the curve itself
LENGTH = 16  # short episodes: at ρ = .99 a long one contains few poses
LESS = 0.03
NEAR = 0.05
R2 = "angles_gaussian_gaussian"
SCALES = {
    "tiny": (1, (0.3, 0.95), (4,)),
    "small": (3, tuple(PUBLISHED), STRIDES),
    "paper": (5, tuple(PUBLISHED), STRIDES),
}
"""Seeds, ρ, and strides."""

CLAIM = Claim(
    statement="Recovery from pixels is lost at a low correlation of the pairs, grows with it, and is the same whether "
    "the correlation is set by ρ or by a stride.",
    source="When Does LeJEPA Learn a World Model?, Reacher over ρ; the stride is our reading: ρᵏ is all that matters",
    measured="R² .67 .86 .93 .94 .95 .95 .95 at ρ = .3 .5 .7 .8 .9 .95 .99; nothing over strides",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    seeds, rhos, strides = SCALES[scale]
    places = [(rho, 1) for rho in rhos] + [(STRIDED, stride) for stride in strides]
    return [_trial(scale, s, rho, stride) for rho, stride in places for s in range(seed, seed + seeds)]


def _trial(scale: Scale, seed: int, rho: float, stride: int) -> Trial:
    motion = OrnsteinUhlenbeckMotion(rho=rho)
    recipe = reacher_recipe(scale, seed, motion, length=LENGTH, stride=stride)
    return probed_trial(scale, recipe, rho=rho, stride=stride)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Runs that were stopped count as R² = 0."""
    _, rhos, strides = SCALES[scale]
    found = {rho: _mean(results, rho, 1) for rho in rhos}
    strided = {stride: _mean(results, STRIDED, stride) for stride in strides}
    growth = _growth(select(results, stride=1))
    gaps = {stride: _gap(found, stride, strided[stride]) for stride in strides}
    shortfall = {rho: PUBLISHED[rho] - found[rho].value for rho in rhos}
    largest = max(shortfall.values())
    listed = ", ".join(f"{gap.value:+z.3f}" for gap in gaps.values())
    criteria = (
        Criterion(
            "published R² − R², largest", f"{largest:.3f}", f"≤ {LESS}", all(gap <= LESS for gap in shortfall.values())
        ),
        Criterion("rank correlation of R² with ρ", cell(growth), "> 0", growth.low > 0),
        Criterion(
            f"R² with strides {', '.join(map(str, strides))} minus the curve over ρ",
            listed,
            f"within ±{NEAR}",
            all(abs(gap.value) <= NEAR for gap in gaps.values()),
        ),
    )
    best = max(estimate.value for estimate in found.values())
    return Finding(
        outcome_of_criteria(criteria),
        f"R² is {found[rhos[0]].value:.2f} at ρ = {rhos[0]:g} and {best:.2f} at best.",
        criteria=criteria,
        verdicts=(
            _shortfall_verdict(shortfall),
            _growth_verdict(growth),
            *(_stride_verdict(stride, gap) for stride, gap in gaps.items()),
        ),
        figures=(_figure(found, strided),),
        tables=(_table(results),),
    )


def _mean(results: Sequence[Result], rho: float, stride: int) -> Estimate:
    return mean_and_range(select(results, rho=rho, stride=stride), R2, stopped=0.0)


def _growth(results: Sequence[Result]) -> Estimate:
    """Rank correlation with ρ; undefined for fewer than two finite runs."""
    scored = [(r.at["rho"], 0.0 if r.status == "failed" else r.value(R2)) for r in results]
    kept = np.array([pair for pair in scored if np.isfinite(pair[1])])
    return spearman(*kept.T) if len(kept) > 1 else Estimate.undefined(len(kept))


def _gap(found: dict[float, Estimate], stride: int, strided: Estimate) -> Estimate:
    """Distance from the curve over ρ, interpolated linearly; limits: range over seeds."""
    there = float(np.interp(STRIDED**stride, list(found), [e.value for e in found.values()]))
    return Estimate(strided.value - there, strided.low - there, strided.high - there, strided.n)


def _shortfall_verdict(shortfall: dict[float, float]) -> Verdict:
    values = list(shortfall.values())
    return Verdict.judge(
        "below_published",
        Estimate(max(values), min(values), max(values), len(values)),
        direction="lower",
        threshold=LESS,
        good="R² is not below the published one at any ρ (largest shortfall; limits: range over ρ).",
        bad="R² is below the published one at some ρ (largest shortfall; limits: range over ρ).",
    )


def _growth_verdict(growth: Estimate) -> Verdict:
    return Verdict.judge(
        "growth_with_rho",
        growth,
        direction="higher",
        threshold=0.0,
        null=0.0,
        good="Recovery grows with ρ (rank correlation over runs).",
        bad="Recovery does not demonstrably grow with ρ (rank correlation over runs).",
    )


def _stride_verdict(stride: int, gap: Estimate) -> Verdict:
    size = np.abs([gap.low, gap.high, gap.value])
    low = 0.0 if gap.low <= 0 <= gap.high else float(size.min())
    return Verdict.judge(
        f"stride_{stride}_from_the_curve",
        Estimate(float(size[2]), low, float(size.max()), gap.n),
        direction="lower",
        threshold=NEAR,
        good=f"A stride of {stride} has the effect of a lower ρ (limits: range over seeds).",
        bad=f"A stride of {stride} does not have the effect of a lower ρ at every seed (limits: range over seeds).",
    )


def _figure(found: dict[float, Estimate], strided: dict[int, Estimate]) -> Curves:
    places = [STRIDED**stride for stride in strided]
    return Curves(
        title="Recovery against the correlation of a pair",
        x_label="correlation",
        y_label="held-out R², Gaussian poses",
        series=[
            curve("ρ, stride 1", list(found), list(found.values())),
            curve(f"strides at ρ = {STRIDED}", places, list(strided.values()), points=True),
            Curve("published", list(found), [PUBLISHED[rho] for rho in found], dash=True),
        ],
        note="Bands: range over seeds.",
    )


def _table(results: Sequence[Result]) -> Table:
    places = {
        "ρ": "rho",
        "stride": "stride",
        "correlation": lambda result: f"{result.at['rho'] ** result.at['stride']:.3f}",
        "seed": "seed",
    }
    measured = {
        "R², Gaussian poses": R2,
        "R², held-out episodes": "angles_own_own",
        "R², untrained": f"untrained_{R2}",
        "linear share of variance": "degree_1",
    }
    return run_table("All runs, with 95% intervals", results, places, measured)


EXPERIMENT = Experiment("reacher-rates", "Reacher from pixels: correlation and stride", CLAIM, trials, conclude)
