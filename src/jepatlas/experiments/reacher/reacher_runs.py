"""What a trial of the Reacher experiments does: learn from a motion's pictures, then probe the encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Scale, Trial, as_verdicts
from jepatlas.experiments.reacher.reacher_agents import BUDGETS, learn, reacher_of
from jepatlas.experiments.reacher.reacher_probes import probes
from jepatlas.recipes import WorldModelRecipe, build_windows, build_world_model, gather_episodes
from jepatlas.workflows.plan import TrainedModel

__all__ = ["measured", "probed", "run"]


def probed(scale: Scale, recipe: WorldModelRecipe, **at: str | int | float) -> Trial:
    """A trial that trains a recipe and probes the result."""
    return Trial(at | {"seed": recipe.seed}, run, {"recipe": to_plain(recipe), "poses": BUDGETS[scale].poses})


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    recipe = from_plain(WorldModelRecipe, settings["recipe"])
    with reacher_of(recipe):
        data = gather_episodes(recipe.source, recipe.seed)
        record, model = learn(recipe, Path(folder), data, build_windows(recipe, data))
        return record if model is None else record | {"verdicts": measured(model, settings["poses"])}


def measured(model: TrainedModel, poses: int) -> list[dict[str, Any]]:
    """All probes, and what they find in the same network before it has learned: `untrained_…`."""
    fresh = TrainedModel(model.recipe, build_world_model(model.recipe, model.data).eval(), model.data)
    untrained: dict[str, Estimate] = {f"untrained_{name}": value for name, value in probes(fresh, poses).items()}
    return as_verdicts(probes(model, poses) | untrained, "of the pictures' latents")
