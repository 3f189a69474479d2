"""The trials of the Hermite experiment: train, then decompose what each checkpoint makes of the same fresh states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Scale, Trial
from jepatlas.experiments.engine.latent_trials import LatentSample, latent_sample, recipe_for
from jepatlas.identifiability import degree_variances, loss_decomposition
from jepatlas.recipes import Recipe, build_objective, recipe_id
from jepatlas.training import load_checkpoint, load_weights
from jepatlas.workflows.runs import train_job
from jepatlas.worlds import LatentWorld, OrnsteinUhlenbeck, SinusoidalShear, Spiral

__all__ = ["DEGREE", "run", "trials"]

RHO, DEGREE, MOMENTS = 0.95, 4, 8


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    samples: int


SCALES = {"tiny": Plan(16, 1, 3000), "small": Plan(4000, 3, 30_000), "paper": Plan(20_000, 3, 100_000)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan, law = SCALES[scale], OrnsteinUhlenbeck(dim=2, rho=RHO)
    return [
        Trial(
            {"mixing": mixing.kind, "seed": s},
            run,
            {
                "recipe": to_plain(_recipe(scale, LatentWorld(law, mixing), plan.steps, s)),
                "samples": plan.samples,
                "degree": DEGREE,
            },
        )
        for mixing in (Spiral(), SinusoidalShear())
        for s in range(seed, seed + plan.seeds)
    ]


def _recipe(scale: Scale, world: LatentWorld, steps: int, seed: int) -> Recipe:
    recipe = recipe_for(scale, world, steps=steps, seed=seed)
    kept = replace(recipe.training, checkpoint_every=max(1, steps // MOMENTS), keep=MOMENTS)
    return replace(recipe, training=kept)


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train, then decompose what every kept checkpoint, and the untrained encoder, make of the same fresh states."""
    record = train_job(settings["recipe"], folder)
    recipe = from_plain(Recipe, settings["recipe"])
    places = sorted((Path(folder) / "checkpoints").glob("step-*"), key=lambda path: int(path.name[5:]))
    rows, degree = settings["samples"], settings["degree"]
    course = [_moment(0, latent_sample(recipe, build_objective(recipe).eval(), rows), recipe, degree)]
    for place in places:
        objective = build_objective(recipe)
        load_weights(objective, load_checkpoint(place, recipe_id(recipe)).tensors)
        course.append(_moment(int(place.name[5:]), latent_sample(recipe, objective.eval(), rows), recipe, degree))
    return record | {"course": course}


def _moment(step: int, drawn: LatentSample, recipe: Recipe, degree: int) -> dict[str, Any]:
    """Shares of the variance by degree; the loss, the band that the degrees predict, and how far outside it lies."""
    rho = RHO ** (2 if recipe.pairs.kind == "siblings" else 1)
    rng, replicates = numpy_generator(step, "hermite"), 50
    found = degree_variances(drawn.h, drawn.z, degree, rng, replicates=replicates)
    parts = loss_decomposition(drawn.h, drawn.h_next, drawn.z, rho, rng, degree=degree, replicates=replicates)
    total = found["total"].value
    shares = {str(d): found[f"degree_{d}"].value / total for d in range(1, degree + 1)}
    gap = [parts["gap"].low, parts["gap"].value, parts["gap"].high]
    band = [parts["predicted_least"].value, parts["predicted_most"].value]
    return {
        "step": step,
        "shares": shares,
        "beyond": found["beyond"].value / total,
        "loss": parts["loss"].value,
        "band": band,
        "gap": gap,
    }
