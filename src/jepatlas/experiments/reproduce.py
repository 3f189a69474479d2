"""Carrying an experiment out: its trials as a sweep, its finding as a record and a figure.

OUT/SCALE/runs/TRIAL/result.json    OUT/SCALE/records/NAME.json    OUT/SCALE/figures/NAME.png

All experiments of a scale share the runs, so a trial that two of them ask for is carried out once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from jepatlas.core.errors import InputError
from jepatlas.core.figures import as_figure
from jepatlas.core.files import read_json, write_bytes, write_json
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.experiments.experiment import Experiment, Finding, Result, Scale, run_trial
from jepatlas.experiments.image_control_runs import VARIABLE
from jepatlas.training import OpenExecutor, SweepResult
from jepatlas.training.sweep import sweep

__all__ = ["UNFINISHED", "UNKEPT", "check_publishable", "last_record", "publish", "reproduce", "shipped_results"]

TINY = "A tiny run shows that the experiment works, and nothing about the claim."
UNKEPT = "trials from before commits were kept"
UNFINISHED = "Runs that did not finish"


def reproduce(
    experiment: Experiment,
    scale: Scale,
    out: Path,
    open_executor: OpenExecutor,
    *,
    seed: int = 0,
    without: Sequence[str] = (),
    tell: Callable[[SweepResult], None] = lambda result: None,
) -> Record:
    """Run what is missing, conclude, and keep the record and its figure; `without` scenes whose images are absent."""
    place = out / scale
    trials = [trial for trial in experiment.trials(scale, seed) if trial.at.get("scene") not in without]
    done = sweep([trial.job for trial in trials], run_trial, place / "runs", open_executor, tell)
    results = [
        Result(trial, place / "runs" / trial.job.name, result.status, result.record, result.made)
        for trial, result in zip(trials, done, strict=True)
    ]
    finding = experiment.conclude(results, scale)
    if scale == "tiny":
        finding = replace(finding, outcome="undecided", sentence=f"{TINY} {finding.sentence}")
    if without:
        finding = replace(finding, sentence=f"{finding.sentence} Left out, for want of images: {', '.join(without)}.")
    record = _record(experiment, finding, scale, seed, results, without=without)
    record.save(place, experiment.name)
    if figures := _public(record).figures:
        from jepatlas.reporting.paper import paper_figure  # noqa: PLC0415  (matplotlib takes a second to import)

        paper_figure(figures, record.arrays, place / "figures" / f"{experiment.name}.png", _caption(record))
    return record


def _public(record: Record) -> Record:
    """Without figures that show what is not ours to give away, as images of data sets: these are `local`."""
    return replace(record, figures=tuple(figure for figure in record.figures if not as_figure(figure).local))


def _record(
    experiment: Experiment, finding: Finding, scale: Scale, seed: int, results: list[Result], *, without: Sequence[str]
) -> Record:
    failed = sum(result.status != "finished" for result in results)
    about = {"name": experiment.name, "scale": scale, "claim": asdict(experiment.claim)}
    about |= {"outcome": finding.outcome, "sentence": finding.sentence, "short": finding.short}
    about |= {"runs": len(results), "failed": failed} | ({"left out": list(without)} if without else {})
    return Record(
        title=experiment.title,
        summary=f"{finding.outcome.capitalize()}. {finding.sentence}",
        provenance=provenance(seed) | {"scale": scale, "runs": len(results), "trials": _makers(results)},
        verdicts=finding.verdicts,
        figures=finding.figures,
        tables=(*finding.tables, *_failures(results)),
        arrays=finding.arrays,
        about=about,
    )


def _makers(results: Sequence[Result]) -> str:
    """The code that ran the trials, which need not be the code that concludes from them, nor the same for all."""
    counts = Counter(_maker(result) for result in results)
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _maker(result: Result) -> str:
    if result.made is None:
        return UNKEPT if result.status in ("finished", "failed") else "trials that came to no end"
    commit, version = result.made["commit"], result.made["version"]
    return f"trials at commit {commit}" if commit else f"trials of version {version}"


def _caption(record: Record) -> str:
    made = record.provenance
    command = f"jepatlas reproduce {record.about['name']} --scale {made['scale']} --seed {made['seed']}"
    return f"{command}   {made['trials']}; concluded at commit {made['commit'] or 'unknown'}"


def _failures(results: list[Result]) -> list[dict[str, Any]]:
    """Runs that were stopped or crashed are kept in sight."""
    rows = [
        [result.trial.job.name, result.status, _reason(result)] for result in results if result.status != "finished"
    ]
    return [{"title": UNFINISHED, "columns": ["run", "status", "why"], "rows": rows}] if rows else []


def _reason(result: Result) -> str:
    """The error, or what the first verdict says, without the advice that follows: it is the same for all."""
    verdicts = [str(verdict["advice"]).split(". ")[0] for verdict in result.record.get("verdicts", [])]
    return str(result.record.get("error", verdicts[0] if verdicts else ""))


def publish(record: Record, out: Path, docs: Path) -> None:
    """Copy a record without its arrays, and its figure, to DOCS/results."""
    check_publishable(record.about["scale"], record.about.get("left out", ()))
    name, public = record.about["name"], _public(record)
    write_json(docs / "results" / f"{name}.json", public.to_json())
    if public.figures:
        drawn = out / record.about["scale"] / "figures" / f"{name}.png"
        write_bytes(docs / "results" / f"{name}.png", drawn.read_bytes())


def check_publishable(scale: Scale, without: Sequence[str] = ()) -> None:
    if scale == "tiny":
        raise InputError("A tiny run says nothing about a claim and is not published. Use --scale small or paper.")
    if without:
        raise InputError(
            f"A record is published of all scenes, but there are no images of {', '.join(without)}: "
            f"{VARIABLE} is to name a folder that has them. Without, leave out --publish."
        )


def shipped_results() -> Path:
    """The published records: inside an installed package, or in the docs of a checkout."""
    inside = Path(__file__).parent / "results"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "docs" / "results"


def last_record(name: str, out: Path) -> dict[str, Any] | None:
    """The user's own record of an experiment, of the largest scale, where there is one; else the published one."""
    own = [out / scale / "records" / f"{name}.json" for scale in ("paper", "small")]
    for path in [*own, shipped_results() / f"{name}.json"]:
        if path.is_file() and _measured(record := read_json(path)):
            return record
    return None


def _measured(record: dict[str, Any]) -> bool:
    """Not where no trial finished, for want of data, say: that must not hide what was measured before."""
    return record["about"]["failed"] < record["about"]["runs"]
