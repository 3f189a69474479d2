"""A claim of a paper, tested: what was claimed, what comes out here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from jepatlas.cli.experiment_list import show_experiments
from jepatlas.cli.options import console_for, emit, parse, say, verdict_table
from jepatlas.cli.tables import show_table
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.files import write_text
from jepatlas.experiments import (
    EXPERIMENTS,
    Experiment,
    Scale,
    check_publishable,
    claims_page,
    publish,
    read_results,
    reproduce,
)
from jepatlas.experiments.engine.image_folder import IMAGE_FOLDER_VARIABLE, missing_scenes
from jepatlas.experiments.engine.publishing import SYMBOLS
from jepatlas.training import SweepProgress, SweepResult, dask_cluster, local_processes


@dataclass(frozen=True)
class Reproduce:
    """Test claims of the papers. Stop it with Ctrl-C; the same command goes on where it was.

    Example: jepatlas reproduce --list

    Example: jepatlas reproduce identify-2d --scale small
    """

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Experiments to carry out, or to show with --list; `all` for all of them."""
    list_: Annotated[bool, tyro.conf.arg(name="list")] = False
    """Show every experiment and what was last measured here in a line; with names, those in full."""
    scale: Scale = "small"
    """tiny: seconds, to see that it runs. small: ten to thirty minutes on 2 cores. paper: the published settings."""
    workers: int = os.cpu_count() or 1
    """Processes on this machine, one thread each."""
    dask: str | None = None
    """Address of a dask scheduler whose workers are to be used instead."""
    seed: int = 0
    """The first of the seeds."""
    out: Path = Path("runs/reproduce")
    """Runs, records and figures are kept in here, by scale; finished runs are not repeated."""
    publish: Path | None = None
    """A documentation folder whose results/ and claims.md are to be brought up to date."""
    json: str | None = None
    """Write the records as JSON to this file (- for standard output)."""


def main(words: list[str]) -> int:
    options = parse(Reproduce, "reproduce", words)
    console = console_for(options.json)
    if options.list_:
        chosen = _chosen(options.names or ("all",))
        emit(options.json, {"experiments": show_experiments(console, chosen, options.out, full=bool(options.names))})
        return 0
    if options.publish is not None:
        check_publishable(options.scale)
    records, crashed = [], 0
    for experiment, without in _possible(options, console):
        record, lost = _carry_out(experiment, without, options, console)
        records.append(record)
        crashed += lost
    emit(options.json, {"records": [record.to_json() for record in records]})
    return 1 if crashed else 0


def _chosen(names: tuple[str, ...]) -> list[Experiment]:
    if not names:
        raise InputError("Which experiment? Name one or more, or `all`; --list shows them.")
    if names == ("all",):
        return list(EXPERIMENTS.values())
    for name in names:
        if name not in EXPERIMENTS:
            raise InputError(f"There is no experiment '{name}'. {did_you_mean(name, EXPERIMENTS)}")
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]


def _possible(options: Reproduce, console: Console) -> list[tuple[Experiment, list[str]]]:
    """The experiments with the scenes that each must do without, said before anything runs. One that has no other is
    refused where it was named, and left out where all were asked for."""
    found = []
    for experiment in _chosen(options.names):
        scenes = {str(trial.at.get("scene", "")) for trial in experiment.trials(options.scale, options.seed)}
        without = sorted(missing_scenes(scenes - {""}))
        if options.publish is not None:
            check_publishable(options.scale, without)
        known = f"{IMAGE_FOLDER_VARIABLE} is to name a folder that has them."
        if not without or scenes - {*without}:
            found.append((experiment, without))
        elif options.names != ("all",):
            raise InputError(f"{experiment.name} is of images that are not here: {', '.join(without)}. {known}")
        if without:
            say(console, f"{experiment.name}, skipped: trials on images of {', '.join(without)}. {known}")
    return found


def _carry_out(experiment: Experiment, without: list[str], options: Reproduce, console: Console) -> tuple[Any, int]:
    out, crashed = options.out.absolute(), []
    open_executor = dask_cluster(options.dask) if options.dask else local_processes(options.workers)
    trials = experiment.trials(options.scale, options.seed)
    jobs = [trial.job for trial in trials if trial.at.get("scene") not in without]
    say(console, f"{experiment.name} ({options.scale}, {len(jobs)} runs): {experiment.claim.statement}")

    def tell(result: SweepResult) -> None:
        if result.status != "finished":
            say(console, f"{result.name}: {result.status} {result.record.get('error', '')}")
        crashed.extend([result] if result.status == "crashed" else [])

    runs = {out / options.scale / "runs" / job.name: _steps(job.recipe["settings"]) for job in jobs}
    try:
        with SweepProgress(console, runs):
            record = reproduce(
                experiment, options.scale, out, open_executor, seed=options.seed, without=without, tell=tell
            )
    except KeyboardInterrupt:
        say(console, "Stopped; what was finished is kept. The same command goes on.")
        raise
    for table in record.tables:
        show_table(console, table)
    if record.verdicts:
        console.print(verdict_table(record.title, record.verdicts))
    say(console, f"{SYMBOLS[record.about['outcome']]} {record.summary}")
    say(
        console,
        f"Record and figure: {options.out / options.scale / 'records' / experiment.name}.json, "
        f"{options.out / options.scale / 'figures' / experiment.name}.png",
    )
    if options.publish is not None:
        publish(record, out, options.publish)
        page = claims_page(read_results(options.publish / "results"), list(EXPERIMENTS))
        write_text(options.publish / "claims.md", page)
    return record, len(crashed)


def _steps(settings: dict[str, Any]) -> int:
    """Of a run that trains, or of the last model that it trains; others are watched only for being done."""
    *_, recipe = settings.get("recipes") or [settings.get("recipe", {})]
    training = settings.get("training") or recipe.get("training", {})
    return int(training.get("steps", 1))
