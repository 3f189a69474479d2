"""Train and certify many recipes at once."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jepatlas.base.config import to_plain
from jepatlas.base.errors import InputError
from jepatlas.recipes import Recipe
from jepatlas.runs import run_job
from jepatlas.training import Job, SweepResult, Watch, dask_cluster, local_processes, sweep
from jepatlas.verbs.options import console_for, emit, parse, say
from jepatlas.verbs.recipe_options import choices_help, choose_recipe


@dataclass(frozen=True)
class Sweep:
    vary: Annotated[tuple[str, ...], tyro.conf.arg(name="vary"), tyro.conf.UseAppendAction] = ()
    """NAME=VALUE,VALUE,...: an option of `train` and its values. Repeat for a grid."""
    recipe: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)
    workers: int = os.cpu_count() or 1
    """Processes on this machine, one thread each; more where a recipe asks for them (--threads)."""
    dask: str | None = None
    """Address of a dask scheduler whose workers are to be used instead."""
    out: Path = Path("runs/sweep")
    """One run folder per recipe is made in here; finished ones are not run again."""
    json: str | None = None
    """Write all results as JSON to this file (- for standard output)."""


Sweep.__doc__ = f"""Train and certify a grid of recipes. Stop it with Ctrl-C; the same command goes on.

Example: jepatlas sweep --vary mixing=spiral,coupling --vary seed=0,1,2 --steps 500 --out runs/grid

Choices, as for train:
{choices_help(Recipe())}"""


def main(words: list[str]) -> int:
    left, recipe = choose_recipe(words, Recipe())
    options = parse(Sweep, "sweep", left, Sweep(recipe=recipe))
    console = console_for(options.json)
    jobs = make_jobs(options.recipe, options.vary)
    open_executor = dask_cluster(options.dask) if options.dask else local_processes(options.workers)
    say(console, f"{len(jobs)} runs in {options.out}")
    out = options.out.absolute()
    try:
        with Watch(console, {out / job.name: job.recipe["training"]["steps"] for job in jobs}):
            results = sweep(jobs, run_job, out, open_executor, tell=lambda r: _tell(console, r))
    except KeyboardInterrupt:
        say(console, "Stopped; what was running has saved itself. The same command goes on.")
        raise
    console.print(_table(results))
    emit(options.json, {"runs": [{"name": r.name, "status": r.status} | r.record for r in results]})
    return 0 if all(r.status == "finished" for r in results) else 1


def make_jobs(recipe: Recipe, vary: tuple[str, ...]) -> list[Job]:
    """The grid of all combinations, each applied as `train` would apply it."""
    axes = [_axis(text) for text in vary]
    if len({name for name, _ in axes}) < len(axes):
        raise InputError(f"Each --vary names another option, but these were given: {' '.join(vary)}")
    jobs = []
    for values in itertools.product(*(axis for _, axis in axes)):
        words = [word for (name, _), value in zip(axes, values, strict=True) for word in (f"--{name}", value)]
        name = "_".join(f"{name}={value}" for (name, _), value in zip(axes, values, strict=True)) or "run"
        jobs.append(Job(name.replace("/", "-"), to_plain(_apply(recipe, words))))
    return jobs


def _axis(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not equals or not name or not all(values.split(",")):
        raise InputError(f"--vary {text}: expected NAME=VALUE,VALUE,... as in --vary seed=0,1,2")
    if len(set(values.split(","))) < len(values.split(",")):
        raise InputError(f"--vary {text}: each value may stand there once.")
    return name.removeprefix("--"), values.split(",")


@dataclass(frozen=True)
class _Point:
    """One point of the grid."""

    recipe: Annotated[Recipe, tyro.conf.arg(name="")] = field(default_factory=Recipe)


def _apply(recipe: Recipe, words: list[str]) -> Recipe:
    left, chosen = choose_recipe(words, recipe)
    return parse(_Point, "sweep --vary", left, _Point(chosen)).recipe


def _tell(console: Console, result: SweepResult) -> None:
    say(console, f"{result.name}: {result.status} {_shown(result)}")


def _shown(result: SweepResult) -> str:
    by_name: dict[str, Any] = {verdict["name"]: verdict for verdict in result.record.get("verdicts", [])}
    if "r2" in by_name:
        r2 = {key: float(by_name["r2"][key]) for key in ("value", "low", "high")}
        failed = [name for name, verdict in by_name.items() if verdict["passed"] is False]
        return f"R² {r2['value']:.4f} [{r2['low']:.4f}, {r2['high']:.4f}]" + (
            f" ✗ {', '.join(failed)}" if failed else " ✓"
        )
    reasons = [str(verdict["advice"]) for verdict in by_name.values()]
    return str(result.record.get("error", reasons[0] if reasons else ""))


def _table(results: list[SweepResult]) -> Table:
    table = Table("run", "status", "result", title="Sweep", title_justify="left")
    for result in results:
        table.add_row(escape(result.name), result.status, escape(_shown(result)))
    return table
