"""Trials on latent worlds: train a recipe, or fit a spectral encoder, and measure its latents on fresh samples.

Scale `paper` uses the published training settings; `small` uses shorter training that reaches the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jepatlas.core.config import to_plain
from jepatlas.core.linear import hold_out, least_squares
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap, explained_share
from jepatlas.data import Siblings
from jepatlas.experiments.engine.experiment import Scale, Trial
from jepatlas.identifiability import SpectralEncoder, fit_spectral_encoder
from jepatlas.nn import MLPConfig
from jepatlas.objectives import CovarianceConfig, InfoNCEConfig, LeJEPAConfig, PairObjective, SIGRegConfig
from jepatlas.recipes import Recipe
from jepatlas.training import CosineSchedule, TrainingConfig
from jepatlas.workflows.runs import load_objective, run_job, train_job
from jepatlas.worlds import LatentWorld

__all__ = [
    "STUDIED",
    "LatentSample",
    "certified_trial",
    "fit_spectral",
    "fresh_observations",
    "latent_sample",
    "r2_of_each_state",
    "r2_of_state",
    "r2_with_interval",
    "recipe_for",
    "train_and_measure",
]

PAPER_TRAINING = TrainingConfig(
    steps=20_000, lr=3e-3, schedule=CosineSchedule(warmup=0, hold=10_000), clip=None, checkpoint_every=5000
)
PAPER_SIGREG = SIGRegConfig(slices=256, design="random", views="pooled")  # as in the authors' code
FULL_CERTIFICATE = 500  # training steps from which the full certificate is computed

STUDIED = {"SIGReg": LeJEPAConfig(), "VICReg": CovarianceConfig(), "InfoNCE": InfoNCEConfig()}
"""The objectives of "When Does LeJEPA Learn a World Model?", under the names used there."""

Measured = list[dict[str, Any]]


@dataclass(frozen=True)
class LatentSample:
    """Fresh pairs in float64: observations, true states of the first views, and latents of both views."""

    x: np.ndarray
    x_next: np.ndarray
    z: np.ndarray
    h: np.ndarray
    h_next: np.ndarray


def recipe_for(scale: Scale, world: LatentWorld, *, steps: int, seed: int, weight: float = 0.01) -> Recipe:
    """LeJEPA on a world. `paper` uses sibling pairs, as the study does; other scales a state and its successor."""
    if scale == "paper":
        return Recipe(
            seed=seed,
            world=world,
            pairs=Siblings(),
            encoder=MLPConfig(width=256, depth=4),
            objective=LeJEPAConfig(weight=weight, sigreg=PAPER_SIGREG),
            training=replace(PAPER_TRAINING, steps=steps),
        )
    training = TrainingConfig(steps=steps, checkpoint_every=max(steps, 1))
    return Recipe(seed=seed, world=world, objective=LeJEPAConfig(weight=weight), training=training)


def certified_trial(recipe: Recipe, **at: str | int | float) -> Trial:
    """A trial that trains a recipe and certifies the result."""
    run = run_job if recipe.training.steps >= FULL_CERTIFICATE else run_briefly
    return Trial(at | {"seed": recipe.seed}, run, to_plain(recipe))


def run_briefly(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train and certify on few samples, for runs that only test the code."""
    return run_job(recipe, folder, samples=2000)


def train_and_measure(
    recipe: dict[str, Any], folder: str, count: int, measure: Callable[[Recipe, PairObjective, LatentSample], Measured]
) -> dict[str, Any]:
    """Train or resume, then measure a finished run on `count` fresh pairs."""
    record = train_job(recipe, folder)
    if record["status"] != "finished":
        return record
    built, objective = load_objective(Path(folder))
    return record | {"verdicts": measure(built, objective, latent_sample(built, objective, count))}


def fit_spectral(recipe: Recipe, pairs: int) -> SpectralEncoder:
    """A spectral encoder of the recipe's world, with as many latents as states, fitted on `pairs` pairs."""
    drawn = recipe.pairs.draw(recipe.world, pairs, torch_generator(recipe.seed, "spectral"))
    x = drawn.x.double().numpy()
    x_next = drawn.x_next.double().numpy()
    return fit_spectral_encoder(x, x_next, recipe.world.dim, seed=recipe.seed)


def fresh_observations(recipe: Recipe, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Observations and true states that were not used for fitting."""
    drawn = recipe.pairs.draw(recipe.world, count, torch_generator(recipe.seed, "fresh"))
    return drawn.x.double().numpy(), drawn.z.double().numpy()


def latent_sample(recipe: Recipe, objective: PairObjective, count: int) -> LatentSample:
    pairs = recipe.pairs.draw(recipe.world, count, torch_generator(recipe.seed, "fresh"))
    with torch.no_grad():
        h = objective.encode(pairs.x)
        h_next = objective.encode(pairs.x_next)
    return LatentSample(*(tensor.double().numpy() for tensor in (pairs.x, pairs.x_next, pairs.z, h, h_next)))


def r2_of_each_state(h: np.ndarray, z: np.ndarray, seed: int, replicates: int = 200) -> dict[str, Estimate]:
    """Held-out linear R² of each state coordinate (`r2_0`, ...) from all latents, and of the whole state (`r2`)."""
    fit, score = hold_out(len(h), numpy_generator(seed, "split"))
    residual = np.square(z[score] - least_squares(h[fit], z[fit]).apply(h[score]))
    deviation = np.square(z[score] - z[score].mean(0))

    def statistic(weights: np.ndarray) -> dict[str, float]:
        missed = weights @ residual
        total = weights @ deviation
        each = {f"r2_{i}": explained_share(missed[i], total[i]) for i in range(len(total))}
        return {"r2": explained_share(missed.sum(), total.sum())} | each

    return bootstrap(statistic, len(score), numpy_generator(seed, "rows"), replicates=replicates)


def r2_of_state(h: np.ndarray, z: np.ndarray, seed: int, replicates: int = 200) -> Estimate:
    """Held-out linear R² of the whole state; faster than `r2_of_each_state` in many dimensions."""
    fit, score = hold_out(len(h), numpy_generator(seed, "split"))
    predicted = least_squares(h[fit], z[fit]).apply(h[score])
    return r2_with_interval(z[score], predicted, numpy_generator(seed, "rows"), replicates=replicates)


def r2_with_interval(
    y: np.ndarray,
    predicted: np.ndarray,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 200,
) -> Estimate:
    """R² over all dimensions, with a bootstrap interval over rows or groups. Deviations are from the mean of all y."""
    residual = np.square(y - predicted).sum(1)
    deviation = np.square(y - y.mean(0)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"r2": explained_share(weights @ residual, weights @ deviation)}

    return bootstrap(statistic, len(y), rng, groups=groups, replicates=replicates)["r2"]
