"""Accuracy of linear probes during training, by epochs and by operations.

A probe is fitted at every checkpoint to the states that the agent learns from, and evaluated on whole groups that no
agent was trained on. Runs of other agents can be compared: trained alone, or taught in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jepatlas.alignment import half_sample_intervals
from jepatlas.alignment.probes import LinearProbe
from jepatlas.core.contracts import Objective
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record
from jepatlas.core.seeding import numpy_generator
from jepatlas.objectives.teaching import Migration, MutualTeaching, RunningMap, Student
from jepatlas.recipes import (
    MutualRecipe,
    TaughtRecipe,
    ViewImages,
    VisionRecipe,
    any_recipe,
    read_images,
    recipe_id,
)
from jepatlas.training import load_checkpoint, load_weights
from jepatlas.training.flops import counted_flops, step_flops
from jepatlas.workflows.vision.latent_collapse import labels_of
from jepatlas.workflows.vision.teaching_runs import member_agents
from jepatlas.workflows.vision.vision_agent import VisionAgent

__all__ = [
    "Cost",
    "Milestone",
    "agents_on_images",
    "checkpoint_objectives",
    "cost_of",
    "encoding_flops",
    "judge_progress",
    "majority_share",
    "milestones",
    "steps_to_reach",
]

MAX_IMAGES = 20_000  # with more, probes at every checkpoint would take longer than the training
FEW_CHECKPOINTS = 4

TrainedRecipe = VisionRecipe | TaughtRecipe | MutualRecipe


@dataclass(frozen=True)
class Milestone:
    """Predictions of a probe on the held-out rows after some steps."""

    step: int
    hits: np.ndarray  # (held,) bool

    @property
    def accuracy(self) -> float:
        return float(self.hits.mean())


@dataclass(frozen=True)
class Cost:
    """Operations of one training step; `map` is the part of the running map (sums and solve)."""

    training: float
    map: float = 0.0

    @property
    def step(self) -> float:
        return self.training + self.map


@dataclass(frozen=True)
class _ProbeCurve:
    """Probe accuracies of one agent at its checkpoints."""

    name: str
    steps: list[int]
    accuracy: list[Estimate]
    epoch: float  # in steps
    cost: Cost
    majority: float  # share of the most frequent class

    def curve(self, unit: float) -> Curve:
        """The curve against steps times `unit`."""
        return Curve(
            self.name,
            [step * unit for step in self.steps],
            [round(one.value, 4) for one in self.accuracy],
            low=[round(one.low, 4) for one in self.accuracy],
            high=[round(one.high, 4) for one in self.accuracy],
        )


def judge_progress(folder: Path, beside: Sequence[Path] = ()) -> Record | None:
    """Save the record `progress`; None if there are no labels, only one label, or too many images."""
    own = _probe_curves(folder)
    if not own:
        return None
    curves = list(own)
    for other in beside:
        curves += _probe_curves(other, with_folder=True)
    by_epochs = [one.curve(1 / one.epoch) for one in curves]
    by_operations = [one.curve(one.cost.step) for one in curves]
    note = (
        "Held-out groups that no agent was trained on; bands are 95% intervals by groups. For two agents that learn "
        "together, operations are those of both. The training of a stored teacher is not included."
    )
    if max(len(one.steps) for one in own) < FEW_CHECKPOINTS:
        note += " Keep more checkpoints for more points: --checkpoint-every, --keep."
    figure = Curves(
        title="Probe accuracy during training",
        panels=[
            CurvePanel(by_epochs, "by epochs", x_label="epochs"),
            CurvePanel(by_operations, "by operations", x_label="operations"),
        ],
        y_label="probe accuracy, held out",
        note=note,
    )
    record = Record(
        "Progress",
        " ".join(_summary(one) for one in own),
        provenance(int(any_recipe(folder).seed)),
        figures=(figure,),
        tables=(_table(curves),),
    )
    record.save(folder, "progress")
    return record


def agents_on_images(folder: Path) -> dict[str, VisionRecipe]:
    """The recipes of the agents of a run, by name; raises InputError for runs without agents on images."""
    recipe: Any = any_recipe(folder)
    if isinstance(recipe, VisionRecipe):
        return {"own": recipe}
    if isinstance(recipe, TaughtRecipe | MutualRecipe):
        return {name: agent for name, (agent, _) in member_agents(recipe).items()}
    raise InputError(f"{folder} is not a run of agents on images, so probes cannot be evaluated.")


def milestones(recipe: TrainedRecipe, folder: Path) -> dict[str, list[Milestone]]:
    """Probe results of each agent of a run; a single agent is named "own"."""
    members = {"own": (recipe, "")} if isinstance(recipe, VisionRecipe) else member_agents(recipe)
    seen = {name: read_images(agent) for name, (agent, _) in members.items()}
    found: dict[str, list[Milestone]] = {name: [] for name in members}
    for step, objective in checkpoint_objectives(recipe, folder):
        for name, (agent, submodule) in members.items():
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
    table, learnt, held = agent.seen.table, agent.seen.learnt, agent.seen.held
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


def _probe_curves(folder: Path, *, with_folder: bool = False) -> list[_ProbeCurve]:
    """The curve of each agent of a run; empty if probes cannot be fitted."""
    recipe: Any = any_recipe(folder)
    members = agents_on_images(folder)
    seen = {name: read_images(agent) for name, agent in members.items()}
    if not all(_can_fit_probe(images) for images in seen.values()):
        return []
    cost, curves = cost_of(recipe), []
    for name, marks in milestones(recipe, folder).items():
        title = name
        if name == "own":
            title = folder.name
        elif with_folder:
            title = f"{folder.name}, {name}"
        images = seen[name]
        curves.append(
            _ProbeCurve(
                name=title,
                steps=[mark.step for mark in marks],
                accuracy=[_accuracy_interval(mark.hits, images) for mark in marks],
                epoch=len(images.learnt) / members[name].training.batch_size,
                cost=cost,
                majority=majority_share(images.table.labels(images.held)),
            )
        )
    return curves


def _can_fit_probe(seen: ViewImages) -> bool:
    labels = labels_of(seen.table, np.arange(len(seen.images)))
    return len(seen.images) <= MAX_IMAGES and labels is not None and len(np.unique(labels[seen.learnt])) > 1


def _accuracy_interval(hits: np.ndarray, seen: ViewImages) -> Estimate:
    groups = seen.table.column("group" if "group" in seen.table.columns else "state")[seen.held]
    if len(np.unique(groups)) < 2:
        return Estimate(float(hits.mean()), np.nan, np.nan, len(hits))
    found = half_sample_intervals(
        lambda rows: {"accuracy": float(hits[rows].mean())},
        len(hits),
        numpy_generator(0, "progress"),
        groups=groups,
        ranges={"accuracy": (0.0, 1.0)},
    )
    return found["accuracy"]


def _summary(course: _ProbeCurve) -> str:
    first, last = course.accuracy[0], course.accuracy[-1]
    change = "rises" if last.value >= first.value else "falls"
    return (
        f"{course.name}: held-out probe accuracy {change} from {first.value:.3f} before training to {last.value:.3f} "
        f"[{last.low:.3f}, {last.high:.3f}] after {course.steps[-1] / course.epoch:.1f} epochs; the most frequent "
        f"class gives {course.majority:.3f}."
    )


def _table(curves: Sequence[_ProbeCurve]) -> Table:
    rows = []
    for one in curves:
        for step, found in zip(one.steps, one.accuracy, strict=True):
            rows.append(
                [
                    one.name,
                    step,
                    f"{step / one.epoch:.1f}",
                    f"{step * one.cost.step:.3g}",
                    f"{one.cost.map / one.cost.step:.2%}" if step else "–",
                    f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]",
                    f"{one.majority:.3f}",
                ]
            )
    columns = ["agent", "steps", "epochs", "operations", "share of the map", "probe accuracy", "majority class"]
    return Table("Checkpoints", columns, rows)


def cost_of(recipe: TrainedRecipe) -> Cost:
    """Operations of one step. For alternating teaching, the mean over both turns, since the agents may differ."""
    objective, batches = recipe.build()
    each = []
    turns = 2 if isinstance(objective, MutualTeaching) and objective.config.method == "alternating" else 1
    for turn in range(turns):
        if isinstance(objective, MutualTeaching):
            objective.whose.fill_(turn)
        each.append(step_flops(objective, batches, recipe.training.accumulate))
    pairs = 0 if isinstance(recipe, VisionRecipe) else recipe.pairs
    return Cost(sum(each) / len(each), sum(running_map.flops(pairs) for running_map in _maps(objective)))


def _maps(objective: Objective) -> list[RunningMap]:
    if isinstance(objective, MutualTeaching):
        return list(objective.maps)
    if isinstance(objective, Student) and isinstance(objective.lesson, Migration):
        return [objective.lesson.map]
    return []


@torch.no_grad()
def encoding_flops(objective: Any, size: int, count: int) -> float:
    """Operations to encode `count` images of height and width `size`."""
    device = next(objective.parameters()).device
    with counted_flops() as counter:
        objective.encode(torch.zeros(1, 3, size, size, device=device))
    return float(counter.get_total_flops() * count)
