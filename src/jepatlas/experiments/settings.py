"""How the experiments train: the published settings for `paper`, quicker ones that reach the same for `small`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jepatlas.core.config import to_plain
from jepatlas.data import Siblings
from jepatlas.experiments.experiment import Scale, Trial
from jepatlas.nn import MLPConfig
from jepatlas.objectives import CovarianceConfig, InfoNCEConfig, LeJEPAConfig, SIGRegConfig
from jepatlas.recipes import Recipe
from jepatlas.training import CosineSchedule, TrainingConfig
from jepatlas.workflows.runs import run_job
from jepatlas.worlds import LatentWorld

__all__ = ["STUDIED", "recipe_for", "trained"]

PAPER_TRAINING = TrainingConfig(
    steps=20_000, lr=3e-3, schedule=CosineSchedule(warmup=0, hold=10_000), clip=None, checkpoint_every=5000
)
PAPER_SIGREG = SIGRegConfig(slices=256, design="random", views="pooled")  # as in the authors' code

TOLD = 500  # steps from which on a certificate tells anything

STUDIED = {
    "SIGReg": LeJEPAConfig(),
    "VICReg": CovarianceConfig(),
    "InfoNCE": InfoNCEConfig(),
}
"""The objectives of "When Does LeJEPA Learn a World Model?", under the names it gives them."""


def recipe_for(scale: Scale, world: LatentWorld, *, steps: int, seed: int, weight: float = 0.01) -> Recipe:
    """LeJEPA on a world. `paper` sees pairs of siblings, as the study does; the others a state and its successor."""
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


def trained(recipe: Recipe, **at: str | int | float) -> Trial:
    """A trial that trains a recipe and certifies the result."""
    return Trial(
        at | {"seed": recipe.seed}, run_job if recipe.training.steps >= TOLD else run_briefly, to_plain(recipe)
    )


def run_briefly(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """What was hardly trained is certified on few samples: it only shows that everything works."""
    return run_job(recipe, folder, samples=2000)
