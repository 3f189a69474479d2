"""Agents out of a run in which they were taught: as runs of their own, which every command takes."""

from __future__ import annotations

from pathlib import Path

from jepatlas.core.errors import InputError
from jepatlas.core.files import write_text
from jepatlas.recipes import MutualRecipe, TaughtRecipe, VisionRecipe, any_recipe, recipe_id, recipe_text
from jepatlas.training import Checkpoint, latest_checkpoint, load_checkpoint, save_checkpoint

__all__ = ["agents_of", "graduate"]

Members = dict[str, tuple[VisionRecipe, str]]


def agents_of(recipe: TaughtRecipe | MutualRecipe) -> Members:
    """The recipes of the agents of such a run, and where in its objective they are."""
    if isinstance(recipe, TaughtRecipe):
        return {"student": (recipe.student, "own")}
    return {"first": (recipe.first, "first"), "second": (recipe.second, "second")}


def graduate(folder: Path) -> dict[str, Path]:
    """Write each agent as a run folder below this one: its own recipe, and its weights alone."""
    recipe = any_recipe(folder)
    if not isinstance(recipe, TaughtRecipe | MutualRecipe):
        raise InputError(f"{folder} is not a run in which an agent was taught.")
    newest = latest_checkpoint(folder / "checkpoints")
    if newest is None:
        raise InputError(f"{folder} has no checkpoint yet: there is no agent to take out.")
    whole = load_checkpoint(newest, recipe_id(recipe))
    places = {}
    for name, (agent, prefix) in agents_of(recipe).items():
        own = {
            key.replace(f".{prefix}.", ".", 1): value
            for key, value in whole.tensors.items()
            if key.startswith((f"model.{prefix}.", f"average.{prefix}."))
        }
        places[name] = folder / name
        write_text(places[name] / "recipe.yaml", recipe_text(agent))
        save_checkpoint(places[name] / "checkpoints", Checkpoint(whole.step, own), recipe_id(agent), keep=1)
    return places
