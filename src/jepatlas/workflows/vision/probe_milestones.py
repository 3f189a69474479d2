"""Linear probes at the checkpoints of a run, and the step at which they reach an accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.alignment.probes import LinearProbe
from jepatlas.core.errors import InputError
from jepatlas.recipes import VisionRecipe, any_recipe, read_images, recipe_id
from jepatlas.training import load_checkpoint, load_weights
from jepatlas.workflows.vision.training_cost import TrainedRecipe
from jepatlas.workflows.vision.vision_agent import VisionAgent

__all__ = ["Milestone", "agents_on_images", "checkpoint_objectives", "majority_share", "milestones", "steps_to_reach"]


@dataclass(frozen=True)
class Milestone:
    """Predictions of a probe on the held-out rows after some steps."""

    step: int
    hits: np.ndarray  # (held,) bool

    @property
    def accuracy(self) -> float:
        return float(self.hits.mean())


def agents_on_images(folder: Path) -> dict[str, VisionRecipe]:
    """The recipes of the agents of a run, by name; raises InputError for runs without agents on images."""
    recipe = any_recipe(folder)
    if not isinstance(recipe, TrainedRecipe):
        raise InputError(f"{folder} is not a run of agents on images, so probes cannot be evaluated.")
    return {name: agent for name, (agent, _) in recipe.agents.items()}


def milestones(recipe: TrainedRecipe, folder: Path) -> dict[str, list[Milestone]]:
    """Probe results of each agent of a run; a single agent is named "own"."""
    seen = {name: read_images(agent) for name, (agent, _) in recipe.agents.items()}
    found: dict[str, list[Milestone]] = {name: [] for name in recipe.agents}
    for step, objective in checkpoint_objectives(recipe, folder):
        for name, (agent, submodule) in recipe.agents.items():
            own = objective.get_submodule(submodule).eval()
            found[name].append(Milestone(step, _probe_hits(VisionAgent(agent, own, seen[name]))))
    return found


def checkpoint_objectives(recipe: TrainedRecipe, folder: Path) -> Iterator[tuple[int, Any]]:
    """The objective before training and at each checkpoint. It is one module whose weights are replaced."""
    paths = list((folder / "checkpoints").glob("step-*"))
    if not paths:
        raise InputError(f"{folder} has no checkpoint.")
    steps = sorted((int(path.name.removeprefix("step-")), path) for path in paths)
    objective = recipe.build()[0].to(recipe.training.device_here())
    yield 0, objective
    for step, path in steps:
        load_weights(objective, load_checkpoint(path, recipe_id(recipe)).tensors)
        yield step, objective


def _probe_hits(agent: VisionAgent) -> np.ndarray:
    table = agent.seen.table
    learnt = agent.seen.learnt
    held = agent.seen.held
    probe = LinearProbe.fit(agent.latents(learnt), table.labels(learnt))
    return probe.predict(agent.latents(held)) == table.labels(held)


def majority_share(labels: np.ndarray) -> float:
    """Share of the most frequent class: the accuracy of a constant prediction.

    >>> majority_share(np.array(["left", "straight", "straight", "straight"]))
    0.75
    """
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))


def steps_to_reach(curve: list[tuple[int, float]], threshold: float) -> float:
    """First step at which the accuracy reaches the threshold, linearly interpolated; infinite if it never does.

    >>> steps_to_reach([(0, 0.25), (10, 0.5), (20, 0.25)], 0.5), steps_to_reach([(0, 0.25), (10, 0.5)], 0.375)
    (10.0, 5.0)
    """
    last_step, last_accuracy = curve[0]
    for step, accuracy in curve:
        if accuracy >= threshold:
            rise = accuracy - last_accuracy
            if rise <= 0:
                return float(step)
            return last_step + (step - last_step) * (threshold - last_accuracy) / rise
        last_step, last_accuracy = step, accuracy
    return float("inf")
