"""`jepatlas reproduce`: test published claims, and compare with the published numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from jepatlas.cli.options import parse
from jepatlas.cli.output import console_for, defer_interrupts, emit, say, show_table, verdict_table
from jepatlas.core.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from jepatlas.core.records import Record
    from jepatlas.experiments import Experiment
    from jepatlas.training import SweepResult


@dataclass(frozen=True)
class Reproduce:
    """Test published claims. To continue after Ctrl-C, repeat the command.

    Example: jepatlas reproduce --list

    Example: jepatlas reproduce identify-2d --scale small
    """

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Experiments to run, or to show with --list; `all` for all of them."""
    list_: Annotated[bool, tyro.conf.arg(name="list")] = False
    """List all experiments with their last result, one line each. With names, show those in full."""
    scale: Literal["tiny", "small", "paper"] = "small"
    """tiny: seconds, a test that it runs. small: ten to thirty minutes on 2 cores. paper: the published settings."""
    workers: int = os.cpu_count() or 1
    """Number of processes, with one thread each."""
    dask: str | None = None
    """Address of a dask scheduler; its workers are used instead of processes."""
    seed: int = 0
    """The first seed."""
    out: Path = Path("runs/reproduce")
    """Folder for runs, records and figures, by scale. Finished runs are not repeated."""
    publish: Path | None = None
    """A documentation folder whose results/ and claims.md are updated."""
    json: str | None = None
    """Write the records as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse(Reproduce, "reproduce", args)
    with defer_interrupts():
        from jepatlas.experiments import check_publishable

    console = console_for(options.json)
    if options.list_:
        chosen = _named(options.names or ("all",))
        emit(options.json, {"experiments": _list(console, chosen, options.out, full=bool(options.names))})
        return 0
    if options.publish is not None:
        check_publishable(options.scale)
    records = []
    crashed = 0
    for experiment, missing in _runnable(options, console):
        record, failures = _run(experiment, missing, options, console)
        records.append(record)
        crashed += failures
    emit(options.json, {"records": [record.to_json() for record in records]})
    return 1 if crashed else 0


def _named(names: tuple[str, ...]) -> list[Experiment]:
    from jepatlas.experiments import EXPERIMENTS

    if not names:
        raise InputError("Name one or more experiments, or `all`. To list them: jepatlas reproduce --list")
    if names == ("all",):
        return list(EXPERIMENTS.values())
    for name in names:
        if name not in EXPERIMENTS:
            raise InputError(f"There is no experiment '{name}'. {did_you_mean(name, EXPERIMENTS)}")
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]


def _runnable(options: Reproduce, console: Console) -> list[tuple[Experiment, list[str]]]:
    """The experiments, each with the image data sets that are missing here.

    An experiment that needs only missing data sets is an error if it was named, and skipped with `all`.
    """
    from jepatlas.experiments import check_publishable
    from jepatlas.experiments.engine.scene_images import IMAGE_FOLDER_VARIABLE, missing_scenes

    found = []
    for experiment in _named(options.names):
        scenes = {str(trial.at.get("scene", "")) for trial in experiment.trials(options.scale, options.seed)}
        missing = sorted(missing_scenes(scenes - {""}))
        if options.publish is not None:
            check_publishable(options.scale, missing)
        remedy = f"Set {IMAGE_FOLDER_VARIABLE} to a folder that has them."
        runnable = not missing or bool(scenes - set(missing))
        if runnable:
            found.append((experiment, missing))
        elif options.names != ("all",):
            raise InputError(f"{experiment.name} needs images that are missing here: {', '.join(missing)}. {remedy}")
        if missing:
            say(console, f"{experiment.name}: trials on images of {', '.join(missing)} are skipped. {remedy}")
    return found


def _run(experiment: Experiment, missing: list[str], options: Reproduce, console: Console) -> tuple[Record, int]:
    """The record of an experiment, and the number of trials that crashed."""
    from jepatlas.experiments import reproduce
    from jepatlas.experiments.engine.publishing import SYMBOLS
    from jepatlas.training import SweepProgress, dask_cluster, local_processes

    out = options.out.absolute()
    executor = dask_cluster(options.dask) if options.dask else local_processes(options.workers)
    trials = experiment.trials(options.scale, options.seed)
    jobs = [trial.job for trial in trials if trial.at.get("scene") not in missing]
    say(console, f"{experiment.name} ({options.scale}, {len(jobs)} runs): {experiment.claim.statement}")
    crashed: list[SweepResult] = []

    def report(result: SweepResult) -> None:
        if result.status != "finished":
            say(console, f"{result.name}: {result.status} {result.record.get('error', '')}")
        if result.status == "crashed":
            crashed.append(result)

    runs = {out / options.scale / "runs" / job.name: _steps(job.recipe["settings"]) for job in jobs}
    try:
        with SweepProgress(console, runs):
            record = reproduce(
                experiment, options.scale, out, executor, seed=options.seed, without=missing, on_result=report
            )
    except KeyboardInterrupt:
        say(console, "Interrupted; finished runs are kept. To continue, repeat the command.")
        raise
    for table in record.tables:
        show_table(console, table)
    if record.verdicts:
        console.print(verdict_table(record.title, record.verdicts, console.width))
    say(console, f"{SYMBOLS[record.about['outcome']]} {record.summary}")
    folder = options.out / options.scale
    say(
        console,
        f"Record: {folder / 'records' / experiment.name}.json\nFigure: {folder / 'figures' / experiment.name}.png",
    )
    if options.publish is not None:
        _publish(record, out, options.publish)
    return record, len(crashed)


def _publish(record: Record, out: Path, docs: Path) -> None:
    from jepatlas.core.files import write_text
    from jepatlas.experiments import EXPERIMENTS, claims_page, publish, read_results

    publish(record, out, docs)
    write_text(docs / "claims.md", claims_page(read_results(docs / "results"), list(EXPERIMENTS)))


def _steps(settings: dict[str, Any]) -> int:
    """Training steps of a trial, for the progress bar: those of its last model, or 1 if it trains none."""
    *_, recipe = settings.get("recipes") or [settings.get("recipe", {})]
    training = settings.get("training") or recipe.get("training", {})
    return int(training.get("steps", 1))


def _list(console: Console, chosen: Sequence[Experiment], out: Path, *, full: bool) -> list[dict[str, Any]]:
    """Print the experiments with their last results, and return the same as plain data."""
    entries = [_entry(experiment, out) for experiment in chosen]
    width = max(len(experiment.name) for experiment in _named(("all",))) + 2
    for experiment, entry in zip(chosen, entries, strict=True):
        if full:
            _show_in_full(console, experiment, entry)
        else:
            console.print(_short_entry(entry, width, console.width), no_wrap=True)
    if not full:
        say(console, "In full: jepatlas reproduce --list NAME")
    return entries


def _entry(experiment: Experiment, out: Path) -> dict[str, Any]:
    from jepatlas.experiments import last_record

    record = last_record(experiment.name, out) or {}
    about = record.get("about", {})
    return {
        "name": experiment.name,
        "claim": experiment.claim.statement,
        "published": experiment.claim.measured,
        "outcome": about.get("outcome"),
        "sentence": about.get("sentence"),
        "short": about.get("short"),
        "scale": about.get("scale"),
        "trials": record.get("provenance", {}).get("trials"),
    }


def _short_entry(entry: dict[str, Any], column: int, width: int) -> Text:
    from rich.text import Text

    from jepatlas.experiments.engine.publishing import SYMBOLS

    here = "not yet measured"
    if entry["outcome"]:
        here = f"{SYMBOLS[entry['outcome']]} {entry['outcome']}: {entry['short'] or entry['sentence']}"
    lines = {entry["name"]: entry["claim"], "  published": entry["published"] or "no figure", "  here": here}
    return Text("\n".join(f"{name:<{column}}{_shorten(text, width - column)}" for name, text in lines.items()))


def _shorten(text: str, width: int) -> str:
    """The text, cut at the end of a word if it is longer than `width`.

    >>> _shorten("as much as fits", 12), _shorten("as much as fits", 15)
    ('as much as …', 'as much as fits')
    """
    return text if len(text) <= width else text[: width - 1].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def _show_in_full(console: Console, experiment: Experiment, entry: dict[str, Any]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from jepatlas.experiments.engine.publishing import SYMBOLS

    claim = experiment.claim
    here = "not yet measured"
    if entry["outcome"] is not None:
        here = f"{SYMBOLS[entry['outcome']]} {entry['outcome']} ({entry['scale']}). {entry['sentence']}"
    parts = {
        "Claim": claim.statement,
        "Source": claim.source,
        "Proven": claim.proven,
        "Assumed": claim.assumed,
        "Published": claim.measured,
        "Here": here,
        "Trials": entry["trials"],
    }
    console.print(Text(f"{experiment.name}: {experiment.title}", style="bold"))
    for name, text in parts.items():
        if text:
            console.print(Padding(Text(f"{name}: {text}"), (0, 0, 0, 2)))
    console.print()
