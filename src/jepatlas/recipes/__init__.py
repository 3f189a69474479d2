"""A recipe: everything that decides what a run will be. And the one place where parts are put together.

A recipe is a tree of frozen dataclasses, each beside its owner. It is saved with the run as plain YAML, can be given
back with `--recipe`, and is what the command line is made from.
"""

from jepatlas.recipes.agent import Recipe, build_batches, build_objective
from jepatlas.recipes.files import load_recipe, read_recipe, recipe_id, recipe_text

__all__ = ["Recipe", "build_batches", "build_objective", "load_recipe", "read_recipe", "recipe_id", "recipe_text"]
