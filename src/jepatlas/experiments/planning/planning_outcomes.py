"""Success rates over the tasks of all seeds, and paired differences of two methods on the same tasks.

Intervals are over tasks (Wilson, Newcombe), for the given models. The success of each seed shows the variation between
models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.core.figures import Bars, BarSeries
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import paired_difference, success_rate
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.rules import Criterion, as_verdicts

__all__ = [
    "by_seed",
    "difference",
    "difference_criterion",
    "difference_verdict",
    "outcomes",
    "points",
    "share",
    "share_bars",
    "success_record",
]

NONE = Estimate.undefined(0)


def success_record(reached: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The record of a trial: success rate of each agent, and the outcome of every task."""
    shares = {f"{name}_success": success_rate(done) for name, done in reached.items()}
    every = {name: done.tolist() for name, done in reached.items()}
    return {"verdicts": as_verdicts(shares, "Share of tasks completed."), "reached": every}


def outcomes(results: Sequence[Result], name: str) -> dict[Any, np.ndarray]:
    """Outcomes (tasks,) of each seed whose trial finished."""
    ended = [result for result in results if "reached" in result.record]
    return {result.at["seed"]: np.array(result.record["reached"][name], bool) for result in ended}


def share(results: Sequence[Result], name: str = "agent") -> Estimate:
    """Success rate over the tasks of all seeds, with Wilson's interval."""
    found = list(outcomes(results, name).values())
    return success_rate(np.concatenate(found)) if found else NONE


def share_bars(title: str, names: Sequence[str], shares: Mapping[str, Sequence[Estimate]]) -> Bars:
    """Bars of success rates with their intervals: a series for each key, a group for each name."""
    series = [
        BarSeries(name, [one.value for one in row], [one.low for one in row], [one.high for one in row])
        for name, row in shares.items()
    ]
    return Bars(title=title, names=list(names), series=series, y_label="share of tasks [95%]")


def by_seed(results: Sequence[Result], name: str = "agent") -> str:
    """Success rate of each seed, as text.

    >>> by_seed([])
    '–'
    """
    return ", ".join(f"{done.mean():.2f}" for done in outcomes(results, name).values()) or "–"


def difference(
    first: Sequence[Result], second: Sequence[Result], names: tuple[str, str] = ("agent", "agent")
) -> Estimate:
    """Success of the first minus that of the second, paired by task, over seeds with which both finished."""
    one = outcomes(first, names[0])
    other = outcomes(second, names[1])
    both = [seed for seed in one if seed in other]
    if not both:
        return NONE
    return paired_difference(*(np.concatenate([found[seed] for seed in both]) for found in (one, other)))


def difference_criterion(name: str, gap: Estimate, required: str = "> 0") -> Criterion:
    """The interval of a difference of success rates must be above zero."""
    return Criterion(name, points(gap), required, gap.low > 0)


def difference_verdict(name: str, gap: Estimate, *, good: str, bad: str) -> Verdict:
    return Verdict.judge(name, gap, direction="higher", threshold=0.0, good=good, bad=bad)


def points(gap: Estimate) -> str:
    """A difference of rates in percentage points, as text.

    >>> points(Estimate(0.12, 0.05, 0.19, 150)), points(Estimate(-0.004, -0.02, 0.01, 150))
    ('+12 [+5, +19]', '+0 [-2, +1]')
    """
    if np.isnan(gap.value):
        return "–"
    value, low, high = (f"{100 * number:+z.0f}" for number in (gap.value, gap.low, gap.high))
    return f"{value} [{low}, {high}]"
