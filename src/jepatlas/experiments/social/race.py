"""Races of ways to train: epochs and operations until a probe reaches an accuracy.

    epochs   until a probe on held-out groups reaches the threshold, interpolated linearly between checkpoints
    times    operations until then, the map included, relative to the first way
    all      the same including the prior cost: the teacher's training and its latents of the shared states

A way that does not reach the threshold is charged all of its training, which is less than it would need; `reached`
records this. A seed counts only if training alone starts below the threshold, reaches it, and ends above both its
start and the majority class: otherwise there is nothing to reach sooner. Costs are averaged geometrically over seeds,
so that the mean of ratios is the ratio of means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Result, point_estimates
from jepatlas.experiments.engine.seed_tables import geometric_mean_and_interval, mean_and_interval
from jepatlas.experiments.social.decisions import MIN_DIRECTIONS, informative
from jepatlas.workflows.vision import Cost, steps_to_reach

__all__ = [
    "MIN_SEEDS",
    "Curve",
    "Runner",
    "collapsed_seeds_of",
    "cost_verdict",
    "decidable",
    "final_gain",
    "gain_verdict",
    "learned",
    "measure_race",
    "reached",
    "significantly_cheaper",
    "why_undecidable",
]

Curve = list[tuple[int, float]]
"""(step, accuracy) at every checkpoint."""
MIN_SEEDS = 2
"""Seeds needed for an interval."""
BELOW_ONE = float(np.nextafter(1.0, 0.0))
"""Threshold of a cost ratio: an equal cost is no saving."""
MIN_GAIN = 1e-6
"""Smallest difference in accuracy that counts as a gain."""


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


def gain_verdict(results: Sequence[Result]) -> Verdict:
    """Does training alone raise the probe? Averaged over all seeds: those that learned were selected for it."""
    return Verdict.judge(
        "gain",
        mean_and_interval(results, "gain"),
        direction="higher",
        threshold=MIN_GAIN,
        good="Training alone raises the probe's accuracy.",
        bad="Training alone does not significantly raise the probe's accuracy, so nothing can be reached sooner.",
    )


def decidable(results: Sequence[Result]) -> bool:
    """Whether enough seeds count and the probe is significantly raised."""
    return len(learned(results)) >= MIN_SEEDS and bool(gain_verdict(results).passed)


def why_undecidable(results: Sequence[Result]) -> str:
    """The condition of `decidable` that is not met."""
    if gain_verdict(results).passed:
        return f"fewer than {MIN_SEEDS} seeds reached it alone"
    return "training alone does not significantly raise the probe"


def significantly_cheaper(
    results: Sequence[Result], name: str, first: str, measure: str, among: int = 1
) -> bool | None:
    """Whether a way significantly needs less than the first one, and reached the threshold with every seed.

    False if it significantly needs more. None if the seeds do not decide, or if latents of either way collapsed.
    """
    if collapsed_seeds_of(results, name) or collapsed_seeds_of(results, first):
        return None
    found = geometric_mean_and_interval(results, f"{name}_{measure}", among)
    if found.high < 1:
        return True if reached(results, name) == len(results) else None
    return False if found.low > 1 else None


def cost_verdict(
    results: Sequence[Result], name: str, first: str, cost: tuple[str, Estimate], *, null: float | None = None
) -> Verdict:
    """A named cost ratio of one way, which should be below 1.

    It fails if the threshold was not reached with every seed, and only informs if latents of either way collapsed.
    """
    verdict_name, ratio = cost
    verdict = Verdict.judge(
        verdict_name,
        ratio,
        direction="lower",
        threshold=BELOW_ONE,
        null=null,
        good="Teaching saves cost against training alone.",
        bad="Teaching does not significantly save cost against training alone.",
    )
    if verdict.passed and reached(results, name) < len(results):
        advice = "The threshold was not reached with every seed, so the cost is unknown."
        verdict = replace(verdict, passed=False, advice=advice)
    collapsed = collapsed_seeds_of(results, name) or collapsed_seeds_of(results, first)
    return informative(verdict, not collapsed)


def reached(results: Sequence[Result], name: str) -> int:
    """Number of seeds that reached the threshold."""
    return sum(result.value(f"{name}_reached") == 1 for result in results)


def collapsed_seeds_of(results: Sequence[Result], name: str) -> list[int]:
    """Seeds at which the final latents of a way have collapsed."""
    return [result.at["seed"] for result in results if result.value(f"{name}_directions") < MIN_DIRECTIONS]


def final_gain(results: Sequence[Result], name: str, other: str) -> Verdict:
    """Final accuracy of one way minus that of another, paired by seed. It informs and decides no claim."""
    differences = np.array([result.value(f"{name}_final") - result.value(f"{other}_final") for result in results])
    found = mean_interval(differences[np.isfinite(differences)])
    return Verdict.judge(
        f"{name}_over_{other}", found, direction="higher", good="Final accuracy minus that of the other way."
    )
