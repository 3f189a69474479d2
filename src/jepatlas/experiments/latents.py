"""What a trained run makes of fresh samples of its world, for experiments that measure something of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from jepatlas.base.linear import hold_out, least_squares
from jepatlas.base.records import Estimate, Verdict
from jepatlas.base.seeding import numpy_generator, torch_generator
from jepatlas.base.stats import bootstrap
from jepatlas.objectives import PairObjective
from jepatlas.recipes import Recipe

__all__ = ["Sample", "inform", "r2_of_each_state", "r2_of_state", "sample"]


@dataclass(frozen=True)
class Sample:
    """Fresh pairs, in float64: observations, true states and, for a trained run, latents of the first views."""

    x: np.ndarray
    x_next: np.ndarray
    z: np.ndarray
    h: np.ndarray
    h_next: np.ndarray


def sample(recipe: Recipe, objective: PairObjective, count: int) -> Sample:
    pairs = recipe.pairs.draw(recipe.world, count, torch_generator(recipe.seed, "fresh"))
    with torch.no_grad():
        h, h_next = objective.encode(pairs.x), objective.encode(pairs.x_next)
    return Sample(*(tensor.double().numpy() for tensor in (pairs.x, pairs.x_next, pairs.z, h, h_next)))


def r2_of_each_state(h: np.ndarray, z: np.ndarray, seed: int, replicates: int = 200) -> dict[str, Estimate]:
    """Held-out linear R² of each state coordinate from all latents, and of all of them together (`r2`)."""
    fit, score = hold_out(len(h), numpy_generator(seed, "split"))
    left = np.square(z[score] - least_squares(h[fit], z[fit]).apply(h[score]))
    around = np.square(z[score] - z[score].mean(0))

    def statistic(weights: np.ndarray) -> dict[str, float]:
        missed, total = weights @ left, weights @ around
        each = {f"r2_{i}": float(1 - missed[i] / total[i]) for i in range(len(total))}
        return {"r2": float(1 - missed.sum() / total.sum())} | each

    return bootstrap(statistic, len(score), numpy_generator(seed, "rows"), replicates=replicates)


def r2_of_state(h: np.ndarray, z: np.ndarray, seed: int, replicates: int = 200) -> Estimate:
    """The same of all coordinates together, at the cost of one: for states of a thousand dimensions."""
    fit, score = hold_out(len(h), numpy_generator(seed, "split"))
    left = np.square(z[score] - least_squares(h[fit], z[fit]).apply(h[score])).sum(1)
    around = np.square(z[score] - z[score].mean(0)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"r2": float(1 - weights @ left / (weights @ around))}

    return bootstrap(statistic, len(score), numpy_generator(seed, "rows"), replicates=replicates)["r2"]


def inform(estimates: dict[str, Estimate], meaning: str, direction: str = "higher") -> list[dict[str, object]]:
    """Estimates as a trial reports them: verdicts that only inform."""
    assert direction in ("higher", "lower")
    return [Verdict.judge(n, e, direction=direction, good=meaning).to_json() for n, e in estimates.items()]
