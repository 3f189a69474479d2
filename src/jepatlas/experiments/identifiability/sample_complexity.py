"""How many pairs it takes: recovery against the size of the data set, for LeJEPA and for the eigenproblem.

The paper leaves the question open, so there is no claim to hold or to fail: it is measured. Enough is what every seed
recovers with, at that number of pairs and at all larger ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import spearman
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import recipe_for
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, select
from jepatlas.experiments.identifiability.spectral_solver import run_spectral, run_trained
from jepatlas.worlds import LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["EXPERIMENT"]

METHODS = ("LeJEPA", "spectral")
ENOUGH = 0.98

CLAIM = Claim(
    statement="The guarantees speak of the exact optimum over infinitely many pairs; how many are needed is left open.",
    source="When Does LeJEPA Learn a World Model?, limitations",
)


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    pairs: tuple[int, ...]


SCALES = {
    "tiny": Plan(40, 1, (500, 2000)),
    "small": Plan(4000, 3, (300, 1000, 3000, 10_000, 30_000, 100_000)),
    "paper": Plan(20_000, 5, (300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan, both = SCALES[scale], []
    world = LatentWorld(OrnsteinUhlenbeck(dim=2, rho=0.95), Spiral())
    for pairs in plan.pairs:
        for s in range(seed, seed + plan.seeds):
            recipe = replace(recipe_for(scale, world, steps=plan.steps, seed=s), pool=pairs)
            settings = {"recipe": to_plain(recipe), "pairs": pairs}
            both += [
                Trial({"method": method, "pairs": pairs, "seed": s}, run, settings)
                for method, run in zip(METHODS, (run_trained, run_spectral), strict=True)
            ]
    return both


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    pairs = SCALES[scale].pairs
    means = {(m, p): mean_and_range(select(results, method=m, pairs=p), "r2") for m in METHODS for p in pairs}
    growth = {m: _growth(select(results, method=m)) for m in METHODS}
    enough = {m: _enough([means[m, p] for p in pairs], pairs) for m in METHODS}
    return Finding(
        "measured",
        f"Pairs with which every seed has a held-out R² of {ENOUGH} on the spiral: "
        + "; ".join(f"{m} {enough[m]}" for m in METHODS)
        + ". Rank correlation of R² with the number of pairs: "
        + "; ".join(f"{m} {cell(growth[m])}" for m in METHODS)
        + f". With {pairs[0]:,} pairs: "
        + "; ".join(f"{m} {means[m, pairs[0]].value:.3f}" for m in METHODS)
        + f"; with {pairs[-1]:,}: "
        + "; ".join(f"{m} {means[m, pairs[-1]].value:.3f}" for m in METHODS)
        + ".",
        short="pairs: " + ", ".join(f"{m} {enough[m]}" for m in METHODS),
        verdicts=tuple(_verdict(m, growth[m]) for m in METHODS),
        figures=(_figure(means, pairs),),
        tables=(_table(means, pairs),),
    )


def _enough(means: Sequence[Estimate], pairs: Sequence[int]) -> str:
    short = [p for p, mean in zip(pairs, means, strict=True) if not mean.low >= ENOUGH]
    more = [p for p in pairs if not short or p > short[-1]]
    return f"{more[0]:,}" if more else f"> {pairs[-1]:,}"


def _growth(results: Sequence[Result]) -> Estimate:
    """Rank correlation of R² with the number of pairs, over all runs that came to one."""
    scored = [(result.at["pairs"], result.value("r2")) for result in results if np.isfinite(result.value("r2"))]
    return spearman(*np.array(scored).T)


def _verdict(method: str, growth: Estimate) -> Verdict:
    return Verdict.judge(
        f"growth_{method.lower()}",
        growth,
        direction="higher",
        threshold=0.0,
        null=0.0,
        good="Recovery grows with the number of pairs (rank correlation over runs).",
        bad="That recovery grows with the number of pairs is not shown.",
    )


def _figure(means: dict[tuple[str, int], Estimate], pairs: Sequence[int]) -> dict[str, Any]:
    return {
        "kind": "curves",
        "title": "Recovery against data",
        "x_label": "pairs",
        "y_label": "held-out R²",
        "log_x": True,
        "series": [curve(m, pairs, [means[m, p] for p in pairs]) for m in METHODS],
    }


def _table(means: dict[tuple[str, int], Estimate], pairs: Sequence[int]) -> dict[str, Any]:
    rows = [[f"{p:,}", *(cell(means[m, p]) for m in METHODS)] for p in pairs]
    return {"title": "R², mean over seeds [extremes]", "columns": ["pairs", *METHODS], "rows": rows}


EXPERIMENT = Experiment("sample-complexity", "How many pairs it takes", CLAIM, trials, conclude)
