"""Train a world model on episodes, or resume one: `jepatlas train world-model`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import tyro
from rich.console import Console

from jepatlas.cli.options import parse, say
from jepatlas.cli.recipe_options import choices_help, choose_recipe
from jepatlas.cli.training import RunOptions, train_and_tell
from jepatlas.cli.world_model_words import fitting, named
from jepatlas.core.config import choices
from jepatlas.core.distributed import is_main_process
from jepatlas.data import EpisodeFile
from jepatlas.recipes import (
    AnyActionWorld,
    EpisodeSource,
    Predictive,
    WalkedWorld,
    WorldModelRecipe,
    episodes_too_short,
    load_recipe,
    world_of_file,
)
from jepatlas.training import Outcome
from jepatlas.workflows.runs import start_run

NAME = "train world-model"


@dataclass(frozen=True)
class TrainWorldModel(RunOptions):
    recipe: Annotated[WorldModelRecipe, tyro.conf.arg(name="")] = field(default_factory=WorldModelRecipe)
    out: Path | None = None
    """The run folder; by default runs/SOURCE-MODEL-sSEED."""


TrainWorldModel.__doc__ = f"""Train a world model: an encoder and latent dynamics that predict what will be seen.

Example: jepatlas train world-model rooms --steps 1000 --out runs/rooms

Example: jepatlas train world-model episodes.h5 --energy energy --out runs/mine

The first word is a world, which is explored by random actions, or an HDF5 file of episodes, as 'jepatlas collect'
writes them. With --energy the number of steps from one latent to another is learned, too, for planning.

What is seen are pictures, where there are any, and an encoder that fits is chosen: conv for pictures, mlp for numbers.

Choices, each with options of its own (--encoder conv --help shows those of that encoder):
{choices_help(WorldModelRecipe())}
  --recipe FILE starts from a saved recipe; other options then change it."""


def main(words: list[str]) -> int:
    asked = named(words)
    left, recipe = choose_recipe(asked, fitting(asked))
    options = parse(TrainWorldModel, NAME, left, TrainWorldModel(recipe=recipe))
    return train_and_tell(NAME, asked, options, lambda console: _begin(options, console), _tell)


def _begin(options: TrainWorldModel, console: Console) -> tuple[Path, Outcome]:
    recipe = _sealed(options.recipe)
    folder = options.out or _default_folder(recipe)
    if is_main_process():
        _say_too_short(console, recipe)
    return folder, start_run(recipe, folder, console)


def _tell(console: Console, folder: Path, step: int) -> dict[str, Any]:
    say(console, f"Trained {step} steps: {folder}. {_next(folder, load_recipe(folder, WorldModelRecipe))}")
    return {}


def _sealed(recipe: WorldModelRecipe) -> WorldModelRecipe:
    source = recipe.source
    return replace(recipe, source=source.sealed()) if isinstance(source, EpisodeSource) else recipe


def _say_too_short(console: Console, recipe: WorldModelRecipe) -> None:
    """Of a file; episodes that are walked are all of one length."""
    if not isinstance(recipe.source, EpisodeSource):
        return
    lengths = EpisodeFile(recipe.source.path).lengths
    if 0 < (short := episodes_too_short(recipe, lengths)) < len(lengths):  # or the run refuses them all
        say(
            console,
            f"{short} of {len(lengths)} episodes are too short for a window (--stride, --model.horizon), and "
            "nothing is learned from them.",
        )


def _default_folder(recipe: WorldModelRecipe) -> Path:
    source = recipe.source
    name = source.world.kind if isinstance(source, WalkedWorld) else Path(source.path).stem
    return Path("runs") / f"{name}-{recipe.model.kind}-s{recipe.seed}"


def _next(folder: Path, recipe: WorldModelRecipe) -> str:
    after = "plan" if isinstance(recipe.model, Predictive) else "certify"
    command = f"Next: jepatlas {after} {quote(str(folder))}"
    if after == "certify" or isinstance(recipe.source, WalkedWorld):
        return command
    file = EpisodeFile(recipe.source.path)
    if world_of_file(file) is not None:
        return command
    python = (
        "driven from Python: jepatlas.workflows.plan.agent_of gives what sees and imagines, and "
        "jepatlas.planning.receding_horizon plans and calls your own function for each step."
    )
    if "environment" in file.about:
        return f"In {file.about['environment']} it is {python}"
    worlds = ", ".join(choices(AnyActionWorld))
    return (
        f"{command} --world WORLD, if the episodes are of one of our worlds ({worlds}). In any other environment it is "
        f"{python}"
    )
