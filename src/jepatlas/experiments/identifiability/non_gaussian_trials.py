"""Trials on worlds of generalised normals: three laws over the exponent α, the spectral solver and trained encoders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

from jepatlas.core.config import from_plain, to_plain
from jepatlas.data import Siblings
from jepatlas.experiments.engine.experiment import Plain, Scale, Trial
from jepatlas.experiments.engine.latent_trials import (
    STUDIED,
    LatentSample,
    fit_spectral,
    fresh_observations,
    r2_of_state,
    recipe_for,
    train_and_measure,
)
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.objectives import PairObjective
from jepatlas.recipes import Recipe
from jepatlas.worlds import (
    AdditiveGeneralisedNormal,
    AnyMixing,
    CopulaGeneralisedNormal,
    LangevinGeneralisedNormal,
    LatentWorld,
    SinusoidalShear,
    Spiral,
)

__all__ = ["GAUSSIAN", "LAWS", "RHO", "SCALES", "SPECTRAL", "law_at", "run_spectral", "run_trained", "trials"]

RHO = 0.95
LAWS = {
    "Langevin": LangevinGeneralisedNormal,
    "additive": AdditiveGeneralisedNormal,
    "copula": CopulaGeneralisedNormal,
}
GAUSSIAN = 2.0  # the α at which all laws are the same
SPECTRAL = "spectral"
ALPHAS = (1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 32.0)


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    weight: float
    pairs: int  # of the spectral solver
    samples: int
    alphas: tuple[float, ...]
    mixing: AnyMixing
    learners: Mapping[str, tuple[str, ...]]  # by law


SCALES = {
    "tiny": Plan(2, 1, 0.01, 300, 500, (1.0, 2.0), SinusoidalShear(), {"Langevin": (SPECTRAL, "SIGReg")}),
    # The spiral costs as much R² at the Gaussian as theory predicts for the others (.01 to .04); a shear does not.
    "small": Plan(
        800,
        5,
        0.01,
        20_000,
        20_000,
        ALPHAS,
        SinusoidalShear(),
        {"Langevin": (SPECTRAL, "SIGReg"), "additive": (SPECTRAL,), "copula": (SPECTRAL,)},
    ),
    "paper": Plan(
        20_000, 5, 1e-3, 200_000, 20_000, (*ALPHAS, 16.0), Spiral(), dict.fromkeys(LAWS, (SPECTRAL, *STUDIED))
    ),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    """The Gaussian is trained once for all laws."""
    plan = SCALES[scale]
    every: dict[tuple[str, float, str, int], Trial] = {}
    for law, alpha, s in product(plan.learners, plan.alphas, range(seed, seed + plan.seeds)):
        for learner in plan.learners[law]:
            at = {"law": law_at(law, alpha), "alpha": alpha, "learner": learner, "seed": s}
            recipe = to_plain(_recipe(scale, "copula" if alpha == GAUSSIAN else law, alpha, learner, s))
            settings = {"recipe": recipe, "samples": plan.samples}
            if learner == SPECTRAL:
                trial = Trial(at, run_spectral, settings | {"pairs": plan.pairs})
            else:
                trial = Trial(at, run_trained, settings)
            every[at["law"], alpha, learner, s] = trial
    return list(every.values())


def law_at(law: str, alpha: float) -> str:
    return "Gaussian" if alpha == GAUSSIAN else law


def _recipe(scale: Scale, law: str, alpha: float, learner: str, seed: int) -> Recipe:
    plan = SCALES[scale]
    world = LatentWorld(LAWS[law](dim=2, rho=RHO, alpha=alpha), plan.mixing)
    recipe = recipe_for(scale, world, steps=plan.steps, seed=seed, weight=plan.weight)
    objective = STUDIED[learner] if learner in ("VICReg", "InfoNCE") else recipe.objective
    training = replace(recipe.training, collapse=0.0)  # R² does not depend on the scale of the latents
    return replace(recipe, pairs=Siblings(), objective=objective, training=training)


def run_spectral(settings: Plain, folder: str) -> Plain:
    del folder  # nothing is trained
    recipe = from_plain(Recipe, settings["recipe"])
    encoder = fit_spectral(recipe, settings["pairs"])
    x, z = fresh_observations(recipe, settings["samples"])
    found = {"r2": r2_of_state(encoder.apply(x), z, recipe.seed)}
    return {"status": "finished", "verdicts": as_verdicts(found, "held out, on fresh states")}


def run_trained(settings: Plain, folder: str) -> Plain:
    return train_and_measure(settings["recipe"], folder, settings["samples"], _measure)


def _measure(recipe: Recipe, objective: PairObjective, drawn: LatentSample) -> list[Plain]:
    del objective
    return as_verdicts({"r2": r2_of_state(drawn.h, drawn.z, recipe.seed)}, "held out, on fresh states")
