"""Encoders of Reacher images: recipes, training, and the trial that probes the result.

LeJEPA is trained on a frame and a later one, with two latents. λ is fixed at the value that works in worlds without
pixels; the study chose it by R² on its test images. The learning rate of `small` was chosen among three by the training
loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.contracts import Batches
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Plain, Scale, Trial
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.experiments.reacher.reacher_probes import probes
from jepatlas.nn import ConvConfig
from jepatlas.nn.network_configs import Norm
from jepatlas.objectives import LeJEPAConfig
from jepatlas.recipes import (
    EpisodeSplit,
    TwoFrames,
    WalkedWorld,
    WorldModelRecipe,
    build_windows,
    build_world_model,
    gather_episodes,
    recipe_id,
)
from jepatlas.training import CosineSchedule, TrainingConfig, train
from jepatlas.workflows.plan import TrainedModel
from jepatlas.workflows.runs import trained
from jepatlas.worlds import OrnsteinUhlenbeckMotion, Reacher, SACMotion, ScriptedMotion

__all__ = ["BUDGETS", "Motion", "probe_model", "probed_trial", "reacher_of", "reacher_recipe", "run", "train_model"]

WEIGHT = 0.01  # λ
Motion = OrnsteinUhlenbeckMotion | ScriptedMotion | SACMotion


@dataclass(frozen=True)
class Budget:
    encoder: ConvConfig
    training: TrainingConfig
    frames: int  # of all episodes together, approximately
    length: int  # default number of steps of an episode
    poses: int  # Gaussian poses to score on


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
    """The number of images does not depend on the length of the episodes."""
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
    """The arm of a recipe; a context manager that releases the renderer."""
    assert isinstance(recipe.source, WalkedWorld) and isinstance(recipe.source.world, Reacher)
    return recipe.source.world


def train_model(
    recipe: WorldModelRecipe, folder: Path, data: EpisodeSplit, batches: Batches
) -> tuple[Plain, TrainedModel | None]:
    """Train on the given batches or resume; the model is None if the run did not finish."""
    objective = build_world_model(recipe, data)
    outcome = train(objective, batches, recipe.training, folder, recipe=recipe_id(recipe))
    verdicts = [outcome.verdict.to_json()] if outcome.verdict else []
    record = {"status": outcome.status, "step": outcome.step, "verdicts": verdicts}
    if outcome.status != "finished":
        return record, None
    return record, TrainedModel(recipe, trained(objective, recipe, folder), data)


def probed_trial(scale: Scale, recipe: WorldModelRecipe, **at: str | int | float) -> Trial:
    """A trial that trains a recipe and probes the result."""
    return Trial(at | {"seed": recipe.seed}, run, {"recipe": to_plain(recipe), "poses": BUDGETS[scale].poses})


def run(settings: Plain, folder: str) -> Plain:
    recipe = from_plain(WorldModelRecipe, settings["recipe"])
    with reacher_of(recipe):
        data = gather_episodes(recipe.source, recipe.seed)
        record, model = train_model(recipe, Path(folder), data, build_windows(recipe, data))
        return record if model is None else record | {"verdicts": probe_model(model, settings["poses"])}


def probe_model(model: TrainedModel, poses: int) -> list[Plain]:
    """All probes of the trained model, and of the same network before training (`untrained_...`)."""
    arm = reacher_of(model.recipe)
    fresh = TrainedModel(model.recipe, build_world_model(model.recipe, model.data).eval(), model.data)
    before: dict[str, Estimate] = {f"untrained_{name}": found for name, found in probes(fresh, arm, poses).items()}
    return as_verdicts(probes(model, arm, poses) | before, "of the latents of images")
