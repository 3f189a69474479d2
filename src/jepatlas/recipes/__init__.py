"""A recipe: everything that decides what a run will be. And the one place where parts are put together.

A recipe is a tree of frozen dataclasses, each beside its owner. It is saved with the run as plain YAML, can be given
back with `--recipe`, and is what the command line is made from.
"""

from jepatlas.recipes.agent import Recipe, build_batches, build_objective
from jepatlas.recipes.build import AnyRecipe, build
from jepatlas.recipes.energy import AgentConfig, EnergyRecipe, build_energy, build_steps, gathered
from jepatlas.recipes.episode_sources import (
    AnyActionWorld,
    EpisodeSource,
    WalkedWorld,
    policy_of_file,
    world_of_file,
)
from jepatlas.recipes.episodes import HeldOut, gather_episodes, walk
from jepatlas.recipes.experience import EnergyWorld, Gathered, StepFile, WalkConfig, mixed
from jepatlas.recipes.files import (
    any_recipe,
    load_recipe,
    read_recipe,
    recipe_from_plain,
    recipe_id,
    recipe_text,
    verb_of,
)
from jepatlas.recipes.image_sources import (
    AnyImages,
    ImageFolders,
    ImageNet,
    ImageTable,
    NuScenes,
    ObjectImages,
    SmallNORBFiles,
)
from jepatlas.recipes.looking import LookingRecipe
from jepatlas.recipes.teaching import MutualRecipe, TaughtRecipe, TeacherFile
from jepatlas.recipes.teaching_parts import Lessons, build_mutual, build_taught, lessons_for, shared_states
from jepatlas.recipes.vision import Augmentation, VisionRecipe
from jepatlas.recipes.vision_parts import SeenImages, build_crops, build_vision, see
from jepatlas.recipes.world_model import LatentEnergy, Predictive, TwoFrames, WorldModelRecipe
from jepatlas.recipes.world_model_parts import build_windows, build_world_model, episodes_too_short

__all__ = [
    "AgentConfig",
    "AnyActionWorld",
    "AnyImages",
    "AnyRecipe",
    "Augmentation",
    "EnergyRecipe",
    "EnergyWorld",
    "EpisodeSource",
    "Gathered",
    "HeldOut",
    "ImageFolders",
    "ImageNet",
    "ImageTable",
    "LatentEnergy",
    "Lessons",
    "LookingRecipe",
    "MutualRecipe",
    "NuScenes",
    "ObjectImages",
    "Predictive",
    "Recipe",
    "SeenImages",
    "SmallNORBFiles",
    "StepFile",
    "TaughtRecipe",
    "TeacherFile",
    "TwoFrames",
    "VisionRecipe",
    "WalkConfig",
    "WalkedWorld",
    "WorldModelRecipe",
    "any_recipe",
    "build",
    "build_batches",
    "build_crops",
    "build_energy",
    "build_mutual",
    "build_objective",
    "build_steps",
    "build_taught",
    "build_vision",
    "build_windows",
    "build_world_model",
    "episodes_too_short",
    "gather_episodes",
    "gathered",
    "lessons_for",
    "load_recipe",
    "mixed",
    "policy_of_file",
    "read_recipe",
    "recipe_from_plain",
    "recipe_id",
    "recipe_text",
    "see",
    "shared_states",
    "verb_of",
    "walk",
    "world_of_file",
]
