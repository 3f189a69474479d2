"""Recovery against the number of pairs, for LeJEPA and for the eigenproblem.

The paper leaves the question open, so it is measured and there is no claim to judge. A number of pairs is sufficient if
every seed recovers the state with it and with all larger numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.figures import Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import spearman
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import recipe_for
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, select
from jepatlas.experiments.identifiability.spectral_solver import run_spectral, run_trained
from jepatlas.worlds import LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["EXPERIMENT"]

METHODS = {"LeJEPA": run_trained, "spectral": run_spectral}
ENOUGH = 0.98

CLAIM = Claim(
    statement="The guarantees are for the exact optimum over infinitely many pairs; how many are needed is left open.",
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

Means = dict[str, list[Estimate]]  # for each method, R² by number of pairs


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    trials = []
    world = LatentWorld(OrnsteinUhlenbeck(dim=2, rho=0.95), Spiral())
    for pairs in plan.pairs:
        for s in range(seed, seed + plan.seeds):
            recipe = replace(recipe_for(scale, world, steps=plan.steps, seed=s), pool=pairs)
            settings = {"recipe": to_plain(recipe), "pairs": pairs}
            for method, run in METHODS.items():
                trials.append(Trial({"method": method, "pairs": pairs, "seed": s}, run, settings))
    return trials


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    pairs = SCALES[scale].pairs
    means: Means = {}
    for method in METHODS:
        means[method] = [mean_and_range(select(results, method=method, pairs=p), "r2") for p in pairs]
    enough = ", ".join(f"{method} {_sufficient(means[method], pairs)}" for method in METHODS)
    return Finding(
        "measured",
        f"Pairs that suffice for R² ≥ {ENOUGH} at every seed: {enough}.",
        verdicts=tuple(_verdict(method, _growth(select(results, method=method))) for method in METHODS),
        figures=(_figure(means, pairs),),
        tables=(_table(means, pairs),),
    )


def _sufficient(means: Sequence[Estimate], pairs: Sequence[int]) -> str:
    """The smallest sufficient number of pairs."""
    too_few = [p for p, mean in zip(pairs, means, strict=True) if not mean.low >= ENOUGH]
    more = [p for p in pairs if not too_few or p > too_few[-1]]
    return f"{more[0]:,}" if more else f"> {pairs[-1]:,}"


def _growth(results: Sequence[Result]) -> Estimate:
    """Rank correlation of R² with the number of pairs, over all runs with a finite R²."""
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
        bad="Recovery does not demonstrably grow with the number of pairs (rank correlation over runs).",
    )


def _figure(means: Means, pairs: Sequence[int]) -> Curves:
    return Curves(
        title="Recovery against data",
        x_label="pairs",
        y_label="held-out R²",
        log_x=True,
        series=[curve(method, pairs, found) for method, found in means.items()],
    )


def _table(means: Means, pairs: Sequence[int]) -> Table:
    rows = [[f"{p:,}", *(cell(found[i]) for found in means.values())] for i, p in enumerate(pairs)]
    return Table("R², mean over seeds [range]", ["pairs", *METHODS], rows)


EXPERIMENT = Experiment("sample-complexity", "Number of pairs needed", CLAIM, trials, conclude)
