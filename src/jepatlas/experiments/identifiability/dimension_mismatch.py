"""More latents than states, or fewer: what the extra ones hold, and what too few of them keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, as_verdicts
from jepatlas.experiments.engine.latent_trials import LatentSample, r2_of_state, recipe_for, train_and_measure
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, select
from jepatlas.identifiability import dimension_verdicts
from jepatlas.objectives import PairObjective
from jepatlas.recipes import Recipe
from jepatlas.worlds import AnyMixing, Coupling, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["EXPERIMENT", "run"]

LITTLE = 0.05

CLAIM = Claim(
    statement="Latents beyond the state's dimension must collapse or repeat what is there; with fewer latents than "
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
    return [
        Trial(
            {"n": n, "m": m, "seed": s},
            run,
            {"recipe": to_plain(_recipe(scale, n, m, plan.steps, s)), "samples": plan.samples},
        )
        for n, m in plan.grid
        for s in range(seed, seed + plan.seeds)
    ]


def _recipe(scale: Scale, n: int, m: int, steps: int, seed: int) -> Recipe:
    mixing: AnyMixing = Spiral() if n == 2 else Coupling(layers=2, seed=1)
    world = LatentWorld(OrnsteinUhlenbeck(dim=n, rho=0.95), mixing)
    return replace(recipe_for(scale, world, steps=steps, seed=seed), latent_dim=m)


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    return train_and_measure(settings["recipe"], folder, settings["samples"], _measured)


def _measured(recipe: Recipe, objective: PairObjective, drawn: LatentSample) -> list[dict[str, Any]]:
    del objective
    found = dimension_verdicts(drawn.h, drawn.h_next, drawn.z, seed=recipe.seed, replicates=200)
    whole = {"r2": r2_of_state(drawn.h, drawn.z, recipe.seed)}
    return as_verdicts(whole, "held-out R²") + [verdict.to_json() for verdict in found]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    grid = SCALES[scale].grid
    wide = [result for result in results if result.at["m"] > result.at["n"]]
    narrow = [result for result in results if result.at["m"] < result.at["n"]]
    redundant = [result for result in wide if result.value("state_directions") == result.at["n"]]
    spared = [result for result in wide if result.estimate("minimal_r2_lost").high <= LITTLE]
    superposed = [result for result in narrow if result.estimate("superposition").low > 0]
    collapsed = [result for result in results if result.status == "failed"]
    kept = {place: mean_and_range(select(results, n=place[0], m=place[1]), "r2", stopped=0.0) for place in grid}
    good = [len(redundant) == len(wide), len(superposed) + sum(r in narrow for r in collapsed) > 0]
    return Finding(
        "holds" if all(good) else "holds in part" if any(good) or redundant else "does not hold",
        f"m > n: in {len(redundant)} of {len(wide)} runs all latents are found to be functions of n directions, and "
        f"in {len(spared)} the minimal subspace costs at most {LITTLE} of R². m < n: {len(superposed)} of "
        f"{len(narrow)} runs hold more than m directions of the state (superposition). {len(collapsed)} of "
        f"{len(results)} runs collapsed.",
        short=f"redundant {len(redundant)} of {len(wide)}, superposed {len(superposed)} of {len(narrow)}",
        verdicts=_verdicts(narrow, wide),
        figures=(_figure(grid, kept),),
        tables=(_table(results),),
    )


def _verdicts(narrow: Sequence[Result], wide: Sequence[Result]) -> tuple[Verdict, ...]:
    return (
        Verdict.judge(
            "superposition",
            _extremes(narrow, "superposition"),
            direction="lower",
            null=0.0,
            good="Directions held beyond the number of latents, m < n (limits: the extremes over runs).",
        ),
        Verdict.judge(
            "minimal_r2_lost",
            _extremes(wide, "minimal_r2_lost"),
            direction="lower",
            threshold=LITTLE,
            good="The minimal subspace has what the state has in the latents (limits: extremes over runs).",
            bad="In some run the minimal subspace lacks part of the state (limits: extremes over runs).",
        ),
    )


def _extremes(results: Sequence[Result], name: str) -> Estimate:
    values = np.array([result.value(name) for result in results])
    values = values[np.isfinite(values)]
    if not len(values):
        return Estimate(np.nan, np.nan, np.nan, 0)
    return Estimate(float(np.median(values)), float(values.min()), float(values.max()), len(values))


def _figure(grid: Sequence[tuple[int, int]], kept: dict[tuple[int, int], Estimate]) -> dict[str, Any]:
    series = []
    for n in dict.fromkeys(n for n, _ in grid):
        widths = [m for state, m in grid if state == n]
        series.append(curve(f"n = {n}", widths, [kept[n, m] for m in widths]))
        series.append({"name": f"m/n, n = {n}", "x": widths, "y": [min(1.0, m / n) for m in widths], "dash": True})
    return {
        "kind": "curves",
        "title": "Recovery against the number of latents",
        "x_label": "latents m",
        "y_label": "held-out R² of the state",
        "series": series,
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    names = {
        "R²": "r2",
        "captured, least direction": "captured",
        "superposition": "superposition",
        "lost in the minimal subspace": "minimal_r2_lost",
    }
    rows = [
        [
            r.at["n"],
            r.at["m"],
            r.at["seed"],
            r.status,
            f"{r.value('state_directions'):.0f}",
            *(cell(r.estimate(name)) for name in names.values()),
        ]
        for r in results
    ]
    columns = ["n", "m", "seed", "status", "directions found", *names]
    return {"title": "All runs", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("dimension", "More latents than states, or fewer", CLAIM, trials, conclude)
