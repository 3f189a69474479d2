"""`jepatlas sweep`: train and judge a grid of recipes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from jepatlas.cli.options import RecipeFile, parse_choices
from jepatlas.cli.output import console_for, defer_interrupts, emit, say
from jepatlas.cli.train_vision import with_images
from jepatlas.core.config import to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.locks import writer_lock
from jepatlas.core.verdict_names import plain_name
from jepatlas.recipes import Recipe, VisionRecipe

if TYPE_CHECKING:
    from rich.table import Table

    from jepatlas.training import Job, SweepResult

__all__ = ["directions_summary", "main", "make_jobs", "vision"]


@dataclass(frozen=True)
class GridOptions(RecipeFile):
    """Options of every sweep."""

    vary: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """NAME=VALUE,VALUE,...: an option of `train` and its values. Repeat it for a grid."""
    workers: int = os.cpu_count() or 1
    """Number of processes, with one thread each unless a recipe has more (--threads)."""
    dask: str | None = None
    """Address of a dask scheduler; its workers are used instead of processes."""
    out: Path = Path("runs/sweep")
    """Folder for one run folder per recipe. Finished runs are not repeated."""
    json: str | None = None
    """Write all results as JSON to this file (- for standard output)."""


@dataclass(frozen=True)
class Sweep(GridOptions):
    """Train and certify a grid of recipes. To continue an interrupted sweep, repeat the command.

    Example: jepatlas sweep --vary mixing=spiral,coupling --vary seed=0,1,2 --steps 500 --out runs/grid

    All other options are those of 'jepatlas train' and apply to all runs.

    Agents on images: jepatlas sweep vision --help
    """

    most_used: ClassVar[str] = "vary workers mixing law objective encoder steps seed out dask"

    recipe: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)


@dataclass(frozen=True)
class SweepVision(GridOptions):
    """Train a grid of agents on images. To continue an interrupted sweep, repeat the command.

    Example: jepatlas sweep vision photos/views.csv --vary view=left,right --vary objective=ijepa,mae,dino --steps 300

    All other options are those of 'jepatlas train vision' and apply to all runs.
    """

    most_used: ClassVar[str] = "vary workers images view objective size steps seed out dask"

    subject: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="IMAGES")] = None
    """A table of images (CSV: path,state,view[,label,group]), a folder with a views.csv, or a folder with one folder of
    images per view."""
    recipe: Annotated[VisionRecipe, tyro.conf.arg(name="")] = field(default_factory=VisionRecipe)


def main(args: list[str]) -> int:
    options = parse_choices(Sweep(), "sweep", args)
    with defer_interrupts():
        from jepatlas.workflows.runs import run_job

    return _run_grid(options, "sweep", options.recipe, run_job, _certificate_summary, metric="r2")


def vision(args: list[str]) -> int:
    options = parse_choices(SweepVision(), "sweep vision", args, with_images)
    with defer_interrupts():
        from jepatlas.workflows.vision import train_and_judge

    recipe = options.recipe.sealed()
    return _run_grid(options, "sweep vision", recipe, train_and_judge, directions_summary, metric="directions")


Summary = Callable[[dict[str, Any]], str]
"""Verdicts by name → one line, or an empty string if the verdict that it shows is missing."""


def _run_grid(
    options: GridOptions,
    command: str,
    recipe: Recipe | VisionRecipe,
    job: Callable[..., dict[str, Any]],
    summary: Summary,
    *,
    metric: str,
) -> int:
    from jepatlas.core.files import write_text
    from jepatlas.training import SweepProgress, dask_cluster, local_processes, sweep
    from jepatlas.workflows.sweep_results import sweep_csv, sweep_record

    console = console_for(options.json)
    jobs = make_jobs(recipe, options.vary, command)
    executor = dask_cluster(options.dask) if options.dask else local_processes(options.workers)
    say(console, f"{len(jobs)} runs in {options.out}")
    out = options.out.absolute()
    steps = {out / one.name: one.recipe["training"]["steps"] for one in jobs}

    def report(result: SweepResult) -> None:
        say(console, f"{result.name}: {result.status}")

    try:
        with writer_lock(out), SweepProgress(console, steps):
            results = sweep(jobs, job, out, executor, on_result=report)
    except KeyboardInterrupt:
        say(console, "Interrupted; unfinished runs are saved. To continue, repeat the command.")
        raise
    settings = _settings(options.vary)
    sweep_record(results, settings, metric, recipe.seed).save(out, "sweep")
    write_text(out / "sweep.csv", sweep_csv(results, settings))
    console.print(_table(results, summary))
    say(console, f"Table: {options.out / 'sweep.csv'}. See curves with: jepatlas report {quote(str(options.out))}")
    emit(options.json, {"runs": [{"name": r.name, "status": r.status} | r.record for r in results]})
    return 0 if all(result.status == "finished" for result in results) else 1


def make_jobs(recipe: Recipe | VisionRecipe, vary: tuple[str, ...], command: str = "sweep") -> list[Job]:
    """One job for each combination of values, with the recipe that `train` would make of these options."""
    from jepatlas.training import Job

    jobs = []
    for given in _settings(vary):
        args = [word for name, value in given.items() for word in (f"--{name}", value)]
        job_name = "_".join(f"{name}={value}" for name, value in given.items()) or "run"
        jobs.append(Job(job_name.replace("/", "-"), to_plain(_apply(recipe, args, command))))
    return jobs


def _settings(vary: tuple[str, ...]) -> list[dict[str, str]]:
    """The varied options of each job and their values, in the order of the jobs."""
    axes = [_axis(text) for text in vary]
    names = [name for name, _ in axes]
    if len(set(names)) < len(names):
        raise InputError(f"Each --vary takes another option, but these were given: {' '.join(vary)}")
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(values for _, values in axes))]


def _axis(text: str) -> tuple[str, list[str]]:
    """The option and its values in NAME=VALUE,VALUE,..."""
    name, _, listed = text.partition("=")
    values = listed.split(",")
    if not name or not all(values):
        raise InputError(f"--vary {text}: expected NAME=VALUE,VALUE,... as in --vary seed=0,1,2")
    if len(set(values)) < len(values):
        raise InputError(f"--vary {text}: a value occurs more than once.")
    return name.removeprefix("--"), values


def _apply(recipe: Recipe | VisionRecipe, args: list[str], command: str) -> Recipe | VisionRecipe:
    """The recipe, changed by options."""
    options = Sweep(recipe=recipe) if isinstance(recipe, Recipe) else SweepVision(recipe=recipe)
    return parse_choices(options, command, args).recipe


def _outcome(result: SweepResult, summary: Summary) -> str:
    """The summary of a result, or why there is none."""
    by_name = {verdict["name"]: verdict for verdict in result.record.get("verdicts", [])}
    text = summary(by_name)
    if text:
        return text
    if "error" in result.record:
        return str(result.record["error"])
    return next((str(verdict["advice"]) for verdict in by_name.values()), "")


def _table(results: list[SweepResult], summary: Summary) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("run", "status", "result", title="Sweep", title_justify="left")
    for result in results:
        table.add_row(escape(result.name), result.status, escape(_outcome(result, summary)))
    return table


def _certificate_summary(verdicts: dict[str, Any]) -> str:
    if "r2" not in verdicts:
        return ""
    value, low, high = (float(verdicts["r2"][key]) for key in ("value", "low", "high"))
    failed = [plain_name(name) for name, verdict in verdicts.items() if verdict["passed"] is False]
    mark = f"✗ {', '.join(failed)}" if failed else "✓"
    return f"R² {value:.4f} [{low:.4f}, {high:.4f}] {mark}"


def directions_summary(verdicts: dict[str, Any]) -> str:
    if "directions" not in verdicts:
        return ""
    verdict = verdicts["directions"]
    mark = {True: "✓", False: "✗", None: "?"}[verdict["passed"]]
    text = f"{float(verdict['value']):.1f} directions {mark}"
    return text if verdict["passed"] else f"{text} {verdict['advice']}"
