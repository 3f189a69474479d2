"""The weight λ of SIGReg against the correlation ρ of the pairs, on the spiral.

No run is stopped for collapse: R² does not depend on the scale of the latents, and early collapse may recover. As in
the study both views descend from one anchor, so their correlation is ρ². The weight λ multiplies a statistic that grows
with the batch, so values of λ are comparable at one batch size only (256).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.figures import Heatmap, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import spearman
from jepatlas.data import Siblings
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import certified_trial, recipe_for
from jepatlas.experiments.engine.rules import Criterion, outcome_of_criteria
from jepatlas.experiments.engine.seed_tables import cell, mean_and_range, select, span
from jepatlas.worlds import LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["EXPERIMENT"]

RHOS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
PUBLISHED = {
    1e-3: (0.866, 0.938, 0.968, 0.975, 0.981, 0.985, 0.993),
    5e-3: (0.847, 0.930, 0.970, 0.981, 0.989, 0.993, 0.996),
    1e-2: (0.913, 0.960, 0.981, 0.987, 0.993, 0.995, 0.993),
    5e-2: (0.301, 0.955, 0.984, 0.989, 0.992, 0.984, 0.493),
}
TOO_SMALL = 1e-4  # published: R² at most .106 at every ρ
GOOD = 0.95
LOST = 0.5
AGREEMENT = 0.5

CLAIM = Claim(
    statement="Recovery holds over a wide range of λ and grows with ρ; it is lost if λ is too small.",
    source="When Does LeJEPA Learn a World Model?, the λ × ρ grid",
    measured="R² .968 to .996 for ρ ≥ .7 and λ from 1e-3 to 1e-2; at most .106 for λ ≤ 1e-4; .301 and .493 at the ends "
    "of λ = 5e-2",
)


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    rhos: tuple[float, ...]
    weights: tuple[float, ...]


SCALES = {
    "tiny": Plan(40, 1, (0.5, 0.95), (TOO_SMALL, 1e-2)),
    "small": Plan(2000, 3, (0.5, 0.8, 0.95, 0.99), (TOO_SMALL, 1e-3, 1e-2, 5e-2)),
    "paper": Plan(20_000, 3, RHOS, (TOO_SMALL, *PUBLISHED)),
}

Grid = dict[tuple[float, float], Estimate]  # mean R² by (λ, ρ)


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    seeds = range(seed, seed + plan.seeds)
    return [_trial(scale, plan.steps, rho, weight, s) for weight in plan.weights for rho in plan.rhos for s in seeds]


def _trial(scale: Scale, steps: int, rho: float, weight: float, seed: int) -> Trial:
    world = LatentWorld(OrnsteinUhlenbeck(dim=2, rho=rho), Spiral())
    recipe = recipe_for(scale, world, steps=steps, seed=seed, weight=weight)
    training = replace(recipe.training, collapse=0.0)
    return certified_trial(replace(recipe, pairs=Siblings(), training=training), rho=rho, weight=weight)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Runs that were stopped count as R² = 0."""
    plan = SCALES[scale]
    grid: Grid = {}
    for weight in plan.weights:
        for rho in plan.rhos:
            grid[weight, rho] = mean_and_range(select(results, weight=weight, rho=rho), "r2", stopped=0.0)
    within = [weight for weight in plan.weights if TOO_SMALL < weight <= 1e-2]
    kept = [grid[weight, rho].value for weight, rho in grid if weight in within and rho >= 0.8]
    lost = [grid[weight, rho].value for weight, rho in grid if weight == TOO_SMALL]
    growth = {weight: _growth(select(results, weight=weight)) for weight in within}
    agreement = _agreement(grid)
    listed = "; ".join(f"λ = {weight:g}: {cell(found)}" for weight, found in growth.items())
    criteria = (
        Criterion("R² for ρ ≥ .8, λ 1e-3 to 1e-2", span(kept), f"≥ {GOOD}", min(kept) >= GOOD),
        Criterion("R² for λ = 1e-4", span(lost), f"≤ {LOST}", max(lost) <= LOST),
        Criterion("rank correlation with published", cell(agreement), f"≥ {AGREEMENT}", agreement.low >= AGREEMENT),
        Criterion("rank correlation of R² with ρ", listed, "> 0", all(found.low > 0 for found in growth.values())),
    )
    return Finding(
        outcome_of_criteria(criteria),
        f"R² is {span(kept)} for ρ ≥ .8 and λ from 1e-3 to 1e-2.",
        criteria=criteria,
        verdicts=(_agreement_verdict(agreement), *(_growth_verdict(w, found) for w, found in growth.items())),
        figures=(_figure(plan, grid),),
        tables=(_table(plan, grid),),
    )


def _growth(results: Sequence[Result]) -> Estimate:
    """Rank correlation of R² with ρ, over runs."""
    scores = [0.0 if result.status != "finished" else result.value("r2") for result in results]
    return spearman(np.array([result.at["rho"] for result in results]), np.array(scores))


def _agreement(grid: Grid) -> Estimate:
    """Rank correlation with the published cells."""
    shared = [(weight, rho) for weight, rho in grid if weight in PUBLISHED]
    ours = np.array([grid[place].value for place in shared])
    theirs = np.array([PUBLISHED[weight][RHOS.index(rho)] for weight, rho in shared])
    return spearman(ours, theirs)


def _agreement_verdict(agreement: Estimate) -> Verdict:
    return Verdict.judge(
        "agreement",
        agreement,
        direction="higher",
        threshold=AGREEMENT,
        null=0.0,
        good="The cells rank as in the published grid.",
        bad="The cells do not rank as in the published grid.",
    )


def _growth_verdict(weight: float, growth: Estimate) -> Verdict:
    return Verdict.judge(
        f"growth_with_rho_{weight:g}",
        growth,
        direction="higher",
        threshold=0.0,
        null=0.0,
        good=f"At λ = {weight:g} recovery grows with ρ (rank correlation over runs).",
        bad=f"At λ = {weight:g} recovery does not demonstrably grow with ρ (rank correlation over runs).",
    )


def _figure(plan: Plan, grid: Grid) -> Heatmap:
    return Heatmap(
        title="Held-out R², mean over seeds",
        matrix=[[grid[weight, rho].value for rho in plan.rhos] for weight in plan.weights],
        x_label="ρ",
        x=[f"{rho:g}" for rho in plan.rhos],
        y_label="λ",
        y=[f"{weight:g}" for weight in plan.weights],
    )


def _table(plan: Plan, grid: Grid) -> Table:
    rows = []
    for weight in plan.weights:
        for rho in plan.rhos:
            published = PUBLISHED[weight][RHOS.index(rho)] if weight in PUBLISHED else "≤ .106"
            found = grid[weight, rho]
            rows.append([f"{weight:g}", f"{rho:g}", cell(found), found.n, published])
    return Table("All cells", ["λ", "ρ", "R², mean over seeds [range]", "runs", "published"], rows)


EXPERIMENT = Experiment("lambda-rho", "The weight of SIGReg against the correlation of pairs", CLAIM, trials, conclude)
