"""What became of tasks: shares over all seeds, and what two methods differ by on the same tasks.

Intervals are over tasks, Wilson's and Newcombe's: they are those of the models at hand. How much models of other seeds
differ is seen from the success of each seed, which stands beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate
from jepatlas.core.stats import paired_difference, success_rate
from jepatlas.experiments.engine.experiment import Result, as_verdicts

__all__ = ["by_seed", "difference", "outcomes", "points", "share", "told"]

NONE = Estimate(np.nan, np.nan, np.nan, 0)


def told(reached: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """What a trial reports: the share of each who drove, and the outcome of every task."""
    shares = {f"{name}_success": success_rate(done) for name, done in reached.items()}
    every = {name: done.tolist() for name, done in reached.items()}
    return {"verdicts": as_verdicts(shares, "Share of the tasks that were done."), "reached": every}


def outcomes(results: Sequence[Result], name: str) -> dict[Any, np.ndarray]:
    """The outcomes of each seed whose trial came to an end, (tasks,) bool."""
    ended = [result for result in results if "reached" in result.record]
    return {result.at["seed"]: np.array(result.record["reached"][name], bool) for result in ended}


def share(results: Sequence[Result], name: str = "agent") -> Estimate:
    """Over the tasks of all seeds, with Wilson's interval."""
    found = list(outcomes(results, name).values())
    return success_rate(np.concatenate(found)) if found else NONE


def by_seed(results: Sequence[Result], name: str = "agent") -> str:
    """
    >>> by_seed([])
    '–'
    """
    return ", ".join(f"{done.mean():.2f}" for done in outcomes(results, name).values()) or "–"


def difference(
    first: Sequence[Result], second: Sequence[Result], names: tuple[str, str] = ("agent", "agent")
) -> Estimate:
    """Success of the first less that of the second, task by task, over seeds with which both came to an end."""
    one, other = outcomes(first, names[0]), outcomes(second, names[1])
    both = [seed for seed in one if seed in other]
    if not both:
        return NONE
    return paired_difference(*(np.concatenate([found[seed] for seed in both]) for found in (one, other)))


def points(gap: Estimate) -> str:
    """
    >>> points(Estimate(0.12, 0.05, 0.19, 150)), points(Estimate(-0.004, -0.02, 0.01, 150))
    ('+12 [+5, +19]', '+0 [-2, +1]')
    """
    if np.isnan(gap.value):
        return "–"
    value, low, high = (f"{100 * number:+z.0f}" for number in (gap.value, gap.low, gap.high))
    return f"{value} [{low}, {high}]"
