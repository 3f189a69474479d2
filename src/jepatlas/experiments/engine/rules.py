"""Rules of experiments: criteria, the outcome that follows from them, and measurements as verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from jepatlas.core.records import Direction, Estimate, Verdict

__all__ = [
    "Criterion",
    "Outcome",
    "as_verdicts",
    "combined",
    "count_met",
    "decide",
    "exact_verdicts",
    "outcome_in_stages",
    "outcome_of",
    "outcome_of_criteria",
    "point_estimates",
    "share_verdict",
]

Outcome = Literal["holds", "holds in part", "does not hold", "undecided", "measured"]
"""`measured`: the paper leaves the question open, so there is no claim to judge."""


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


def decide(
    found: Sequence[Estimate],
    counts: Sequence[bool] | None = None,
    *,
    threshold: float = 0.0,
    direction: Direction = "higher",
) -> Outcome:
    """Outcome of a claim from numbers that should be above (or below) a threshold, by their intervals.

    It holds if all of them are significantly, and in part if some are. If none is, it does not hold if one is
    significantly on the other side, and is undecided if all intervals contain the threshold. Numbers with `counts`
    False are excluded, and what rests on the remaining ones holds in part at most.

    >>> sure, unsure, wrong = (Estimate(v, v - 1, v + 1, 3) for v in (2.0, 0.5, -2.0))
    >>> decide([sure, sure]), decide([sure, wrong]), decide([unsure, wrong]), decide([unsure])
    ('holds', 'holds in part', 'does not hold', 'undecided')
    >>> decide([sure, wrong], [True, False]), decide([sure], [False]), decide([wrong], direction="lower")
    ('holds in part', 'undecided', 'holds')
    """
    if counts is None:
        counts = [True] * len(found)
    counted = [estimate for estimate, count in zip(found, counts, strict=True) if count]
    above = [estimate.low > threshold for estimate in counted]
    below = [estimate.high < threshold for estimate in counted]
    met, refuted = (above, below) if direction == "higher" else (below, above)
    if any(met):
        return "holds" if all(met) and all(counts) else "holds in part"
    return "does not hold" if any(refuted) else "undecided"


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


def exact_verdicts(values: Mapping[str, float], n: int, meaning: str) -> list[dict[str, Any]]:
    """Numbers without an interval, from n samples, as verdicts without a threshold."""
    return as_verdicts(point_estimates(values, n), meaning)


def share_verdict(name: str, met: Sequence[bool], *, good: str, bad: str) -> Verdict:
    """The share of cases that meet a condition; it passes if all of them do."""
    share = Estimate.exact(float(np.mean(met)), len(met))
    return Verdict.judge(name, share, direction="higher", threshold=1.0, good=good, bad=bad)
