"""More latents than states, or fewer: what the extra latents contain, and what too few latents keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.figures import Curve, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import LatentSample, r2_of_state, recipe_for, train_and_measure
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, combined, count_met, outcome_of
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.experiments.engine.seed_tables import curve, mean_and_range, select
from jepatlas.identifiability import dimension_verdicts
from jepatlas.objectives import PairObjective
from jepatlas.recipes import Recipe
from jepatlas.worlds import AnyMixing, Coupling, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["EXPERIMENT", "run"]

LITTLE = 0.05
LEARNED = 0.9  # R² of the state, as a share of m/n, from which an agent with m < n has learned

CLAIM = Claim(
    statement="Latents beyond the state's dimension must collapse or repeat what is there. With fewer latents than "
    "states, nothing decides which subspace is kept, and they may collapse or superpose.",
    source="When Does LeJEPA Learn a World Model?, limitations",
)


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    samples: int
    grid: tuple[tuple[int, int], ...]  # dimensions of the state, of the latents


SCALES = {
    "tiny": Plan(60, 1, 2000, ((2, 1), (2, 3))),
    "small": Plan(3000, 3, 20_000, ((2, 1), (2, 2), (2, 3), (2, 4), (4, 2), (4, 4), (4, 6))),
    "paper": Plan(
        20_000, 5, 100_000, ((2, 1), (2, 2), (2, 3), (2, 4), (4, 2), (4, 4), (4, 6), (8, 4), (8, 8), (8, 12))
    ),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    trials = []
    for n, m in plan.grid:
        for s in range(seed, seed + plan.seeds):
            recipe = to_plain(_recipe(scale, n, m, plan.steps, s))
            trials.append(Trial({"n": n, "m": m, "seed": s}, run, {"recipe": recipe, "samples": plan.samples}))
    return trials


def _recipe(scale: Scale, n: int, m: int, steps: int, seed: int) -> Recipe:
    mixing: AnyMixing = Spiral() if n == 2 else Coupling(layers=2, seed=1)
    world = LatentWorld(OrnsteinUhlenbeck(dim=n, rho=0.95), mixing)
    return replace(recipe_for(scale, world, steps=steps, seed=seed), latent_dim=m)


def run(settings: Plain, folder: str) -> Plain:
    return train_and_measure(settings["recipe"], folder, settings["samples"], _measure)


def _measure(recipe: Recipe, objective: PairObjective, drawn: LatentSample) -> list[Plain]:
    del objective
    found = dimension_verdicts(drawn.h, drawn.h_next, drawn.z, seed=recipe.seed, replicates=200)
    whole = {"r2": r2_of_state(drawn.h, drawn.z, recipe.seed)}
    return as_verdicts(whole, "held-out R²") + [verdict.to_json() for verdict in found]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Two parts: wide latents are redundant, in all runs; narrow ones may collapse or superpose, so in some run.

    An agent with m < n that learned nothing superposes nothing, so only agents that learned, or collapsed, count. If
    none of them superposed or collapsed, the second part is undecided: the claim does not say how often they do.
    """
    grid = SCALES[scale].grid
    wide = [result for result in results if result.at["m"] > result.at["n"]]
    narrow = [result for result in results if result.at["m"] < result.at["n"]]
    redundant = [result.value("state_directions") == result.at["n"] for result in wide]
    spared = [result for result in wide if result.estimate("minimal_r2_lost").high <= LITTLE]
    learned = [result for result in narrow if result.value("r2") >= LEARNED * result.at["m"] / result.at["n"]]
    superposed = [result for result in learned if result.estimate("superposition").low > 0]
    collapsed = [result for result in narrow if result.status == "failed"]
    lost = len(superposed) + len(collapsed)
    counted = len(learned) + len(collapsed)
    criteria = (
        Criterion.for_all("m > n: latents are functions of n directions", redundant),
        Criterion(
            f"m < n: superposed or collapsed, of {counted} agents that learned or collapsed",
            f"{lost} ({len(narrow) - counted} others did not learn)",
            "at least one, else undecided",
            lost > 0,
        ),
    )
    return Finding(
        combined([outcome_of(redundant), "holds" if lost else "undecided"]),
        f"Extra latents are redundant in {count_met(redundant)} runs; of {len(learned)} agents with too few latents "
        f"that learned, {len(superposed)} superpose.",
        criteria=criteria,
        verdicts=_verdicts(learned, wide),
        figures=(_figure(grid, results),),
        tables=(_table(results), _count_table(results, wide, spared)),
    )


def _verdicts(narrow: Sequence[Result], wide: Sequence[Result]) -> tuple[Verdict, ...]:
    return (
        Verdict.judge(
            "superposition",
            _median_and_range(narrow, "superposition"),
            direction="lower",
            null=0.0,
            good="State directions beyond m, for agents with m < n that learned (limits: range over runs).",
        ),
        Verdict.judge(
            "minimal_r2_lost",
            _median_and_range(wide, "minimal_r2_lost"),
            direction="lower",
            threshold=LITTLE,
            good="The minimal subspace contains all that the latents contain of the state (limits: range over runs).",
            bad="In some run the minimal subspace lacks a part of the state (limits: range over runs).",
        ),
    )


def _median_and_range(results: Sequence[Result], name: str) -> Estimate:
    values = np.array([result.value(name) for result in results])
    values = values[np.isfinite(values)]
    if not len(values):
        return Estimate.undefined(0)
    return Estimate(float(np.median(values)), float(values.min()), float(values.max()), len(values))


def _figure(grid: Sequence[tuple[int, int]], results: Sequence[Result]) -> Curves:
    series = []
    for n in dict.fromkeys(n for n, _ in grid):
        widths = [m for state, m in grid if state == n]
        means = [mean_and_range(select(results, n=n, m=m), "r2", stopped=0.0) for m in widths]
        series.append(curve(f"n = {n}", widths, means))
        series.append(Curve(f"m/n, n = {n}", widths, [min(1.0, m / n) for m in widths], dash=True))
    return Curves(
        title="Recovery against the number of latents",
        x_label="latents m",
        y_label="held-out R² of the state",
        series=series,
    )


def _count_table(results: Sequence[Result], wide: Sequence[Result], spared: Sequence[Result]) -> Table:
    collapsed = sum(result.status == "failed" for result in results)
    rows = [
        [f"m > n: the minimal subspace costs at most {LITTLE} of R²", f"{len(spared)} of {len(wide)}"],
        ["all runs: collapsed", f"{collapsed} of {len(results)}"],
    ]
    return Table("Counts of runs", ["condition", "runs"], rows)


def _table(results: Sequence[Result]) -> Table:
    measured = {
        "directions found": lambda result: f"{result.value('state_directions'):.0f}",
        "R²": "r2",
        "captured, least direction": "captured",
        "superposition": "superposition",
        "lost in the minimal subspace": "minimal_r2_lost",
    }
    return run_table("All runs", results, {"n": "n", "m": "m", "seed": "seed"}, measured)


EXPERIMENT = Experiment("dimension", "More latents than states, or fewer", CLAIM, trials, conclude)
