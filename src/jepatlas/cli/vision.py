"""Train an agent on one view of images, or resume one: `jepatlas train vision`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import tyro
from rich.console import Console

from jepatlas.cli.options import parse, say
from jepatlas.cli.recipe_options import choices_help, choose_recipe
from jepatlas.cli.seen_images import look
from jepatlas.cli.training import RunOptions, train_and_tell
from jepatlas.recipes import ImageFolders, ImageTable, VisionRecipe, load_recipe
from jepatlas.training import Outcome
from jepatlas.workflows.runs import start_run
from jepatlas.workflows.vision import judge_latents

NAME = "train vision"


@dataclass(frozen=True)
class TrainVision(RunOptions):
    recipe: Annotated[VisionRecipe, tyro.conf.arg(name="")] = field(default_factory=VisionRecipe)
    out: Path | None = None
    """The run folder; by default runs/IMAGES-VIEW-OBJECTIVE-sSEED."""


TrainVision.__doc__ = f"""Train an agent on one view of images: a vision transformer, and what it learns by.

Example: jepatlas train vision photos/views.csv --view left --objective ijepa --steps 500 --out runs/left

The first word is a multi-view table (CSV: path,state,view[,label,group]) or a folder: with a views.csv, or with a
folder of images for each view. Agents of other views that are given the same table hold out the same states; then
'jepatlas encode' gives their latents, and 'jepatlas align' says whether one can be translated into the other.

Choices, each with options of its own (--objective dino --help shows those of that objective):
{choices_help(VisionRecipe())}
  --recipe FILE starts from a saved recipe; other options then change it.

Several processes: torchrun --nproc-per-node 2 -m jepatlas train vision ..."""


def main(words: list[str]) -> int:
    asked = named(words)
    left, recipe = choose_recipe(asked, VisionRecipe())
    options = parse(TrainVision, NAME, left, TrainVision(recipe=recipe))
    return train_and_tell(
        NAME,
        asked,
        options,
        lambda console: _begin(options, console),
        _tell,
        again=lambda console, run: _look(console, load_recipe(run, VisionRecipe)),
    )


def _begin(options: TrainVision, console: Console) -> tuple[Path, Outcome]:
    recipe = replace(options.recipe, images=options.recipe.images.sealed())
    folder = options.out or _default_folder(recipe)
    _look(console, recipe)
    return folder, start_run(recipe, folder, console)


def _look(console: Console, recipe: VisionRecipe) -> None:
    for seen in look(console, recipe):
        say(console, f"{len(seen.learnt)} images to learn from, {len(seen.held)} held out.")


def _tell(console: Console, folder: Path, _: int) -> dict[str, Any]:
    record = judge_latents(folder)
    say(console, record.summary)
    say(console, f"Next: jepatlas encode {quote(str(folder))}")
    return {"verdicts": [verdict.to_json() for verdict in record.verdicts]}


def named(words: list[str]) -> list[str]:
    """A first word that is no option names the table, or the folder that images lie in."""
    if not words or words[0].startswith("-"):
        return words
    first = Path(words[0])
    if first.is_dir() and not (first / "views.csv").is_file():
        return ["--images", ImageFolders.kind, "--images.folder", words[0], *words[1:]]
    return ["--images", ImageTable.kind, "--images.path", words[0], *words[1:]]


def _default_folder(recipe: VisionRecipe) -> Path:
    images = recipe.images
    if isinstance(images, ImageTable):
        table = Path(images.path)
        name = table.parent.name if table.name == "views.csv" else table.stem
    else:
        name = images.kind
    parts = [name, *([recipe.view] if recipe.view else []), recipe.objective.kind, f"s{recipe.seed}"]
    return Path("runs") / "-".join(parts)
