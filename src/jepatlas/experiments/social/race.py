"""Who first comes to a probe's accuracy, in epochs and in operations: a race of ways to train.

    epochs   until a probe on held-out groups reaches the threshold, on straight lines between checkpoints
    times    operations until then, map included, over those of the first way
    all      the same with what was paid before: the teacher's training, and its latents of the shared states

A way that does not get there is charged all it had, which is less than it would need; `reached` tells. Where training
from scratch begins at the threshold, ends no higher than it began or than the commonest class alone would give, or does
not get to the threshold itself, there is nothing that could be reached sooner: such a seed is charged nothing and
counts in no mean. Means of costs over seeds are geometric, so that those of factors are factors of means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import geometric_mean_and_interval, mean_and_interval
from jepatlas.experiments.social.collapse import ENOUGH, unheard
from jepatlas.workflows.vision import Cost, first_to

__all__ = [
    "LEAST",
    "SOONER",
    "Curve",
    "Runner",
    "collapsed",
    "decidable",
    "final_gain",
    "gain_verdict",
    "heard",
    "learned",
    "raced",
    "reached",
    "sooner",
]

Curve = list[tuple[int, float]]
LEAST = 2  # seeds: one alone has no interval
SOONER = float(np.nextafter(1.0, 0.0))  # of what the first way needs: as much is not less
ABOVE = 1e-6  # what was not raised is no gain


@dataclass(frozen=True)
class Runner:
    """One way to train: a probe's accuracy as it goes, what a step costs, and what was paid before it."""

    curve: Curve
    cost: Cost
    before: float = 0.0


def raced(
    runners: Mapping[str, Runner], threshold: float | None, epoch: float, majority: float = 0.0
) -> dict[str, Estimate]:
    """All measures of all ways; the first way sets the threshold where none is given. `epoch` is in steps, `majority`
    the share of the commonest class among what is judged by."""
    first, *_ = runners
    start, end = (runners[first].curve[place][1] for place in (0, -1))
    goal = end if threshold is None else threshold
    found = {"threshold": goal, "untrained": start, "alone": end, "gain": end - start, "majority": majority}
    spent = {name: _spent(runner, goal) for name, runner in runners.items()}
    for name, runner in runners.items():
        steps, reached = spent[name]
        flops = steps * runner.cost.step
        found |= {
            f"{name}_reached": float(reached),
            f"{name}_epochs": steps / epoch,
            f"{name}_ratio": steps / spent[first][0],
            f"{name}_flops": flops,
            f"{name}_times": flops / (spent[first][0] * runners[first].cost.step),
            f"{name}_map": steps * runner.cost.map / flops,
            f"{name}_before": runner.before,
            f"{name}_all": (flops + runner.before) / (spent[first][0] * runners[first].cost.step),
            f"{name}_final": runner.curve[-1][1],
        }
    found["learned"] = float(start < goal and end > max(start, majority) and found[f"{first}_reached"])
    return {name: Estimate(value, value, value, 1) for name, value in found.items()}


def _spent(runner: Runner, goal: float) -> tuple[float, bool]:
    """Steps to the threshold, at least 1, or all there were."""
    steps = first_to(runner.curve, goal)
    return (max(1.0, steps), True) if np.isfinite(steps) else (float(runner.curve[-1][0]), False)


def learned(results: Sequence[Result]) -> list[Result]:
    """Seeds at which training from scratch raised the probe, above the commonest class and to the threshold."""
    return [r for r in results if r.value("learned") == 1]


def gain_verdict(results: Sequence[Result]) -> Verdict:
    """Whether training from scratch raises the probe, without which there is no race. In the mean over all seeds: over
    those that learned something it would be so by choice."""
    return Verdict.judge(
        "gain",
        mean_and_interval(results, "gain"),
        direction="higher",
        threshold=ABOVE,
        good="Training from scratch raises a probe's accuracy.",
        bad="Training from scratch does not surely raise a probe's accuracy, so nothing can be reached sooner.",
    )


def decidable(results: Sequence[Result]) -> bool:
    """Whether something can follow: enough seeds learned something, and the probe is raised beyond doubt."""
    return len(learned(results)) >= LEAST and bool(gain_verdict(results).passed)


def sooner(results: Sequence[Result], name: str, first: str, measure: str, among: int = 1) -> bool | None:
    """Whether one way surely needs less than the first, and got there with every seed; False where it surely needs
    more; None where seeds do not tell, or where latents of either way collapsed at some seed."""
    if collapsed(results, name) or collapsed(results, first):
        return None
    found = geometric_mean_and_interval(results, f"{name}_{measure}", among)
    if found.high < 1:
        return True if reached(results, name) == len(results) else None
    return False if found.low > 1 else None


def heard(results: Sequence[Result], name: str, first: str, verdict: Verdict) -> Verdict:
    """A verdict on what one way needs, which only informs where latents collapsed, and does not pass where it did not
    get there with every seed: it is charged less than it would need."""
    if verdict.passed and reached(results, name) < len(results):
        advice = "It did not get there with every seed, so its cost is not known."
        verdict = replace(verdict, passed=False, advice=advice)
    return unheard(verdict, not (collapsed(results, name) or collapsed(results, first)))


def reached(results: Sequence[Result], name: str) -> int:
    """With how many seeds it got there."""
    return sum(r.value(f"{name}_reached") == 1 for r in results)


def collapsed(results: Sequence[Result], name: str) -> list[int]:
    """The seeds at which latents vary along less than 2 directions in the end."""
    return [r.at["seed"] for r in results if r.value(f"{name}_directions") < ENOUGH]


def final_gain(results: Sequence[Result], name: str, other: str) -> Verdict:
    """How much more a probe reads in the end after one way than after another, from the same weights and batches: by
    paired differences over all seeds, also where nothing was reached sooner. It informs, and decides no claim."""
    apart = np.array([r.value(f"{name}_final") - r.value(f"{other}_final") for r in results])
    found = mean_interval(apart[np.isfinite(apart)])
    return Verdict.judge(
        f"{name}_over_{other}", found, direction="higher", good="Accuracy at the end, above that of the other way."
    )
