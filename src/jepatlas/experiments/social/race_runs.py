"""Runs of a race of ways to train, and its measures: epochs and operations until a probe reaches an accuracy.

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.rules import as_verdicts, point_estimates
from jepatlas.recipes import VisionRecipe, read_images
from jepatlas.workflows.runs import train_job
from jepatlas.workflows.vision import (
    Cost,
    collapse_verdict,
    cost_of,
    extract_agents,
    load_agent,
    majority_share,
    milestones,
    steps_to_reach,
)
from jepatlas.workflows.vision.training_cost import TrainedRecipe

__all__ = [
    "MIN_SEEDS",
    "Curve",
    "Runner",
    "WayRun",
    "combine_runs",
    "learned",
    "measure_race",
    "race_record",
    "reached",
    "train_way",
]

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


@dataclass(frozen=True)
class WayRun:
    """One way to train: how it ended and, if it finished, probe accuracies, cost of a step and directions of
    latents."""

    record: dict[str, Any]
    curve: Curve = field(default_factory=list)
    cost: Cost = field(default_factory=lambda: Cost(0.0))
    directions: float = np.nan

    @property
    def finished(self) -> bool:
        return self.record["status"] == "finished"


def train_way(recipe: TrainedRecipe, folder: Path) -> WayRun:
    """For two agents: their mean accuracy, and the directions of the one that has fewer."""
    record = train_job(to_plain(recipe), str(folder))
    if record["status"] != "finished":
        return WayRun(record)
    agents = list(milestones(recipe, folder).values())
    curve = []
    for marks in zip(*agents, strict=True):
        curve.append((marks[0].step, float(np.mean([mark.accuracy for mark in marks]))))
    folders = [folder] if isinstance(recipe, VisionRecipe) else extract_agents(folder).values()
    return WayRun(record, curve, cost_of(recipe), min(_directions(one) for one in folders))


def combine_runs(one: WayRun, other: WayRun) -> WayRun:
    """Two agents that were trained apart, as one way to train both."""
    curve = [(step, (a + b) / 2) for (step, a), (_, b) in zip(one.curve, other.curve, strict=True)]
    cost = Cost(one.cost.training + other.cost.training)
    return WayRun(one.record, curve, cost, min(one.directions, other.directions))


def _directions(folder: Path) -> float:
    """Number of directions along which the final latents of held-out states vary."""
    agent = load_agent(folder)
    return collapse_verdict(agent.latents(agent.seen.held)).value


def race_record(
    runs: Mapping[str, WayRun],
    settings: dict[str, Any],
    agent: VisionRecipe,
    prior: float,
    measured: dict[str, Estimate],
) -> dict[str, Any]:
    """All ways but the first are charged the prior cost."""
    seen = read_images(agent)
    epoch = len(seen.learnt) / agent.training.batch_size
    majority = majority_share(seen.table.labels(seen.held))
    runners = {}
    for number, (name, run) in enumerate(runs.items()):
        if run.finished:
            runners[name] = Runner(run.curve, run.cost, prior if number else 0.0)
    found = measure_race(runners, settings["threshold"], epoch, majority) | measured
    found |= point_estimates({f"{name}_directions": run.directions for name, run in runs.items()}, 1)
    return {
        "status": "finished",
        "verdicts": as_verdicts(found, "Of agents that were taught."),
        "epoch": epoch,
        "ways": {name: run.record["status"] for name, run in runs.items()},
        "curves": {name: run.curve for name, run in runs.items() if run.finished},
    }
