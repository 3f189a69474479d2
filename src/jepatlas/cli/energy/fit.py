"""Learn an energy from observed steps and their costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import tyro
from rich.console import Console

from jepatlas.cli.energy.shown import show
from jepatlas.cli.options import parse, say
from jepatlas.cli.recipe_options import choices_help, choose_recipe
from jepatlas.cli.training import RunOptions, train_and_tell
from jepatlas.core.config import choices
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.recipes import EnergyRecipe, StepFile, gather_experience
from jepatlas.recipes.energy_recipe import AnySource
from jepatlas.training import Outcome
from jepatlas.workflows.energy import evaluate_run, ground_truth_of
from jepatlas.workflows.runs import start_run


@dataclass(frozen=True)
class Fit(RunOptions):
    recipe: Annotated[EnergyRecipe, tyro.conf.arg(name="")] = field(default_factory=EnergyRecipe)
    out: Path | None = None
    """The run folder; by default runs/SOURCE-HEAD-sSEED."""
    full: bool = False
    """Show every number, not only those with a threshold."""


Fit.__doc__ = f"""Learn what it takes to go from one state to another, and hold it against the truth where there is one.

Example: jepatlas energy fit one-way-grid --head iqe --out runs/energy

Example: jepatlas energy fit steps.npz --head iqe

The first word is a world (one-way-grid, gym, current), or a file with x, x_next and cost for each step, or with x,
episode and cost for each state; x may be anybody's latents. A file may also hold `points` and, for each pair of them,
`truth`.

Choices, each with options of its own (--head mrn --help shows those of that head):
{choices_help(EnergyRecipe())}
  --recipe FILE starts from a saved recipe; other options then change it."""


def main(words: list[str]) -> int:
    words, source = _source(words)
    asked = [*source, *words]
    words, recipe = choose_recipe(asked, EnergyRecipe())
    options = parse(Fit, "energy fit", words, Fit(recipe=recipe))
    return train_and_tell(
        "energy fit",
        asked,
        options,
        lambda console: _begin(options, console),
        lambda console, folder, _: _tell(console, folder, full=options.full),
    )


def _begin(options: Fit, console: Console) -> tuple[Path, Outcome]:
    recipe = _sealed(options.recipe)
    folder = options.out or _default_folder(recipe)
    return folder, start_run(recipe, folder, console)


def _tell(console: Console, folder: Path, *, full: bool) -> dict[str, Any]:
    record = evaluate_run(folder).record
    show(console, record, full=full)
    say(console, f"Run: {folder}. See it with: jepatlas report {quote(str(folder))}")
    return record.to_json()


def _source(words: list[str]) -> tuple[list[str], list[str]]:
    """A first word that is no option names the world, or the file that steps come from."""
    if not words or words[0].startswith("-"):
        return words, []
    first, kinds = words[0], choices(AnySource)
    if first in kinds and first != StepFile.kind:
        return words[1:], ["--source", first]
    if Path(first).is_file():
        return [*words[1:], "--source.path", first], ["--source", StepFile.kind]
    worlds = [kind for kind in kinds if kind != StepFile.kind]
    raise InputError(f"'{first}' is neither a file nor a world. {did_you_mean(first, worlds)}")


def _sealed(recipe: EnergyRecipe) -> EnergyRecipe:
    """With the file's hash, so that a run that goes on finds the same steps."""
    if not isinstance(recipe.source, StepFile):
        return recipe
    sealed = replace(recipe, source=recipe.source.sealed())
    gather_experience(sealed)
    ground_truth_of(sealed)  # what it will be judged by is refused now, not after training
    return sealed


def _default_folder(recipe: EnergyRecipe) -> Path:
    name = Path(recipe.source.path).stem if isinstance(recipe.source, StepFile) else recipe.source.kind
    return Path("runs") / f"{name}-{recipe.head.kind}-s{recipe.seed}"
