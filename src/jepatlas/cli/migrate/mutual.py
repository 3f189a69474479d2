"""Train two agents at once, each on its own view, that teach each other on states they share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import tyro
from rich.console import Console

from jepatlas.cli.migrate.taught import check_beside, tell
from jepatlas.cli.options import parse
from jepatlas.cli.seen_images import look
from jepatlas.cli.training import RunOptions, train_and_tell
from jepatlas.core.errors import InputError
from jepatlas.objectives.teaching import MutualConfig
from jepatlas.recipes import MutualRecipe, VisionRecipe, load_recipe, read_recipe
from jepatlas.training import Outcome
from jepatlas.workflows.runs import start_run

NAME = "migrate mutual"


@dataclass(frozen=True)
class Mutual(RunOptions):
    """Train two agents at once, from the start, that teach each other.

    Example: jepatlas migrate mutual runs/left runs/right --teaching.method cross --out runs/both

    Each agent learns on its own view by its own recipe; on states that both see, a map between their latents is fitted
    in closed form as they go, and they are drawn together through it: both at once (cross), or each in its turn to the
    other as it is (alternating). Widths may differ; steps, batches and rates must be the same in both recipes. The
    agents are then runs of their own in first/ and second/.
    """

    recipes: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Two recipes of 'jepatlas train vision': files, or run folders whose recipe is taken; nothing else is."""
    teaching: MutualConfig = field(default_factory=MutualConfig)
    pairs: int = 64
    """Shared states in one step."""
    out: Path = Path("runs/mutual")
    """The run folder."""
    beside: tuple[Path, ...] = ()
    """Runs to draw beside this one at its end, by what a probe reads as they learn: one from scratch, say, or one that
    was taught otherwise; with a run that is resumed there are none."""


def main(words: list[str]) -> int:
    options = parse(Mutual, NAME, words)
    return train_and_tell(
        NAME,
        words,
        options,
        lambda console: _begin(options, console),
        partial(tell, beside=options.beside),
        again=lambda console, run: _look(console, load_recipe(run, MutualRecipe)),
    )


def _begin(options: Mutual, console: Console) -> tuple[Path, Outcome]:
    check_beside(options.beside)
    recipe = _recipe(options).sealed()
    _look(console, recipe)
    return options.out, start_run(recipe, options.out, console)


def _look(console: Console, recipe: MutualRecipe) -> None:
    look(console, recipe.first, recipe.second)


def _recipe(options: Mutual) -> MutualRecipe:
    if len(options.recipes) != 2:
        raise InputError(f"give the recipes of both agents, but {len(options.recipes)} given.")
    first, second = (
        load_recipe(place, VisionRecipe) if place.is_dir() else read_recipe(place, VisionRecipe)
        for place in options.recipes
    )
    return MutualRecipe(first, second, options.teaching, options.pairs)
