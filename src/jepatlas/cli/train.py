"""Train an agent on a world, or resume one."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import tyro
from rich.console import Console

from jepatlas.cli.options import parse, say
from jepatlas.cli.recipe_options import choices_help, choose_recipe
from jepatlas.cli.training import RunOptions, train_and_tell
from jepatlas.recipes import Recipe
from jepatlas.training import Outcome
from jepatlas.workflows.runs import start_run


@dataclass(frozen=True)
class Train(RunOptions):
    recipe: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)
    out: Path | None = None
    """The run folder; by default runs/MIXING-OBJECTIVE-sSEED."""


Train.__doc__ = f"""Train an agent on a world with known truth.

Example: jepatlas train --mixing coupling --encoder.width 64 --steps 1000 --out runs/mine

Choices, each with options of its own (--mixing coupling --help shows those of the coupling):
{choices_help(Recipe())}
  --recipe FILE starts from a saved recipe; other options then change it.

World models, from pixels and actions: jepatlas train world-model --help
Agents on images, one view each: jepatlas train vision --help

Several processes: torchrun --nproc-per-node 2 -m jepatlas train ..."""


def main(words: list[str]) -> int:
    if words[:1] == ["world-model"] or words[:1] == ["vision"]:  # what they need is loaded only then
        return import_module(f"jepatlas.cli.{words[0].replace('-', '_')}").main(words[1:])
    left, recipe = choose_recipe(words, Recipe())
    options = parse(Train, "train", left, Train(recipe=recipe))
    return train_and_tell("train", words, options, lambda console: _begin(options, console), _tell)


def _begin(options: Train, console: Console) -> tuple[Path, Outcome]:
    folder = options.out or default_folder(options.recipe)
    return folder, start_run(options.recipe, folder, console)


def default_folder(recipe: Recipe) -> Path:
    return Path("runs") / f"{recipe.world.mixing.kind}-{recipe.objective.kind}-s{recipe.seed}"


def _tell(console: Console, folder: Path, step: int) -> dict[str, Any]:
    say(console, f"Trained {step} steps: {folder}. Next: jepatlas certify {quote(str(folder))}")
    return {}
