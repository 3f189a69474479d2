"""Definition of an experiment: a claim, the trials that test it, and the rule that concludes from their results.

An experiment is one file with an `Experiment` in it. `trials` lays out the grid for a scale, `rule` reads the results.
Running, resuming, records, figures and the claims page are the same for all experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from jepatlas.core.figures import Figure, Table
from jepatlas.core.records import Direction, Estimate, Verdict
from jepatlas.experiments.engine.trial_names import stable_name
from jepatlas.training import Job, fingerprint

__all__ = [
    "SCALES",
    "Claim",
    "Criterion",
    "Experiment",
    "Finding",
    "Outcome",
    "Result",
    "Scale",
    "Trial",
    "as_verdicts",
    "combined",
    "count_met",
    "grid",
    "outcome_in_stages",
    "outcome_of",
    "outcome_of_criteria",
    "point_estimates",
    "share_verdict",
]

Scale = Literal["tiny", "small", "paper"]
SCALES: tuple[Scale, ...] = ("tiny", "small", "paper")
Outcome = Literal["holds", "holds in part", "does not hold", "undecided", "measured"]
"""`measured`: the paper leaves the question open, so there is no claim to judge."""
Run = Callable[[dict[str, Any], str], dict[str, Any]]


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
    settings: dict[str, Any]

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
                return Estimate(verdict.value, verdict.low, verdict.high, verdict.n)
        return Estimate.undefined(0)

    def value(self, name: str) -> float:
        return self.estimate(name).value


@dataclass(frozen=True)
class Criterion:
    """One condition of an experiment's rule, with what was found and what is required."""

    name: str
    found: str
    required: str
    met: bool

    @classmethod
    def for_all(cls, name: str, met: Sequence[bool], required: str = "all") -> Self:
        """All of several cases must meet a condition; `found` is the number of those that do."""
        return cls(name, count_met(met), required, all(met))


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


def count_met(met: Sequence[bool]) -> str:
    """How many of several conditions are met.

    >>> count_met([True, False, True])
    '2 of 3'
    """
    return f"{sum(met)} of {len(met)}"


def outcome_of(met: Sequence[bool]) -> Outcome:
    """The outcome of a rule with several conditions, given which of them are met.

    >>> outcome_of([True, True]), outcome_of([True, False]), outcome_of([False])
    ('holds', 'holds in part', 'does not hold')
    """
    if all(met):
        return "holds"
    return "holds in part" if any(met) else "does not hold"


def outcome_of_criteria(criteria: Sequence[Criterion]) -> Outcome:
    return outcome_of([criterion.met for criterion in criteria])


def outcome_in_stages(essential: bool, remaining: bool) -> Outcome:
    """The outcome of a rule that holds in part only if its essential conditions are met.

    >>> outcome_in_stages(True, False), outcome_in_stages(False, True)
    ('holds in part', 'does not hold')
    """
    if not essential:
        return "does not hold"
    return "holds" if remaining else "holds in part"


def combined(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of a claim with several parts.

    >>> combined(["holds", "does not hold"]), combined(["undecided", "does not hold"]), combined(["undecided"])
    ('holds in part', 'does not hold', 'undecided')
    """
    if all(outcome == "holds" for outcome in outcomes):
        return "holds"
    if any(outcome in ("holds", "holds in part") for outcome in outcomes):
        return "holds in part"
    return "does not hold" if "does not hold" in outcomes else "undecided"


def point_estimates(values: Mapping[str, float], n: int) -> dict[str, Estimate]:
    """Numbers without an interval, from n samples."""
    return {name: Estimate.exact(value, n) for name, value in values.items()}


def as_verdicts(
    estimates: Mapping[str, Estimate], meaning: str, direction: Direction = "higher"
) -> list[dict[str, Any]]:
    """Measurements of a trial as verdicts without a threshold, in their JSON form."""
    verdicts = [Verdict.judge(name, one, direction=direction, good=meaning) for name, one in estimates.items()]
    return [verdict.to_json() for verdict in verdicts]


def share_verdict(name: str, met: Sequence[bool], *, good: str, bad: str) -> Verdict:
    """The share of cases that meet a condition; it passes if all of them do."""
    share = Estimate.exact(float(np.mean(met)), len(met))
    return Verdict.judge(name, share, direction="higher", threshold=1.0, good=good, bad=bad)
