"""Train an agent on a world, or resume one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Annotated

import tyro
from rich.console import Console

from jepatlas.base.distributed import leads
from jepatlas.base.errors import InputError
from jepatlas.recipes import Recipe
from jepatlas.runs import resume_run, start_run
from jepatlas.verbs.options import console_for, emit, parse, say
from jepatlas.verbs.recipe_options import choices_help, choose_recipe

BESIDE_RESUME = ("--resume", "--json")
CODES = {"finished": 0, "failed": 1, "interrupted": 130}


@dataclass(frozen=True)
class Train:
    recipe: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)
    out: Path | None = None
    """The run folder; by default runs/MIXING-OBJECTIVE-sSEED."""
    resume: Path | None = None
    """Go on with the run in this folder; its own recipe is used."""
    json: str | None = None
    """Write the outcome as JSON to this file (- for standard output)."""


Train.__doc__ = f"""Train an agent on a world with known truth.

Example: jepatlas train --mixing coupling --encoder.width 64 --steps 1000 --out runs/mine

Choices, each with options of its own (--mixing coupling --help shows those of the coupling):
{choices_help(Recipe())}
  --recipe FILE starts from a saved recipe; other options then change it.

World models, from pixels and actions: jepatlas train world-model --help
Agents on images, one view each: jepatlas train vision --help

Several processes: torchrun --nproc-per-node 2 -m jepatlas train ..."""


def main(words: list[str]) -> int:
    if words[:1] == ["world-model"]:
        from jepatlas.verbs import world_model  # noqa: PLC0415 (it builds on this module)

        return world_model.main(words[1:])
    if words[:1] == ["vision"]:
        from jepatlas.verbs import vision  # noqa: PLC0415 (it builds on this module)

        return vision.main(words[1:])
    left, recipe = choose_recipe(words, Recipe())
    options = parse(Train, "train", left, Train(recipe))
    console = console_for(options.json)
    if options.resume is not None:
        refuse_changes(words, options.resume)
        folder, outcome = options.resume, resume_run(options.resume, console)
    else:
        folder = options.out or default_folder(options.recipe)
        outcome = start_run(options.recipe, folder, console)
    if not leads():
        return CODES[outcome.status]
    if outcome.verdict is not None:
        console.print(f"[red]{outcome.verdict.advice}", highlight=False)
    else:
        _say_what_next(console, outcome.status, folder, outcome.step)
    verdicts = [outcome.verdict.to_json()] if outcome.verdict else []
    emit(options.json, {"run": str(folder), "status": outcome.status, "step": outcome.step, "verdicts": verdicts})
    return CODES[outcome.status]


def refuse_changes(words: list[str], run: Path, verb: str = "train", beside: tuple[str, ...] = BESIDE_RESUME) -> None:
    """What was typed counts, not what came of it: an option that asks for a default asks for something, too."""
    typed = [flag for word in words if word.startswith("--") and (flag := word.split("=")[0]) not in beside]
    if typed:
        raise InputError(
            f"--resume goes on with the run's own recipe and folder: leave out {', '.join(typed)}. To train otherwise, "
            f"begin a new run with those options: jepatlas {verb} --recipe {quote(str(run / 'recipe.yaml'))} --out ..."
        )


def default_folder(recipe: Recipe) -> Path:
    return Path("runs") / f"{recipe.world.mixing.kind}-{recipe.objective.kind}-s{recipe.seed}"


def _say_what_next(console: Console, status: str, folder: Path, step: int) -> None:
    if status == "interrupted":
        say(console, f"Saved after step {step}. Go on with: jepatlas train --resume {quote(str(folder))}")
    else:
        say(console, f"Trained {step} steps: {folder}. Next: jepatlas certify {quote(str(folder))}")
