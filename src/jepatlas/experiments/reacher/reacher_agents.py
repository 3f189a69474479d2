"""Encoders of Reacher's pictures as the experiments train them: LeJEPA on a frame and a later one, with two latents.

λ is fixed once, at the value that serves in worlds without pixels; the study chose it by R² on its test images. The
learning rate of `small` was chosen by the training loss, of three.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jepatlas.core.contracts import Batches
from jepatlas.experiments.engine.experiment import Scale
from jepatlas.nn import ConvConfig
from jepatlas.nn.network_configs import Norm
from jepatlas.objectives import LeJEPAConfig
from jepatlas.recipes import (
    EpisodeSplit,
    TwoFrames,
    WalkedWorld,
    WorldModelRecipe,
    build_world_model,
    recipe_id,
)
from jepatlas.training import CosineSchedule, TrainingConfig, train
from jepatlas.workflows.plan import TrainedModel
from jepatlas.workflows.runs import trained
from jepatlas.worlds import OrnsteinUhlenbeckMotion, Reacher, SACMotion, ScriptedMotion

__all__ = ["BUDGETS", "Budget", "Motion", "learn", "reacher_of", "reacher_recipe"]

WEIGHT = 0.01  # λ
Motion = OrnsteinUhlenbeckMotion | ScriptedMotion | SACMotion


@dataclass(frozen=True)
class Budget:
    encoder: ConvConfig
    training: TrainingConfig
    frames: int  # of all episodes together, about
    length: int  # of an episode in steps, where nothing else is asked for
    poses: int  # Gaussian ones to score on


_LOOP = TrainingConfig(steps=500, batch_size=128, lr=5e-3, weight_decay=1e-4, collapse=1e-6)
_TINY = replace(_LOOP, steps=12, batch_size=32, log_every=4)
_PAPER = replace(_LOOP, steps=39_000, batch_size=256, lr=3e-3, schedule=CosineSchedule(warmup=0))
BUDGETS = {
    "tiny": Budget(ConvConfig((8, 8), hidden=16), _TINY, 200, 8, 150),
    "small": Budget(ConvConfig((16, 32, 32), hidden=128), _LOOP, 13_000, 64, 2000),
    "paper": Budget(ConvConfig((32, 64, 128), hidden=320), _PAPER, 102_000, 50, 10_000),
}
"""`paper`: 0.75 million parameters, and 100 epochs of 100,000 pairs, as in the study."""


def reacher_recipe(
    scale: Scale,
    seed: int,
    motion: Motion,
    *,
    length: int | None = None,
    stride: int = 1,
    norm: Norm = "batch",
    weight: float = WEIGHT,
) -> WorldModelRecipe:
    """Episodes of any length come to the same number of pictures."""
    budget = BUDGETS[scale]
    steps = length or budget.length
    return WorldModelRecipe(
        seed=seed,
        source=WalkedWorld(Reacher(), motion, max(20, budget.frames // (steps + 1)), steps),
        stride=stride,
        encoder=replace(budget.encoder, norm=norm),
        latent_dim=Reacher().state_dim,
        model=TwoFrames(LeJEPAConfig(weight=weight)),
        training=budget.training,
    )


def reacher_of(recipe: WorldModelRecipe) -> Reacher:
    """The arm that the pictures are of; `with` it, what draws them is given back."""
    assert isinstance(recipe.source, WalkedWorld) and isinstance(recipe.source.world, Reacher)
    return recipe.source.world


def learn(
    recipe: WorldModelRecipe, folder: Path, data: EpisodeSplit, batches: Batches
) -> tuple[dict[str, Any], TrainedModel | None]:
    """As `train_job`, from batches and episodes that are there already; and the model, where the run finished."""
    objective = build_world_model(recipe, data)
    outcome = train(objective, batches, recipe.training, folder, recipe=recipe_id(recipe))
    verdicts = [outcome.verdict.to_json()] if outcome.verdict else []
    record = {"status": outcome.status, "step": outcome.step, "verdicts": verdicts}
    if outcome.status != "finished":
        return record, None
    return record, TrainedModel(recipe, trained(objective, recipe, folder), data)
