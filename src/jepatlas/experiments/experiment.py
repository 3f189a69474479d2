"""What an experiment is: a claim of a paper, the trials that test it, and what is found.

An experiment is one file with an `Experiment` in it. `trials` lays out the grid for a scale, `conclude` reads the
results; everything between (processes, resuming, records, figures, the claims page) is the same for all.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jepatlas.core.figures import Figure, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.training import Job, fingerprint

__all__ = ["SCALES", "Claim", "Experiment", "Finding", "Outcome", "Result", "Scale", "Trial", "combined", "run_trial"]

Scale = Literal["tiny", "small", "paper"]
SCALES: tuple[Scale, ...] = ("tiny", "small", "paper")
Outcome = Literal["holds", "holds in part", "does not hold", "undecided", "measured"]
"""`measured`: a question that the paper leaves open, so that there is nothing to hold."""
Run = Callable[[dict[str, Any], str], dict[str, Any]]


@dataclass(frozen=True)
class Claim:
    """What a paper says, and what it offers for it."""

    statement: str
    source: str
    proven: str = ""
    assumed: str = ""
    """What its proof rests on: conditions, and axioms where the proof was checked in Lean."""
    measured: str = ""
    """The published figures."""


@dataclass(frozen=True)
class Trial:
    """One point of an experiment's grid. `run(settings, folder)` must be a function that workers can import."""

    at: Mapping[str, str | int | float]
    run: Run
    settings: dict[str, Any]

    @property
    def job(self) -> Job:
        recipe = {"run": f"{self.run.__module__}:{self.run.__qualname__}", "settings": self.settings}
        where = "_".join(f"{name}={value}" for name, value in self.at.items())
        return Job(f"{where}-{fingerprint(recipe)[:8]}", recipe)


@dataclass(frozen=True)
class Result:
    """What came of a trial; failed ones are results, too."""

    trial: Trial
    folder: Path
    status: str
    record: Mapping[str, Any]
    made: Mapping[str, Any] | None = None
    """Version and commit of the code that ran it; None where they were not kept."""

    @property
    def at(self) -> Mapping[str, Any]:
        return self.trial.at

    def estimate(self, name: str) -> Estimate:
        """A measured number by the name of its verdict; undefined where the run did not come to it."""
        for verdict in map(Verdict.from_json, self.record.get("verdicts", [])):
            if verdict.name == name:
                return Estimate(verdict.value, verdict.low, verdict.high, verdict.n)
        return Estimate(np.nan, np.nan, np.nan, 0)

    def value(self, name: str) -> float:
        return self.estimate(name).value


@dataclass(frozen=True)
class Finding:
    """What an experiment comes to. Figures are specs, as records keep them."""

    outcome: Outcome
    sentence: str
    short: str = ""
    """What was measured in a few words, for lists: about 40 characters."""
    verdicts: tuple[Verdict, ...] = ()
    figures: tuple[Figure | Mapping[str, Any], ...] = ()
    tables: tuple[Table | Mapping[str, Any], ...] = ()
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    claim: Claim
    trials: Callable[[Scale, int], list[Trial]]
    """The grid of a scale, with seeds from the given one on."""
    rule: Callable[[Sequence[Result], Scale], Finding]
    """What the results say, where at least one trial finished."""

    def conclude(self, results: Sequence[Result], scale: Scale) -> Finding:
        """What the results say; from no finished trial nothing follows."""
        if any(result.status == "finished" for result in results):
            return self.rule(results, scale)
        why = str(results[0].record.get("error", "")) if results else ""
        said = f"No trial finished, of {len(results)}, so nothing was measured." + (f" The first: {why}" if why else "")
        return Finding("undecided", said, short="no trial finished")


def run_trial(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """What a worker does: find the trial's function, and call it."""
    module, _, name = recipe["run"].partition(":")
    return getattr(importlib.import_module(module), name)(recipe["settings"], folder)


def combined(outcomes: Sequence[Outcome]) -> Outcome:
    """Of several parts of a claim: all hold, some do at least in part, none is told, or none holds.

    >>> combined(["holds", "does not hold"]), combined(["undecided", "does not hold"]), combined(["undecided"])
    ('holds in part', 'does not hold', 'undecided')
    """
    if all(outcome == "holds" for outcome in outcomes):
        return "holds"
    if any(outcome in ("holds", "holds in part") for outcome in outcomes):
        return "holds in part"
    return "does not hold" if "does not hold" in outcomes else "undecided"
