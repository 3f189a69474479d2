"""Train a world model on episodes, or resume one: `jepatlas train world-model`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Annotated

import tyro
from rich.console import Console

from jepatlas.base.config import choices
from jepatlas.base.distributed import leads
from jepatlas.recipes import (
    AnyActionWorld,
    EpisodeSource,
    Predictive,
    WalkedWorld,
    WorldModelRecipe,
    episodes_too_short,
    world_of_file,
)
from jepatlas.runs import resume_run, start_run
from jepatlas.verbs.options import console_for, emit, parse, say
from jepatlas.verbs.recipe_options import choices_help, choose_recipe
from jepatlas.verbs.train import CODES, refuse_changes
from jepatlas.verbs.world_model_words import fitting, named
from jepatlas.views import EpisodeFile

NAME = "train world-model"


@dataclass(frozen=True)
class TrainWorldModel:
    recipe: Annotated[WorldModelRecipe, tyro.conf.arg(name="")] = field(default_factory=WorldModelRecipe)
    out: Path | None = None
    """The run folder; by default runs/SOURCE-MODEL-sSEED."""
    resume: Path | None = None
    """Go on with the run in this folder; its own recipe is used."""
    json: str | None = None
    """Write the outcome as JSON to this file (- for standard output)."""


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
    options = parse(TrainWorldModel, NAME, left, TrainWorldModel(recipe))
    console = console_for(options.json)
    if options.resume is not None:
        refuse_changes(asked, options.resume, NAME)
        folder, outcome = options.resume, resume_run(options.resume, console)
    else:
        recipe = _sealed(options.recipe)
        folder = options.out or _default_folder(recipe)
        if leads():
            _say_too_short(console, recipe)
        outcome = start_run(recipe, folder, console)
    if not leads():
        return CODES[outcome.status]
    if outcome.verdict is not None:
        console.print(f"[red]{outcome.verdict.advice}", highlight=False)
    else:
        say(console, _next(folder, outcome.status, outcome.step, options.recipe))
    verdicts = [outcome.verdict.to_json()] if outcome.verdict else []
    emit(options.json, {"run": str(folder), "status": outcome.status, "step": outcome.step, "verdicts": verdicts})
    return CODES[outcome.status]


def _sealed(recipe: WorldModelRecipe) -> WorldModelRecipe:
    source = recipe.source
    return replace(recipe, source=source.sealed()) if isinstance(source, EpisodeSource) else recipe


def _say_too_short(console: Console, recipe: WorldModelRecipe) -> None:
    """Of a file; episodes that are walked are all of one length."""
    if not isinstance(recipe.source, EpisodeSource):
        return
    lengths = EpisodeFile(recipe.source.path).lengths
    if 0 < (short := episodes_too_short(recipe, lengths)) < len(lengths):  # or the run refuses them all
        say(console, f"{short} of {len(lengths)} episodes are too short for a window (--stride, --model.horizon), and "
                     "nothing is learned from them.")  # fmt: skip


def _default_folder(recipe: WorldModelRecipe) -> Path:
    source = recipe.source
    name = source.world.kind if isinstance(source, WalkedWorld) else Path(source.path).stem
    return Path("runs") / f"{name}-{recipe.model.kind}-s{recipe.seed}"


def _next(folder: Path, status: str, step: int, recipe: WorldModelRecipe) -> str:
    place = quote(str(folder))
    if status == "interrupted":
        return f"Saved after step {step}. Go on with: jepatlas {NAME} --resume {place}"
    after = "plan" if isinstance(recipe.model, Predictive) else "certify"
    done = f"Trained {step} steps: {folder}. Next: jepatlas {after} {place}"
    if after == "certify" or isinstance(recipe.source, WalkedWorld):
        return done
    file = EpisodeFile(recipe.source.path)
    if world_of_file(file) is not None:
        return done
    python = (
        "driven from Python: jepatlas.planning.agent_of gives what sees and imagines, and "
        "jepatlas.plan.receding_horizon plans and calls your own function for each step."
    )
    if "environment" in file.about:
        return f"Trained {step} steps: {folder}. In {file.about['environment']} it is {python}"
    worlds = ", ".join(choices(AnyActionWorld))
    return (
        f"{done} --world WORLD, if the episodes are of one of our worlds ({worlds}). In any other environment it is "
        f"{python}"
    )
