"""Definition of an experiment: a claim, the trials that test it, and the rule that concludes from their results.

An experiment is one file with an `Experiment` in it. `trials` lays out the grid for a scale, `rule` reads the results;
large trial functions have a file of their own. Running, resuming, records, figures and the claims page are the same for
all experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jepatlas.core.figures import Figure, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.rules import Criterion, Outcome
from jepatlas.experiments.engine.trial_names import stable_name
from jepatlas.training import Job, fingerprint

__all__ = ["SCALES", "Claim", "Experiment", "Finding", "Plain", "Result", "Scale", "Trial", "grid"]

Scale = Literal["tiny", "small", "paper"]
SCALES: tuple[Scale, ...] = ("tiny", "small", "paper")
Plain = dict[str, Any]
"""Plain data for JSON: settings of a trial, and its result with a `status` and, if it finished, `verdicts`."""
Run = Callable[[Plain, str], Plain]


@dataclass(frozen=True)
class Claim:
    """A statement of a paper and the evidence that the paper gives for it."""

    statement: str
    source: str
    proven: str = ""
    assumed: str = ""
    """Assumptions of the proof, and axioms where the proof was checked in Lean."""
    measured: str = ""
    """Published numbers."""


@dataclass(frozen=True)
class Trial:
    """One point of an experiment's grid. `run(settings, folder)` must be a function that workers can import."""

    at: Mapping[str, str | int | float]
    run: Run
    settings: Plain

    @property
    def job(self) -> Job:
        path = f"{self.run.__module__}:{self.run.__qualname__}"
        recipe = {"run": stable_name(path), "settings": self.settings}
        where = "_".join(f"{name}={value}" for name, value in self.at.items())
        return Job(f"{where}-{fingerprint(recipe)[:8]}", recipe)


@dataclass(frozen=True)
class Result:
    """The result of a trial, including trials that failed."""

    trial: Trial
    folder: Path
    status: str
    record: Mapping[str, Any]
    made: Mapping[str, Any] | None = None
    """Version and commit of the code that ran the trial; None if they were not recorded."""

    @property
    def at(self) -> Mapping[str, Any]:
        return self.trial.at

    def estimate(self, name: str) -> Estimate:
        """The estimate of the named verdict; NaN if the run has none."""
        for verdict in map(Verdict.from_json, self.record.get("verdicts", [])):
            if verdict.name == name:
                return verdict.estimate
        return Estimate.undefined(0)

    def value(self, name: str) -> float:
        return self.estimate(name).value


@dataclass(frozen=True)
class Finding:
    """The conclusion of an experiment. Figures are specs, as records store them."""

    outcome: Outcome
    sentence: str
    """One short sentence with the main numbers."""
    short: str = ""
    """The sentence for lists; by default `sentence`."""
    criteria: tuple[Criterion, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    claim: Claim
    trials: Callable[[Scale, int], list[Trial]]
    """The grid of a scale, with seeds counted from the given one."""
    rule: Callable[[Sequence[Result], Scale], Finding]
    """The conclusion from the results, given that at least one trial finished."""

    def conclude(self, results: Sequence[Result], scale: Scale) -> Finding:
        """Apply the rule; undecided if no trial finished."""
        if any(result.status == "finished" for result in results):
            return self.rule(results, scale)
        error = str(results[0].record.get("error", "")) if results else ""
        sentence = f"None of {len(results)} trials finished." + (f" First error: {error}" if error else "")
        return Finding("undecided", sentence, short="no trial finished")


def grid(**coordinates: Iterable[Any]) -> list[dict[str, Any]]:
    """All combinations of the values of named coordinates; the last coordinate varies fastest.

    >>> grid(dim=(2, 4), seed=range(2))[:3]
    [{'dim': 2, 'seed': 0}, {'dim': 2, 'seed': 1}, {'dim': 4, 'seed': 0}]
    """
    return [dict(zip(coordinates, values, strict=True)) for values in product(*coordinates.values())]
