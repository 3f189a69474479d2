"""What a trained run makes of fresh samples of its world, for experiments that measure something of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jepatlas.core.linear import hold_out, least_squares
from jepatlas.core.records import Direction, Estimate, Verdict
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability import SpectralEncoder, fit_spectral_encoder
from jepatlas.objectives import PairObjective
from jepatlas.recipes import Recipe
from jepatlas.workflows.runs import load_objective, train_job

__all__ = [
    "Sample",
    "fit_spectral",
    "fresh",
    "inform",
    "r2_of_each_state",
    "r2_of_state",
    "sample",
    "train_and_measure",
]

Measured = list[dict[str, Any]]


@dataclass(frozen=True)
class Sample:
    """Fresh pairs, in float64: observations, true states and, for a trained run, latents of the first views."""

    x: np.ndarray
    x_next: np.ndarray
    z: np.ndarray
    h: np.ndarray
    h_next: np.ndarray


def train_and_measure(
    recipe: dict[str, Any], folder: str, count: int, measure: Callable[[Recipe, PairObjective, Sample], Measured]
) -> dict[str, Any]:
    """What most trials do: train (or go on), then measure a finished run on so many fresh pairs."""
    record = train_job(recipe, folder)
    if record["status"] != "finished":
        return record
    built, objective = load_objective(Path(folder))
    return record | {"verdicts": measure(built, objective, sample(built, objective, count))}


def fit_spectral(recipe: Recipe, pairs: int) -> SpectralEncoder:
    """The spectral encoder of so many pairs of a recipe's world, as wide as its state."""
    drawn = recipe.pairs.draw(recipe.world, pairs, torch_generator(recipe.seed, "spectral"))
    x, x_next = drawn.x.double().numpy(), drawn.x_next.double().numpy()
    return fit_spectral_encoder(x, x_next, recipe.world.dim, seed=recipe.seed)


def fresh(recipe: Recipe, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Observations and true states that no fit has seen."""
    drawn = recipe.pairs.draw(recipe.world, count, torch_generator(recipe.seed, "fresh"))
    return drawn.x.double().numpy(), drawn.z.double().numpy()


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


def inform(estimates: dict[str, Estimate], meaning: str, direction: Direction = "higher") -> Measured:
    """Estimates as a trial reports them: verdicts that only inform."""
    return [Verdict.judge(n, e, direction=direction, good=meaning).to_json() for n, e in estimates.items()]
