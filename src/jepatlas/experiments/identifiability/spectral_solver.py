"""The same optimum without gradient descent: eigenfunctions of the pairs against LeJEPA, in recovery and CPU time.

Both get a fixed budget, LeJEPA its steps and the eigenproblem its pairs, whatever they reach with it. The benchmark
(`make bench`) asks something else, the time to R² .985 on the spiral, and against the published settings: they take far
longer than the quick ones of `small`, so its ratio is much larger.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, as_verdicts
from jepatlas.experiments.engine.latent_trials import (
    fit_spectral,
    fresh_observations,
    latent_sample,
    r2_of_state,
    recipe_for,
)
from jepatlas.experiments.engine.seed_tables import cell, mean_and_range, select
from jepatlas.recipes import Recipe
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import AnyMixing, Coupling, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["EXPERIMENT", "run_spectral", "run_trained"]

CLOSE = 0.01
MANY = 10.0
QUICK = " (The ratio in the benchmarks is larger: it is against the published settings, not these quick ones.)"

CLAIM = Claim(
    statement="LeJEPA is slow feature analysis with learned features: in low dimension an eigenproblem on fixed "
    "random features finds the same state, at a fraction of the cost.",
    source="When Does LeJEPA Learn a World Model?, the appendix on slow feature analysis; the comparison is ours",
    proven="that both have the same optimum in a Gaussian world",
)


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    pairs: int
    worlds: tuple[tuple[int, str], ...]


SCALES = {
    "tiny": Plan(40, 1, 2000, ((2, "spiral"),)),
    "small": Plan(3000, 3, 40_000, ((2, "spiral"), (2, "coupling"), (4, "coupling"), (8, "coupling"))),
    "paper": Plan(
        20_000, 5, 200_000, ((2, "spiral"), (2, "coupling"), (4, "coupling"), (8, "coupling"), (16, "coupling"))
    ),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan, both = SCALES[scale], []
    for dim, kind in plan.worlds:
        mixing: AnyMixing = Spiral() if kind == "spiral" else Coupling(layers=8 if dim == 2 else 4, seed=1)
        world = LatentWorld(OrnsteinUhlenbeck(dim=dim, rho=0.95), mixing)
        for s in range(seed, seed + plan.seeds):
            settings = {"recipe": to_plain(recipe_for(scale, world, steps=plan.steps, seed=s)), "pairs": plan.pairs}
            where = {"dim": dim, "mixing": kind, "seed": s}
            both += [
                Trial({"method": "LeJEPA"} | where, run_trained, settings),
                Trial({"method": "spectral"} | where, run_spectral, settings),
            ]
    return both


def run_trained(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    before = time.process_time()
    record = train_job(settings["recipe"], folder)
    seconds = time.process_time() - before
    if record["status"] != "finished":
        return record
    recipe, objective = load_objective(Path(folder))
    drawn = latent_sample(recipe, objective, 20_000)
    return record | _scored(drawn.h, drawn.z, seconds, recipe.seed)


def run_spectral(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    del folder
    recipe = from_plain(Recipe, settings["recipe"])
    before = time.process_time()
    encoder = fit_spectral(recipe, settings["pairs"])
    seconds = time.process_time() - before
    x, z = fresh_observations(recipe, 20_000)
    return {"status": "finished"} | _scored(encoder.apply(x), z, seconds, recipe.seed)


def _scored(h: np.ndarray, z: np.ndarray, seconds: float, seed: int) -> dict[str, Any]:
    found = {"r2": r2_of_state(h, z, seed)}
    spent = {"cpu_seconds": Estimate(seconds, seconds, seconds, 1)}
    return {"verdicts": as_verdicts(found, "held-out R²") + as_verdicts(spent, "CPU time", "lower")}


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    plan = SCALES[scale]
    rows = [_compare(results, dim, mixing) for dim, mixing in plan.worlds]
    as_good = [row["spectral"].value >= row["LeJEPA"].value - CLOSE for row in rows]
    quicker = [row["times"].value >= MANY for row in rows]
    good = [a and b for a, b in zip(as_good, quicker, strict=True)]
    times = [row["times"].value for row in rows]
    return Finding(
        "holds" if all(good) else "holds in part" if any(good) else "does not hold",
        f"The eigenproblem is within {CLOSE} of LeJEPA's R², or better, in {sum(as_good)} of {len(rows)} worlds, and "
        f"takes {min(times):.0f} to {max(times):.0f} times less CPU time ({plan.steps} steps of SGD, {plan.pairs:,} "
        f"pairs for the eigenproblem). R² of the one and of the other: "
        + ", ".join(f"{r['dim']}-D {r['mixing']} {r['spectral'].value:.3f} and {r['LeJEPA'].value:.3f}" for r in rows)
        + "."
        + (QUICK if scale == "small" else ""),
        short=f"as good in {sum(as_good)} of {len(rows)} worlds, CPU time ÷ {min(times):.0f}–{max(times):.0f}",
        verdicts=tuple(_verdict(row) for row in rows),
        figures=(_figure(results, plan.worlds),),
        tables=(_table(rows),),
    )


def _compare(results: Sequence[Result], dim: int, mixing: str) -> dict[str, Any]:
    runs = {method: select(results, method=method, dim=dim, mixing=mixing) for method in ("LeJEPA", "spectral")}
    cpu = {method: np.array([run.value("cpu_seconds") for run in found]) for method, found in runs.items()}
    ratios = cpu["LeJEPA"] / cpu["spectral"]
    times = Estimate(float(np.median(ratios)), float(np.min(ratios)), float(np.max(ratios)), len(ratios))
    return {"dim": dim, "mixing": mixing, "times": times} | {
        m: mean_and_range(found, "r2") for m, found in runs.items()
    }


def _verdict(row: dict[str, Any]) -> Verdict:
    return Verdict.judge(
        f"times_less_cpu_{row['dim']}d_{row['mixing']}",
        row["times"],
        direction="higher",
        threshold=MANY,
        good="CPU time of SGD over that of the eigenproblem (limits: the extremes over seeds).",
        bad="CPU time of SGD over that of the eigenproblem (limits: the extremes over seeds) is less than asked for.",
    )


def _figure(results: Sequence[Result], worlds: Sequence[tuple[int, str]]) -> dict[str, Any]:
    """Every run as a point: R² against the CPU time it took."""
    panels = []
    for dim, mixing in worlds:
        runs = {method: select(results, method=method, dim=dim, mixing=mixing) for method in ("LeJEPA", "spectral")}
        panels.append(
            {
                "title": f"{dim}-D {mixing}",
                "series": [
                    {
                        "name": m,
                        "x": [run.value("cpu_seconds") for run in found],
                        "y": [run.value("r2") for run in found],
                        "points": True,
                    }
                    for m, found in runs.items()
                ],
            }
        )
    return {
        "kind": "curves",
        "title": "Recovery against CPU time, every run",
        "x_label": "CPU seconds",
        "y_label": "held-out R²",
        "panels": panels,
    }


def _table(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    shown = [
        [row["dim"], row["mixing"], cell(row["LeJEPA"]), cell(row["spectral"]), cell(row["times"])] for row in rows
    ]
    columns = ["n", "mixing", "R² LeJEPA", "R² spectral", "times less CPU, median"]
    return {"title": "Means over seeds [extremes]", "columns": columns, "rows": shown}


EXPERIMENT = Experiment("spectral-solver", "An eigenproblem in place of gradient descent", CLAIM, trials, conclude)
