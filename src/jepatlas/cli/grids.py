"""A grid of runs: what `jepatlas sweep` does with recipes of any kind."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jepatlas.cli.options import console_for, emit, parse, say
from jepatlas.cli.recipe_options import choose_recipe
from jepatlas.core.config import to_plain
from jepatlas.core.errors import InputError
from jepatlas.training import Job, SweepProgress, SweepResult, dask_cluster, local_processes, sweep

__all__ = ["GridOptions", "make_jobs", "run_grid"]

R = TypeVar("R")


@dataclass(frozen=True)
class GridOptions:
    """Options of every sweep."""

    verb: ClassVar[str] = "sweep"
    vary: Annotated[tuple[str, ...], tyro.conf.arg(name="vary"), tyro.conf.UseAppendAction] = ()
    """NAME=VALUE,VALUE,...: an option of `train` and its values. Repeat for a grid."""
    workers: int = os.cpu_count() or 1
    """Processes on this machine, one thread each; more where a recipe asks for them (--threads)."""
    dask: str | None = None
    """Address of a dask scheduler whose workers are to be used instead."""
    out: Path = Path("runs/sweep")
    """One run folder per recipe is made in here; finished ones are not run again."""
    json: str | None = None
    """Write all results as JSON to this file (- for standard output)."""


def run_grid(
    options: GridOptions, recipe: Any, job: Callable[..., dict[str, Any]], shown: Callable[[dict[str, Any]], str]
) -> int:
    """Carry `job` out for every point of the grid; `shown` says in a line what its verdicts, by name, come to."""
    console = console_for(options.json)
    jobs = make_jobs(recipe, options.vary, options.verb)
    open_executor = dask_cluster(options.dask) if options.dask else local_processes(options.workers)
    say(console, f"{len(jobs)} runs in {options.out}")
    out = options.out.absolute()
    try:
        with SweepProgress(console, {out / job.name: job.recipe["training"]["steps"] for job in jobs}):
            results = sweep(jobs, job, out, open_executor, on_result=lambda r: _tell(console, r, shown))
    except KeyboardInterrupt:
        say(console, "Stopped; what was running has saved itself. The same command goes on.")
        raise
    console.print(_table(results, shown))
    emit(options.json, {"runs": [{"name": r.name, "status": r.status} | r.record for r in results]})
    return 0 if all(r.status == "finished" for r in results) else 1


def make_jobs(recipe: Any, vary: tuple[str, ...], verb: str = GridOptions.verb) -> list[Job]:
    """The grid of all combinations, each applied as `train` would apply it; `verb` has the help that errors name."""
    axes = [_axis(text) for text in vary]
    if len({name for name, _ in axes}) < len(axes):
        raise InputError(f"Each --vary names another option, but these were given: {' '.join(vary)}")
    jobs = []
    for values in itertools.product(*(axis for _, axis in axes)):
        words = [word for (name, _), value in zip(axes, values, strict=True) for word in (f"--{name}", value)]
        name = "_".join(f"{name}={value}" for (name, _), value in zip(axes, values, strict=True)) or "run"
        jobs.append(Job(name.replace("/", "-"), to_plain(_apply(recipe, words, verb))))
    return jobs


def _axis(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not equals or not name or not all(values.split(",")):
        raise InputError(f"--vary {text}: expected NAME=VALUE,VALUE,... as in --vary seed=0,1,2")
    if len(set(values.split(","))) < len(values.split(",")):
        raise InputError(f"--vary {text}: each value may stand there once.")
    return name.removeprefix("--"), values.split(",")


def _apply(recipe: R, words: list[str], verb: str) -> R:
    left, chosen = choose_recipe(words, recipe)
    typed = Annotated[type(recipe), tyro.conf.arg(name="")]
    point = make_dataclass("Point", [("recipe", typed, field(default_factory=lambda: chosen))], frozen=True)
    return parse(point, verb, left, point()).recipe


def _tell(console: Console, result: SweepResult, shown: Callable[[dict[str, Any]], str]) -> None:
    say(console, f"{result.name}: {result.status} {_words(result, shown)}")


def _words(result: SweepResult, shown: Callable[[dict[str, Any]], str]) -> str:
    by_name: dict[str, Any] = {verdict["name"]: verdict for verdict in result.record.get("verdicts", [])}
    if found := shown(by_name):
        return found
    reasons = [str(verdict["advice"]) for verdict in by_name.values()]
    return str(result.record.get("error", reasons[0] if reasons else ""))


def _table(results: list[SweepResult], shown: Callable[[dict[str, Any]], str]) -> Table:
    table = Table("run", "status", "result", title="Sweep", title_justify="left")
    for result in results:
        table.add_row(escape(result.name), result.status, escape(_words(result, shown)))
    return table
