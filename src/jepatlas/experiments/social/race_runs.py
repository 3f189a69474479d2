"""One way to train in a race: its training, probe accuracies, cost and directions; and the record of all ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.rules import as_verdicts, point_estimates
from jepatlas.experiments.social.race_measures import Curve, Runner, measure_race
from jepatlas.recipes import MutualRecipe, TaughtRecipe, VisionRecipe, read_images
from jepatlas.workflows.runs import train_job
from jepatlas.workflows.vision import (
    Cost,
    collapse_verdict,
    cost_of,
    extract_agents,
    load_agent,
    majority_share,
    milestones,
)

__all__ = ["Recipe", "WayRun", "combine_runs", "race_record", "train_way"]

Recipe = VisionRecipe | TaughtRecipe | MutualRecipe


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


def train_way(recipe: Recipe, folder: Path) -> WayRun:
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
