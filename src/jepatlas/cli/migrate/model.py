"""Train a student on its own view, with what a teacher has told of states that both have seen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated

import tyro
from rich.console import Console

from jepatlas.cli.migrate.taught import check_beside, tell
from jepatlas.cli.options import parse
from jepatlas.cli.recipe_options import choices_help, choose_recipe
from jepatlas.cli.seen_images import look
from jepatlas.cli.training import RunOptions, train_and_tell
from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError
from jepatlas.recipes import TaughtRecipe, VisionRecipe, load_recipe
from jepatlas.training import Outcome
from jepatlas.workflows.vision import refuse_told_tests, start_taught, teacher_arrays

NAME = "migrate model"


@dataclass(frozen=True)
class Model(RunOptions):
    source: tyro.conf.Positional[Path | None] = None
    """The teacher: a run folder of 'jepatlas train vision', or a file of latents with ids of their states."""
    to: str | None = None
    """The student's view."""
    recipe: Annotated[TaughtRecipe, tyro.conf.arg(name="")] = field(default_factory=TaughtRecipe)
    out: Path | None = None
    """The run folder; by default runs/TEACHER-to-VIEW-TEACHING-sSEED."""
    beside: tuple[Path, ...] = ()
    """Runs to draw beside this one at its end, by what a probe reads as they learn: one from scratch, say, or one that
    was taught otherwise; with a run that is resumed there are none."""


Model.__doc__ = f"""Train a student on another view than its teacher's, with the teacher's latents of shared states.

Example: jepatlas migrate model runs/left --to right --out runs/right

The student begins with the teacher's recipe, the next seed and the view that is named; options change it, also its
width (--encoder.width 48). Beside its own objective it learns to tell the teacher's latents through a map that is
fitted anew in closed form as it goes (--teaching migration), or by a trained head (--teaching distillation, from a
probe's logits where the images have labels, or --teaching.tells latents). Only states that the student learns from
are told, and a teacher that has learned from what the student is judged by is refused; what the model behind a file of
latents has learned from, nobody knows. The run folder keeps what was told as teacher.npz, and the student as a run of
its own in student/.

Choices, each with options of its own:
{choices_help(TaughtRecipe())}
  --recipe FILE starts from a saved recipe; other options then change it.

Several processes: torchrun --nproc-per-node 2 -m jepatlas migrate model ..."""


def main(words: list[str]) -> int:
    usual = _like(Path(words[0])) if words and not words[0].startswith("-") else TaughtRecipe()
    left, recipe = choose_recipe(words, usual)
    options = parse(Model, NAME, left, Model(recipe=recipe))
    _refuse_late_teacher(options, words)
    return train_and_tell(
        NAME,
        words,
        options,
        lambda console: _begin(options, console),
        partial(tell, beside=options.beside),
        again=lambda console, run: look(console, load_recipe(run, TaughtRecipe).student),
    )


def _begin(options: Model, console: Console) -> tuple[Path, Outcome]:
    source, recipe = _asked(options)
    check_beside(options.beside)
    student = replace(recipe.student, images=recipe.student.images.sealed())
    look(console, student)
    if source.is_dir():
        refuse_told_tests(source, student)
    told = teacher_arrays(source) if source.is_dir() else read_arrays(source)
    folder = options.out or _default_folder(source, recipe)
    return folder, start_taught(recipe, told, folder, console)


def _refuse_late_teacher(options: Model, words: list[str]) -> None:
    """Options are read by the recipe that they change, so a teacher that is named after them came too late for it."""
    begun = any(word.partition("=")[0] in ("--recipe", "--resume") for word in words)
    if options.source is not None and words[0].startswith("-") and not begun:
        raise InputError(
            "Name the teacher first: the student begins with its recipe, which options then change. As "
            f"in: jepatlas {NAME} {quote(str(options.source))} --to VIEW"
        )


def _like(teacher: Path) -> TaughtRecipe:
    """A student like its teacher, from the next seed; a file of latents says nothing of how they were made."""
    if not teacher.is_dir():
        return TaughtRecipe()
    own = load_recipe(teacher, VisionRecipe)
    return TaughtRecipe(student=replace(own, seed=own.seed + 1), pairs=min(64, own.training.batch_size))


def _asked(options: Model) -> tuple[Path, TaughtRecipe]:
    if options.source is None:
        raise InputError("name the teacher: a run folder of 'jepatlas train vision', or a file of its latents.")
    if not options.source.exists():
        raise InputError(f"There is no run folder or file {options.source}.")
    if options.to is None:
        raise InputError("name the student's view: --to VIEW.")
    return options.source, replace(options.recipe, student=replace(options.recipe.student, view=options.to))


def _default_folder(teacher: Path, recipe: TaughtRecipe) -> Path:
    parts = [teacher.stem, "to", str(recipe.student.view), recipe.teaching.kind, f"s{recipe.seed}"]
    return Path("runs") / "-".join(parts)
