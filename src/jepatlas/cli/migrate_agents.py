"""`jepatlas migrate model|mutual`: train agents with a teacher, or two agents that teach each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from jepatlas.cli.options import RecipeFile, parse, parse_choices
from jepatlas.cli.output import defer_interrupts, say
from jepatlas.cli.training_runs import Answer, RunOptions, decode_images, resume, train_and_report
from jepatlas.core.errors import InputError
from jepatlas.objectives.teaching import MutualConfig
from jepatlas.recipes import MutualRecipe, TaughtRecipe, VisionRecipe

if TYPE_CHECKING:
    from rich.console import Console

    from jepatlas.training import Outcome


@dataclass(frozen=True)
class Model(RecipeFile, RunOptions):
    """Train a student on another view than its teacher's, with the teacher's latents of shared states.

    Example: jepatlas migrate model runs/left --to right --out runs/right

    The student starts with the teacher's recipe, the next seed and the given view; options change it, including its
    width (--encoder.width 48). Beside its own objective, it learns to predict the teacher's latents through a map that
    is refitted in closed form during training (--teaching migration), or through a trained head (--teaching
    distillation: a probe's logits if the images have labels, or with --teaching.tells latents the latents).

    Only training states of the student are taught. A teacher that was trained on held-out states of the student is
    refused; for a file of latents this cannot be checked. The run folder keeps the teacher's latents in teacher.npz,
    and the student as a run of its own in student/.

    Each kind has its own options: --teaching distillation --help shows those of distillation.

    Several processes: torchrun --nproc-per-node 2 -m jepatlas migrate model ...
    """

    most_used: ClassVar[str] = "to teaching objective steps batch-size lr seed out beside resume"

    subject: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="TEACHER")] = None
    """The teacher: a run folder of 'jepatlas train vision', or a file of latents with the ids of their states."""
    to: str | None = None
    """The student's view."""
    recipe: Annotated[TaughtRecipe, tyro.conf.arg(name="")] = field(default_factory=TaughtRecipe)
    out: Path | None = None
    """The run folder; by default runs/TEACHER-to-VIEW-TEACHING-sSEED."""
    beside: tuple[Path, ...] = ()
    """Other runs whose learning curves are drawn beside this one, such as an agent that was trained alone."""


@dataclass(frozen=True)
class Mutual(RunOptions):
    """Train two agents from scratch that teach each other.

    Example: jepatlas migrate mutual runs/left runs/right --teaching.method cross --out runs/both

    Each agent learns on its own view by its own recipe. A map between their latents of shared states is refitted in
    closed form during training, and both agents are drawn together through it: at the same time (cross), or in turns
    (alternating). Widths may differ; training settings must be equal. The agents are runs of their own in first/ and
    second/.
    """

    recipes: tyro.conf.Positional[tuple[Path, ...]] = ()
    """Two recipes of 'jepatlas train vision': files, or run folders. Only the recipe of a run is used."""
    teaching: MutualConfig = field(default_factory=MutualConfig)
    pairs: int = 64
    """Shared states in one step."""
    out: Path = Path("runs/mutual")
    """The run folder."""
    beside: tuple[Path, ...] = ()
    """Other runs whose learning curves are drawn beside this one, such as an agent that was trained alone."""


def model(args: list[str]) -> int:
    command = "migrate model"
    code = resume(command, args, _report, _decode_student)
    if code is not None:
        return code
    options = parse_choices(Model(), command, args, _with_teacher)
    report = partial(_report, beside=options.beside)
    return train_and_report(command, options, lambda console: _start_student(options, console), report)


def _with_teacher(word: str, options: Model) -> Model:
    """The options for a student with its teacher's recipe and the next seed. A file of latents has no recipe."""
    place = Path(word)
    if not place.exists():
        raise InputError(f"There is no run folder or file {word}.")
    if options.recipe_file is not None or not place.is_dir():
        return options
    from jepatlas.recipes import load_recipe

    own = load_recipe(place, VisionRecipe)
    student = replace(own, seed=own.seed + 1)
    return replace(options, recipe=TaughtRecipe(student=student, pairs=min(64, own.training.batch_size)))


def _start_student(options: Model, console: Console) -> tuple[Path, Outcome]:
    if options.subject is None:
        raise InputError("name the teacher: a run folder of 'jepatlas train vision', or a file of its latents.")
    if options.to is None:
        raise InputError("name the student's view: --to VIEW.")
    with defer_interrupts():
        from jepatlas.core.arrays import read_arrays
        from jepatlas.workflows.vision import check_no_test_leak, start_taught, teacher_arrays

    teacher = Path(options.subject)
    student = replace(options.recipe.student, view=options.to)
    recipe = replace(options.recipe, student=student)
    _check_runs(options.beside)
    sealed = student.sealed()
    decode_images(console, sealed)
    if teacher.is_dir():
        check_no_test_leak(teacher, sealed)
        latents = teacher_arrays(teacher)
    else:
        latents = read_arrays(teacher)
    folder = options.out or _student_folder(teacher, recipe)
    return folder, start_taught(recipe, latents, folder, console)


def _student_folder(teacher: Path, recipe: TaughtRecipe) -> Path:
    parts = [teacher.stem, "to", str(recipe.student.view), recipe.teaching.kind, f"s{recipe.seed}"]
    return Path("runs") / "-".join(parts)


def _decode_student(console: Console, run: Path) -> None:
    from jepatlas.recipes import load_recipe

    decode_images(console, load_recipe(run, TaughtRecipe).student)


def mutual(args: list[str]) -> int:
    command = "migrate mutual"
    code = resume(command, args, _report, _decode_both)
    if code is not None:
        return code
    options = parse(Mutual, command, args)
    report = partial(_report, beside=options.beside)
    return train_and_report(command, options, lambda console: _start_both(options, console), report)


def _start_both(options: Mutual, console: Console) -> tuple[Path, Outcome]:
    with defer_interrupts():
        from jepatlas.workflows.runs import start_run

    _check_runs(options.beside)
    if len(options.recipes) != 2:
        raise InputError(f"give the recipes of both agents, but {len(options.recipes)} given.")
    first, second = (_vision_recipe(place) for place in options.recipes)
    recipe = MutualRecipe(first, second, options.teaching, options.pairs).sealed()
    decode_images(console, recipe.first, recipe.second)
    return options.out, start_run(recipe, options.out, console)


def _vision_recipe(place: Path) -> VisionRecipe:
    from jepatlas.recipes import load_recipe, read_recipe

    return load_recipe(place, VisionRecipe) if place.is_dir() else read_recipe(place, VisionRecipe)


def _decode_both(console: Console, run: Path) -> None:
    from jepatlas.recipes import load_recipe

    recipe = load_recipe(run, MutualRecipe)
    decode_images(console, recipe.first, recipe.second)


def _check_runs(runs: Sequence[Path]) -> None:
    """Check before training that the runs to be drawn at the end exist and can be read."""
    from jepatlas.recipes import read_images
    from jepatlas.workflows.vision import agents_on_images

    missing = [str(run) for run in runs if not (run / "recipe.yaml").is_file()]
    if missing:
        raise InputError(f"--beside takes run folders, but {', '.join(missing)} has no recipe.yaml.")
    for run in runs:
        for agent in agents_on_images(run).values():
            read_images(agent)


def _report(console: Console, folder: Path, _: int, beside: Sequence[Path] = ()) -> Answer:
    """Make the agents runs of their own, judge their latents, and save both for the report of the run."""
    from jepatlas.workflows.vision import extract_agents, judge_latents, judge_progress

    agents = extract_agents(folder)
    verdicts: list[dict[str, Any]] = []
    for name, place in agents.items():
        record = judge_latents(place)
        replace(record, title=f"Latents of the {name}").save(folder, f"latents-{name}")
        verdicts += [verdict.to_json() for verdict in record.verdicts]
        say(console, f"{name}: {record.summary} Next: jepatlas encode {quote(str(place))}")
    progress = judge_progress(folder, beside)
    if progress is not None:
        say(console, f"{progress.summary} See it with: jepatlas report {quote(str(folder))}")
    return {"agents": {name: str(place) for name, place in agents.items()}, "verdicts": verdicts}
