"""What a linear probe reads from an agent as it learns: before its first step, and at every checkpoint of its run.

Probes are trained on the states that the agent learns from, and asked about whole groups that no agent has seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.alignment.probes import LinearProbe
from jepatlas.core.errors import InputError
from jepatlas.recipes import (
    MutualRecipe,
    TaughtRecipe,
    ViewImages,
    VisionRecipe,
    read_images,
    recipe_id,
)
from jepatlas.training import load_checkpoint, load_weights
from jepatlas.workflows.vision.agents import Seeing
from jepatlas.workflows.vision.graduates import agents_of

__all__ = ["Milestone", "first_to", "majority_of", "milestones", "stages"]

Trained = VisionRecipe | TaughtRecipe | MutualRecipe


@dataclass(frozen=True)
class Milestone:
    """After so many steps a probe was right on these held-out rows."""

    step: int
    hits: np.ndarray  # (held,) bool

    @property
    def accuracy(self) -> float:
        return float(self.hits.mean())


def milestones(recipe: Trained, folder: Path) -> dict[str, list[Milestone]]:
    """Of each agent of a run, by the name that `agents_of` gives it; an agent that learned alone is `own`."""
    members = {"own": (recipe, "")} if isinstance(recipe, VisionRecipe) else agents_of(recipe)
    seen = {name: read_images(agent) for name, (agent, _) in members.items()}
    found: dict[str, list[Milestone]] = {name: [] for name in members}
    for step, objective in stages(recipe, folder):
        for name, (agent, where) in members.items():
            own = objective.get_submodule(where).eval()
            found[name].append(Milestone(step, _hits(Seeing(agent, own, seen[name]), seen[name])))
    return found


def stages(recipe: Trained, folder: Path) -> Iterator[tuple[int, Any]]:
    """The objective of a run before its first step and at every checkpoint: one module, whose weights change."""
    kept, objective = _kept(folder), recipe.build()[0].to(recipe.training.device_here())
    yield 0, objective
    for step, path in kept:
        load_weights(objective, load_checkpoint(path, recipe_id(recipe)).tensors)
        yield step, objective


def _kept(folder: Path) -> list[tuple[int, Path]]:
    found = [(int(path.name.removeprefix("step-")), path) for path in (folder / "checkpoints").glob("step-*")]
    if not found:
        raise InputError(f"{folder} has no checkpoint, so nothing can be read from the agent.")
    return sorted(found)


def _hits(agent: Seeing, seen: ViewImages) -> np.ndarray:
    probe = LinearProbe.fit(agent.latents(seen.learnt), seen.table.labels(seen.learnt))
    return probe.predict(agent.latents(seen.held)) == seen.table.labels(seen.held)


def majority_of(labels: np.ndarray) -> float:
    """The share of the commonest class, which is what a constant guess gets right.

    >>> majority_of(np.array(["left", "straight", "straight", "straight"]))
    0.75
    """
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))


def first_to(curve: list[tuple[int, float]], threshold: float) -> float:
    """The step at which an accuracy is first reached, on straight lines between checkpoints; infinite where it is not.

    >>> first_to([(0, 0.25), (10, 0.5), (20, 0.25)], 0.5), first_to([(0, 0.25), (10, 0.5)], 0.375)
    (10.0, 5.0)
    """
    before = curve[0]
    for step, accuracy in curve:
        if accuracy >= threshold:
            rise = accuracy - before[1]
            return float(step) if rise <= 0 else before[0] + (step - before[0]) * (threshold - before[1]) / rise
        before = (step, accuracy)
    return float("inf")
