"""Recipes: everything that determines a run.

A recipe is a tree of frozen dataclasses. Its `build()` gives the objective and the stream of batches. It is saved in
the run folder as YAML, can be read back with `--recipe`, and the command line is generated from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.recipes.agent_recipe import Recipe, build_batches, build_objective
    from jepatlas.recipes.energy_recipe import (
        AgentConfig,
        EnergyRecipe,
        EnergyWorld,
        ExperienceSplit,
        StepFile,
        WalkConfig,
        apply_mixing,
        build_energy,
        gather_experience,
    )
    from jepatlas.recipes.episode_sources import (
        AnyActionWorld,
        EpisodeSource,
        EpisodeSplit,
        WalkedWorld,
        gather_episodes,
        policy_of_file,
        walk,
        world_of_file,
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
    from jepatlas.recipes.pairs_recipe import GivenModule, PairsRecipe, build_pairs_objective
    from jepatlas.recipes.recipe_files import (
        AnyRecipe,
        any_recipe,
        load_recipe,
        read_any_recipe,
        read_recipe,
        recipe_from_plain,
        recipe_id,
        recipe_text,
        verb_of,
        write_recipe,
    )
    from jepatlas.recipes.teaching_recipe import (
        MutualRecipe,
        TaughtRecipe,
        TeacherFile,
        shared_states,
        teaching_targets,
    )
    from jepatlas.recipes.vision_recipe import (
        Augmentation,
        CameraChoiceRecipe,
        Part,
        ViewImages,
        VisionRecipe,
        build_crops,
        build_vision,
        read_images,
    )
    from jepatlas.recipes.world_model_recipe import (
        LatentEnergy,
        Predictive,
        TwoFrames,
        WorldModelRecipe,
        build_windows,
        build_world_model,
        episodes_too_short,
    )
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "AgentConfig",
    "AnyActionWorld",
    "AnyImages",
    "AnyRecipe",
    "Augmentation",
    "CameraChoiceRecipe",
    "EnergyRecipe",
    "EnergyWorld",
    "EpisodeSource",
    "EpisodeSplit",
    "ExperienceSplit",
    "GivenModule",
    "ImageFolders",
    "ImageNet",
    "ImageTable",
    "LatentEnergy",
    "MutualRecipe",
    "NuScenes",
    "ObjectImages",
    "PairsRecipe",
    "Part",
    "Predictive",
    "Recipe",
    "SmallNORBFiles",
    "StepFile",
    "TaughtRecipe",
    "TeacherFile",
    "TwoFrames",
    "ViewImages",
    "VisionRecipe",
    "WalkConfig",
    "WalkedWorld",
    "WorldModelRecipe",
    "any_recipe",
    "apply_mixing",
    "build_batches",
    "build_crops",
    "build_energy",
    "build_objective",
    "build_pairs_objective",
    "build_vision",
    "build_windows",
    "build_world_model",
    "episodes_too_short",
    "gather_episodes",
    "gather_experience",
    "load_recipe",
    "policy_of_file",
    "read_any_recipe",
    "read_images",
    "read_recipe",
    "recipe_from_plain",
    "recipe_id",
    "recipe_text",
    "shared_states",
    "teaching_targets",
    "verb_of",
    "walk",
    "world_of_file",
    "write_recipe",
]
