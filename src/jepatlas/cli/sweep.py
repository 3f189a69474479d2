"""Train and judge many recipes at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import tyro

from jepatlas.cli.grids import GridOptions, run_grid
from jepatlas.cli.options import parse
from jepatlas.cli.recipe_options import choices_help, choose_recipe
from jepatlas.cli.vision import named
from jepatlas.recipes import Recipe, VisionRecipe
from jepatlas.workflows.runs import run_job
from jepatlas.workflows.vision import train_and_judge


@dataclass(frozen=True)
class Sweep(GridOptions):
    recipe: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)


Sweep.__doc__ = f"""Train and certify a grid of recipes. Stop it with Ctrl-C; the same command goes on.

Example: jepatlas sweep --vary mixing=spiral,coupling --vary seed=0,1,2 --steps 500 --out runs/grid

Choices, as for train:
{choices_help(Recipe())}

Agents on images: jepatlas sweep vision --help"""


@dataclass(frozen=True)
class SweepVision(GridOptions):
    verb: ClassVar[str] = "sweep vision"
    recipe: Annotated[VisionRecipe, tyro.conf.arg(name="")] = field(default_factory=VisionRecipe)


SweepVision.__doc__ = f"""Train a grid of agents on images. Stop it with Ctrl-C; the same command goes on.

Example: jepatlas sweep vision photos/views.csv --vary view=left,right --vary objective=ijepa,mae,dino --steps 300

Choices, as for train vision:
{choices_help(VisionRecipe())}"""


def main(words: list[str]) -> int:
    if words[:1] == ["vision"]:
        return _vision(words[1:])
    left, recipe = choose_recipe(words, Recipe())
    options = parse(Sweep, Sweep.verb, left, Sweep(recipe=recipe))
    return run_grid(options, options.recipe, run_job, _certified)


def _certified(verdicts: dict[str, Any]) -> str:
    if "r2" not in verdicts:
        return ""
    r2 = {key: float(verdicts["r2"][key]) for key in ("value", "low", "high")}
    failed = [name for name, verdict in verdicts.items() if verdict["passed"] is False]
    return f"R² {r2['value']:.4f} [{r2['low']:.4f}, {r2['high']:.4f}]" + (f" ✗ {', '.join(failed)}" if failed else " ✓")


def _vision(words: list[str]) -> int:
    left, recipe = choose_recipe(named(words), VisionRecipe())
    options = parse(SweepVision, SweepVision.verb, left, SweepVision(recipe=recipe))
    recipe = replace(options.recipe, images=options.recipe.images.sealed())
    return run_grid(options, recipe, train_and_judge, _directions)


def _directions(verdicts: dict[str, Any]) -> str:
    if "directions" not in verdicts:
        return ""
    found = verdicts["directions"]
    mark = {True: "✓", False: "✗", None: "–"}[found["passed"]]
    return f"{float(found['value']):.1f} directions {mark}" + ("" if found["passed"] else f" {found['advice']}")
