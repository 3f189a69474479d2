"""Run an experiment: its trials as a sweep, its finding as a record and a figure.

OUT/SCALE/runs/TRIAL/result.json    OUT/SCALE/records/NAME.json    OUT/SCALE/figures/NAME.png

All experiments of a scale share the folder of runs, so a trial that two experiments need is run once.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from jepatlas.core.figures import Table
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.experiments.engine.experiment import Experiment, Finding, Result, Scale
from jepatlas.experiments.engine.rules import Criterion
from jepatlas.experiments.engine.trial_names import import_path
from jepatlas.training import OpenExecutor, SweepResult, sweep

__all__ = ["UNKNOWN_CODE", "public_record", "reproduce", "run_trial"]

UNKNOWN_CODE = "trials from before commits were kept"


def run_trial(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """Import the function of a trial and call it. This is what workers run."""
    module, _, name = import_path(recipe["run"]).partition(":")
    return getattr(importlib.import_module(module), name)(recipe["settings"], folder)


def reproduce(
    experiment: Experiment,
    scale: Scale,
    out: Path,
    open_executor: OpenExecutor,
    *,
    seed: int = 0,
    without: Sequence[str] = (),
    on_result: Callable[[SweepResult], None] = lambda result: None,
) -> Record:
    """Run the missing trials, conclude, and save the record and its figure.

    Trials on the scenes in `without`, whose images are not available, are left out.
    """
    place = out / scale
    trials = [trial for trial in experiment.trials(scale, seed) if trial.at.get("scene") not in without]
    done = sweep([trial.job for trial in trials], run_trial, place / "runs", open_executor, on_result)
    results = [
        Result(trial, place / "runs" / trial.job.name, result.status, result.record, result.made)
        for trial, result in zip(trials, done, strict=True)
    ]
    finding = experiment.conclude(results, scale)
    if scale == "tiny":
        sentence = f"A tiny run only shows that the experiment works. {finding.sentence}"
        finding = replace(finding, outcome="undecided", sentence=sentence)
    if without:
        finding = replace(finding, sentence=f"{finding.sentence} No images of: {', '.join(without)}.")
    record = _record(experiment, finding, scale, seed, results, without=without)
    record.save(place, experiment.name)
    if figures := public_record(record).figures:
        from jepatlas.reporting.paper import paper_figure  # noqa: PLC0415  (matplotlib takes a second to import)

        paper_figure(figures, record.arrays, place / "figures" / f"{experiment.name}.png", _caption(record))
    return record


def public_record(record: Record) -> Record:
    """The record without `local` figures, which show images that may not be redistributed."""
    return replace(record, figures=tuple(figure for figure in record.figures if not figure.local))


def _record(
    experiment: Experiment, finding: Finding, scale: Scale, seed: int, results: list[Result], *, without: Sequence[str]
) -> Record:
    about = {
        "name": experiment.name,
        "scale": scale,
        "claim": asdict(experiment.claim),
        "outcome": finding.outcome,
        "sentence": finding.sentence,
        "short": finding.short or finding.sentence,
        "runs": len(results),
        "failed": sum(result.status != "finished" for result in results),
    }
    if without:
        about["left out"] = list(without)
    return Record(
        title=experiment.title,
        summary=f"{finding.outcome.capitalize()}. {finding.sentence}",
        provenance=provenance(seed) | {"scale": scale, "runs": len(results), "trials": _trial_code(results)},
        verdicts=finding.verdicts,
        figures=finding.figures,
        tables=(*_criteria_table(finding.criteria), *finding.tables, *_unfinished_table(results)),
        arrays=finding.arrays,
        about=about,
    )


def _trial_code(results: Sequence[Result]) -> str:
    """The versions of the code that ran the trials, which may differ from the version that concludes."""
    counts = Counter(_code_of(result) for result in results)
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _code_of(result: Result) -> str:
    if result.made is None:
        return UNKNOWN_CODE if result.status in ("finished", "failed") else "trials that did not end"
    commit = result.made["commit"]
    return f"trials at commit {commit}" if commit else f"trials of version {result.made['version']}"


def _caption(record: Record) -> str:
    made = record.provenance
    command = f"jepatlas reproduce {record.about['name']} --scale {made['scale']} --seed {made['seed']}"
    return f"{command}   {made['trials']}; concluded at commit {made['commit'] or 'unknown'}"


def _criteria_table(criteria: Sequence[Criterion]) -> list[Table]:
    if not criteria:
        return []
    rows = [[one.name, one.found, one.required, "yes" if one.met else "no"] for one in criteria]
    return [Table("Criteria", ["criterion", "found", "required", "met"], rows)]


def _unfinished_table(results: Sequence[Result]) -> list[Table]:
    """Runs that were stopped or crashed, with the reason."""
    lost = [result for result in results if result.status != "finished"]
    if not lost:
        return []
    rows = [[result.trial.job.name, result.status, _reason(result)] for result in lost]
    return [Table("Runs that did not finish", ["run", "status", "why"], rows)]


def _reason(result: Result) -> str:
    """The error message, or the first sentence of the first verdict's advice."""
    verdicts = result.record.get("verdicts", [])
    first = str(verdicts[0]["advice"]).split(". ")[0] if verdicts else ""
    return str(result.record.get("error", first))
