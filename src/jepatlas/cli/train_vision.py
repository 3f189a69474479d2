"""`jepatlas train vision`: train an agent on one view of images."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import tyro

from jepatlas.cli.options import RecipeFile, parse_choices
from jepatlas.cli.output import defer_interrupts, say
from jepatlas.cli.training_runs import Answer, RunOptions, decode_images, resume, train_and_report
from jepatlas.recipes import ImageFolders, ImageTable, VisionRecipe

if TYPE_CHECKING:
    from rich.console import Console

    from jepatlas.training import Outcome

__all__ = ["main", "with_images"]

Options = TypeVar("Options", bound=Any)
COMMAND = "train vision"


@dataclass(frozen=True)
class TrainVision(RecipeFile, RunOptions):
    """Train a vision transformer on one view of images.

    Example: jepatlas train vision photos/views.csv --view left --objective ijepa --steps 500 --out runs/left

    Agents of other views that are given the same images hold out the same states. 'jepatlas encode' writes their
    latents, and 'jepatlas align' tests whether those of one agent can be translated into another's.

    Each kind has its own options: --objective dino --help shows those of DINO.

    Several processes: torchrun --nproc-per-node 2 -m jepatlas train vision ...
    """

    most_used: ClassVar[str] = "images view objective size steps batch-size lr seed out resume"

    subject: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="IMAGES")] = None
    """A table of images (CSV: path,state,view[,label,group]), a folder with a views.csv, or a folder with one folder of
    images per view."""
    recipe: Annotated[VisionRecipe, tyro.conf.arg(name="")] = field(default_factory=VisionRecipe)
    out: Path | None = None
    """The run folder; by default runs/IMAGES-VIEW-OBJECTIVE-sSEED."""


def main(args: list[str]) -> int:
    code = resume(COMMAND, args, _report, _prepare)
    if code is not None:
        return code
    options = parse_choices(TrainVision(), COMMAND, args, with_images)
    return train_and_report(COMMAND, options, lambda console: _start(options, console), _report)


def with_images(word: str, options: Options) -> Options:
    """The options of a command with a vision recipe, for a table or a folder of images."""
    place = Path(word)
    images: Any = ImageTable(word)
    if place.is_dir() and not (place / "views.csv").is_file():
        images = ImageFolders(word)
    recipe = replace(options.recipe, images=images)
    return replace(options, recipe=recipe)


def _start(options: TrainVision, console: Console) -> tuple[Path, Outcome]:
    with defer_interrupts():
        from jepatlas.workflows.runs import start_run

    recipe = options.recipe.sealed()
    folder = options.out or Path("runs") / recipe.run_name
    _decode(console, recipe)
    return folder, start_run(recipe, folder, console)


def _prepare(console: Console, folder: Path) -> None:
    from jepatlas.recipes import load_recipe

    _decode(console, load_recipe(folder, VisionRecipe))


def _decode(console: Console, recipe: VisionRecipe) -> None:
    for images in decode_images(console, recipe):
        say(console, f"{len(images.learnt)} training images, {len(images.held)} held out.")


def _report(console: Console, folder: Path, _: int) -> Answer:
    from jepatlas.workflows.vision import judge_latents

    record = judge_latents(folder)
    say(console, record.summary)
    say(console, f"Next: jepatlas encode {quote(str(folder))}")
    return {"verdicts": [verdict.to_json() for verdict in record.verdicts]}
