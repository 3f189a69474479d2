"""From any recipe to what the loop trains: the objective, and the stream of its batches."""

from __future__ import annotations

from typing import Any

from jepatlas.core.contracts import Batches
from jepatlas.recipes.agent import Recipe, build_batches, build_objective
from jepatlas.recipes.energy import EnergyRecipe, build_energy, build_steps, gathered
from jepatlas.recipes.episodes import gather_episodes
from jepatlas.recipes.teaching import MutualRecipe, TaughtRecipe
from jepatlas.recipes.teaching_parts import build_mutual, build_taught
from jepatlas.recipes.vision import VisionRecipe
from jepatlas.recipes.vision_parts import build_crops, build_vision, see
from jepatlas.recipes.world_model import WorldModelRecipe
from jepatlas.recipes.world_model_parts import build_windows, build_world_model

__all__ = ["AnyRecipe", "build"]

AnyRecipe = Recipe | EnergyRecipe | WorldModelRecipe | VisionRecipe | TaughtRecipe | MutualRecipe


def build(recipe: AnyRecipe) -> tuple[Any, Batches]:
    if isinstance(recipe, EnergyRecipe):
        data = gathered(recipe)
        return build_energy(recipe, data), build_steps(recipe, data)
    if isinstance(recipe, WorldModelRecipe):
        episodes = gather_episodes(recipe.source, recipe.seed)
        return build_world_model(recipe, episodes), build_windows(recipe, episodes)
    if isinstance(recipe, VisionRecipe):
        seen = see(recipe)
        return build_vision(recipe, seen), build_crops(recipe, seen)
    if isinstance(recipe, TaughtRecipe):
        return build_taught(recipe)
    if isinstance(recipe, MutualRecipe):
        return build_mutual(recipe)
    return build_objective(recipe), build_batches(recipe)
