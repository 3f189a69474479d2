"""Trials on worlds of generalised normals: LeJEPA, VICReg and InfoNCE over the exponent α, for both samplers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import torch

from jepatlas.core.config import to_plain
from jepatlas.core.linear import hold_out, whitener
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import Siblings
from jepatlas.experiments.engine.experiment import Scale, Trial
from jepatlas.experiments.engine.latent_trials import STUDIED, LatentSample, r2_of_state, recipe_for, train_and_measure
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.identifiability import WarpSides, fit_warp, sturm_liouville_generalised_normal, warp_recovery
from jepatlas.objectives import PairObjective
from jepatlas.recipes import Recipe
from jepatlas.worlds import AdditiveGeneralisedNormal, CopulaGeneralisedNormal, LatentWorld, Spiral
from jepatlas.worlds.generalised_normal import to_gaussian

__all__ = ["GAUSSIAN", "SAMPLERS", "SCALES", "run", "sampler_at", "trials"]

RHO = 0.95
SAMPLERS = {"additive": AdditiveGeneralisedNormal, "copula": CopulaGeneralisedNormal}
GAUSSIAN = 2.0  # the α at which both samplers are the same law, which is trained once


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    weight: float
    samples: int
    alphas: tuple[float, ...]


SCALES = {
    "tiny": Plan(20, 1, 0.01, 2000, (1.0, 2.0)),
    "small": Plan(2500, 3, 0.01, 20_000, (0.25, 1.0, 2.0, 8.0, 32.0)),
    "paper": Plan(20_000, 3, 1e-3, 20_000, tuple(2.0**k for k in range(-3, 6))),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    trials = []
    for sampler, alpha, objective, s in product(SAMPLERS, plan.alphas, STUDIED, range(seed, seed + plan.seeds)):
        if alpha == GAUSSIAN and sampler != "additive":
            continue
        where = {"sampler": sampler_at(sampler, alpha), "alpha": alpha, "objective": objective, "seed": s}
        recipe = to_plain(_recipe(scale, sampler, alpha, objective, s))
        trials.append(Trial(where, run, {"recipe": recipe, "samples": plan.samples}))
    return trials


def sampler_at(sampler: str, alpha: float) -> str:
    return "gaussian" if alpha == GAUSSIAN else sampler


def _recipe(scale: Scale, sampler: str, alpha: float, objective: str, seed: int) -> Recipe:
    plan = SCALES[scale]
    world = LatentWorld(SAMPLERS[sampler](dim=2, rho=RHO, alpha=alpha), Spiral())
    recipe = recipe_for(scale, world, steps=plan.steps, seed=seed, weight=plan.weight)
    return replace(
        recipe,
        pairs=Siblings(),
        objective=recipe.objective if objective == "SIGReg" else STUDIED[objective],
        training=replace(recipe.training, collapse=0.0),
    )


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    return train_and_measure(settings["recipe"], folder, settings["samples"], _measure)


def _measure(recipe: Recipe, objective: PairObjective, drawn: LatentSample) -> list[dict[str, Any]]:
    split = hold_out(len(drawn.z), numpy_generator(recipe.seed, "split"))
    white = whitener(drawn.h[split.fit]).apply(drawn.h)  # a warp has one scale for all latents
    fits = WarpSides(fit_warp(white[split.fit], drawn.z[split.fit]), None, None, "states")
    rng = numpy_generator(recipe.seed, "warp")
    found = warp_recovery(white, drawn.z, split, rng, fits=fits, predicted=_predicted_warp(recipe), replicates=200)
    found["r2_grid"] = _r2_on_a_grid(recipe, objective)
    return as_verdicts(found, "held out, on fresh states of the world; r2_grid on an even grid")


def _predicted_warp(recipe: Recipe) -> Callable[[np.ndarray], np.ndarray] | None:
    law = recipe.world.law
    assert isinstance(law, (AdditiveGeneralisedNormal, CopulaGeneralisedNormal))
    if isinstance(law, CopulaGeneralisedNormal):
        return lambda z: to_gaussian(z, law.alpha)
    solved = sturm_liouville_generalised_normal(law.alpha, 1)
    return solved.warp if len(solved.eigenvalues) else None


def _r2_on_a_grid(recipe: Recipe, objective: PairObjective) -> Estimate:
    side = torch.linspace(-3, 3, 100)
    z = torch.cartesian_prod(side, side)
    with torch.no_grad():
        h = objective.encode(recipe.world.observe(z))
    return r2_of_state(h.double().numpy(), z.double().numpy(), recipe.seed)
