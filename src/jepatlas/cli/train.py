"""`jepatlas train`: train an agent on a world with known truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from jepatlas.cli.options import RecipeFile, parse_choices
from jepatlas.cli.output import defer_interrupts, say
from jepatlas.cli.training_runs import Answer, RunOptions, resume, run_argument, train_and_report
from jepatlas.recipes import Recipe

if TYPE_CHECKING:
    from rich.console import Console

    from jepatlas.training import Outcome


@dataclass(frozen=True)
class Train(RecipeFile, RunOptions):
    """Train an agent on a world with known truth.

    Example: jepatlas train --mixing coupling --encoder.width 64 --steps 1000 --out runs/mine

    Each kind has its own options: --mixing coupling --help shows those of the coupling.

    World models, on episodes: jepatlas train world-model --help

    Agents on images, one view each: jepatlas train vision --help

    Several processes: torchrun --nproc-per-node 2 -m jepatlas train ...
    """

    most_used: ClassVar[str] = "mixing law objective encoder steps batch-size lr seed out resume"

    recipe: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)
    out: Path | None = None
    """The run folder; by default runs/MIXING-OBJECTIVE-sSEED."""


def main(args: list[str]) -> int:
    code = resume("train", args, _report)
    if code is not None:
        return code
    options = parse_choices(Train(), "train", args)
    return train_and_report("train", options, lambda console: _start(options, console), _report)


def _start(options: Train, console: Console) -> tuple[Path, Outcome]:
    with defer_interrupts():
        from jepatlas.workflows.runs import start_run

    folder = options.out or Path("runs") / options.recipe.run_name
    return folder, start_run(options.recipe, folder, console)


def _report(console: Console, folder: Path, step: int) -> Answer:
    say(console, f"Trained {step} steps: {folder}. Next: jepatlas certify {run_argument(folder)}")
    return {}
