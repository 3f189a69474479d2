"""Train a world model on episodes, or resume one: `jepatlas train world-model`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Annotated

import tyro

from jepatlas.base.config import choices
from jepatlas.base.distributed import leads
from jepatlas.base.errors import InputError, nearest
from jepatlas.encoders import MLPConfig
from jepatlas.recipes import AnyActionWorld, EpisodeSource, Predictive, WalkedWorld, WorldModelRecipe
from jepatlas.runs import resume_run, start_run
from jepatlas.verbs.options import console_for, emit, parse, say
from jepatlas.verbs.recipe_options import choices_help, choose_recipe
from jepatlas.verbs.train import CODES, refuse_changes
from jepatlas.worlds import LinearQuadratic

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
    asked = _named(words)
    left, recipe = choose_recipe(asked, _fitting(asked))
    options = parse(TrainWorldModel, NAME, left, TrainWorldModel(recipe))
    console = console_for(options.json)
    if options.resume is not None:
        refuse_changes(asked, options.resume, NAME)
        folder, outcome = options.resume, resume_run(options.resume, console)
    else:
        recipe = _sealed(options.recipe)
        folder = options.out or _default_folder(recipe)
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


def _named(words: list[str]) -> list[str]:
    """A first word that is no option names the world, or the file that episodes come from."""
    if not words or words[0].startswith("-"):
        return words
    first, worlds = words[0], choices(AnyActionWorld)
    if first in worlds:
        return ["--world", first, *words[1:]]
    if Path(first).is_file():
        return ["--source", EpisodeSource.kind, "--source.path", first, *words[1:]]
    raise InputError(f"'{first}' is neither a file nor a world. {nearest(first, worlds)}")


def _fitting(words: list[str]) -> WorldModelRecipe:
    """The recipe to begin with: with an mlp where numbers are seen, and nothing is said of the encoder."""
    recipe = WorldModelRecipe()
    if any(word.startswith(("--encoder", "--recipe", "--resume")) for word in words):
        return recipe
    given = {name: _given(words, name) for name in ("--world", "--source.path", "--source.observation")}
    if given["--source.path"] is not None:
        source = EpisodeSource(given["--source.path"], given["--source.observation"])
        file = source.open()
        numbers = len(file.columns[source.seen(file)].shape) != 3
    else:
        numbers = given["--world"] == LinearQuadratic.kind
    return replace(recipe, encoder=MLPConfig()) if numbers else recipe


def _given(words: list[str], flag: str) -> str | None:
    """The value of a flag, before words are parsed."""
    spaced = [after for word, after in pairwise(words) if word == flag]
    joined = [word.removeprefix(f"{flag}=") for word in words if word.startswith(f"{flag}=")]
    return next(iter([*spaced, *joined]), None)


def _sealed(recipe: WorldModelRecipe) -> WorldModelRecipe:
    source = recipe.source
    return replace(recipe, source=source.sealed()) if isinstance(source, EpisodeSource) else recipe


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
    worlds = ", ".join(choices(AnyActionWorld))
    return (
        f"{done} --world WORLD, if the episodes are of one of our worlds ({worlds}). In any other environment it is "
        "driven from Python: jepatlas.planning.agent_of gives what sees and imagines, and "
        "jepatlas.plan.receding_horizon plans and calls your own function for each step."
    )
