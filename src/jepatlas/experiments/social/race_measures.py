"""Races of ways to train: epochs and operations until a probe reaches an accuracy.

    epochs   until a probe on held-out groups reaches the threshold, interpolated linearly between checkpoints
    times    operations until then, the map included, relative to the first way
    all      the same including the prior cost: the teacher's training and its latents of the shared states

A way that does not reach the threshold is charged all of its training, which is less than it would need; `reached`
records this. A seed counts only if training alone starts below the threshold, reaches it, and ends above both its
start and the majority class: otherwise there is nothing to reach sooner. Costs are averaged geometrically over seeds,
so that the mean of ratios is the ratio of means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.rules import point_estimates
from jepatlas.workflows.vision import Cost, steps_to_reach

__all__ = ["MIN_SEEDS", "Curve", "Runner", "learned", "measure_race", "reached"]

Curve = list[tuple[int, float]]
"""(step, accuracy) at every checkpoint."""
MIN_SEEDS = 2
"""Seeds needed for an interval."""


@dataclass(frozen=True)
class Runner:
    """One way to train: probe accuracies, cost of a step, and the cost before it starts."""

    curve: Curve
    cost: Cost
    prior: float = 0.0


def measure_race(
    runners: Mapping[str, Runner], threshold: float | None, epoch: float, majority: float = 0.0
) -> dict[str, Estimate]:
    """All measures of all ways.

    The threshold defaults to the final accuracy of the first way. `epoch` is in steps; `majority` is the share of the
    majority class among the states that are scored.
    """
    first, *_ = runners
    start = runners[first].curve[0][1]
    end = runners[first].curve[-1][1]
    goal = end if threshold is None else threshold
    found = {"threshold": goal, "untrained": start, "alone": end, "gain": end - start, "majority": majority}
    first_steps, first_reached = _steps_to(runners[first], goal)
    first_flops = first_steps * runners[first].cost.step
    for name, runner in runners.items():
        steps, has_reached = _steps_to(runner, goal)
        flops = steps * runner.cost.step
        found |= {
            f"{name}_reached": float(has_reached),
            f"{name}_epochs": steps / epoch,
            f"{name}_ratio": steps / first_steps,
            f"{name}_flops": flops,
            f"{name}_times": flops / first_flops,
            f"{name}_map": steps * runner.cost.map / flops,
            f"{name}_before": runner.prior,
            f"{name}_all": (flops + runner.prior) / first_flops,
            f"{name}_final": runner.curve[-1][1],
        }
    found["learned"] = float(start < goal and end > max(start, majority) and first_reached)
    return point_estimates(found, 1)


def _steps_to(runner: Runner, goal: float) -> tuple[float, bool]:
    """Steps to the threshold, at least 1; or all steps, if it is not reached."""
    steps = steps_to_reach(runner.curve, goal)
    if np.isfinite(steps):
        return max(1.0, steps), True
    return float(runner.curve[-1][0]), False


def learned(results: Sequence[Result]) -> list[Result]:
    """Seeds that count."""
    return [result for result in results if result.value("learned") == 1]


def reached(results: Sequence[Result], name: str) -> int:
    """Number of seeds that reached the threshold."""
    return sum(result.value(f"{name}_reached") == 1 for result in results)
