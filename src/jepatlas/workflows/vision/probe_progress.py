"""Accuracy of linear probes during training, by epochs and by operations.

A probe is fitted at every checkpoint to the states that the agent learns from, and evaluated on whole groups that no
agent was trained on. Runs of other agents can be compared: trained alone, or taught in another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.alignment import half_sample_intervals
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record
from jepatlas.core.seeding import numpy_generator
from jepatlas.recipes import ViewImages, any_recipe, read_images
from jepatlas.workflows.vision.probe_milestones import agents_on_images, majority_share, milestones
from jepatlas.workflows.vision.training_cost import Cost, cost_of
from jepatlas.workflows.vision.vision_agent import labels_of

__all__ = ["judge_progress"]

MAX_IMAGES = 20_000  # with more, probes at every checkpoint would take longer than the training
FEW_CHECKPOINTS = 4


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


def _probe_curves(folder: Path, *, with_folder: bool = False) -> list[_ProbeCurve]:
    """The curve of each agent of a run; empty if probes cannot be fitted."""
    recipe: Any = any_recipe(folder)
    members = agents_on_images(folder)
    seen = {name: read_images(agent) for name, agent in members.items()}
    if not all(_can_fit_probe(images) for images in seen.values()):
        return []
    cost = cost_of(recipe)
    curves = []
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
    first = course.accuracy[0]
    last = course.accuracy[-1]
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
