"""How agents that are taught come along: a probe's accuracy at every checkpoint, by epochs and by operations.

Runs of other agents can be drawn beside them: one that learned alone, one that was taught in another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.alignment import half_sample_intervals
from jepatlas.core.errors import InputError
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record
from jepatlas.core.seeding import numpy_generator
from jepatlas.recipes import MutualRecipe, TaughtRecipe, ViewImages, VisionRecipe, any_recipe, read_images
from jepatlas.workflows.vision.costs import Cost, cost_of
from jepatlas.workflows.vision.graduates import agents_of
from jepatlas.workflows.vision.milestones import majority_of, milestones
from jepatlas.workflows.vision.samples import labels_of

__all__ = ["agents_on_images", "judge_progress"]

MOST = 20_000  # images of an agent, beyond which a probe at every checkpoint would take longer than its training


@dataclass(frozen=True)
class Course:
    """One agent's way: at these steps a probe was right so often."""

    name: str
    steps: list[int]
    accuracy: list[Estimate]
    epoch: float  # in steps
    cost: Cost  # of a step of its run
    majority: float  # what the commonest class alone gives

    def series(self, unit: float) -> dict[str, Any]:
        """A line of the figure; `unit` is what one step counts."""
        found = {"y": "value", "low": "low", "high": "high"}
        lines = {key: [round(getattr(one, end), 4) for one in self.accuracy] for key, end in found.items()}
        return {"name": self.name, "x": [step * unit for step in self.steps], **lines}


def judge_progress(folder: Path, beside: Sequence[Path] = ()) -> Record | None:
    """Keep `records/progress.json`; nothing where a probe has no labels, one alone, or too many images."""
    own = _courses(folder)
    if not own:
        return None
    courses = [*own, *(course for other in beside for course in _courses(other, named=True))]
    units = {"epochs": [1 / one.epoch for one in courses], "operations": [one.cost.step for one in courses]}
    panels = [
        {
            "title": f"by {name}",
            "x_label": name,
            "series": [one.series(unit) for one, unit in zip(courses, each, strict=True)],
        }
        for name, each in units.items()
    ]
    few = max(len(one.steps) for one in own) < 4
    figure = {
        "kind": "curves",
        "title": "What a probe reads from the agents as they learn",
        "panels": panels,
        "y_label": "probe accuracy, held out",
        "note": "Whole groups that no agent has learned from; bands are 95% intervals by groups. Of two agents that "
        "learn together, operations are those of both; what a teacher's own training took is not among them."
        + (" More checkpoints give more points: --checkpoint-every, --keep." if few else ""),
    }
    record = Record(
        "As they learn",
        " ".join(map(_said, own)),
        provenance(_seed(folder)),
        figures=(figure,),
        tables=(_table(courses),),
    )
    record.save(folder, "progress")
    return record


def agents_on_images(folder: Path) -> dict[str, VisionRecipe]:
    """The agents of a run by name; a run of anything else is refused."""
    recipe: Any = any_recipe(folder)
    if not isinstance(recipe, VisionRecipe | TaughtRecipe | MutualRecipe):
        raise InputError(f"{folder} is not a run of agents on images, so there is no probe of theirs to draw.")
    if isinstance(recipe, VisionRecipe):
        return {"own": recipe}
    return {name: agent for name, (agent, _) in agents_of(recipe).items()}


def _courses(folder: Path, *, named: bool = False) -> list[Course]:
    """Of each agent of a run; `named` after its folder, where it stands beside another run's."""
    recipe: Any = any_recipe(folder)
    members = agents_on_images(folder)
    seen = {name: read_images(agent) for name, agent in members.items()}
    if not all(_readable(one) for one in seen.values()):
        return []
    cost, courses = cost_of(recipe), []
    for name, marks in milestones(recipe, folder).items():
        title = folder.name if name == "own" else f"{folder.name}, {name}" if named else name
        accuracy = [_interval(mark.hits, seen[name]) for mark in marks]
        epoch = len(seen[name].learnt) / members[name].training.batch_size
        majority = majority_of(seen[name].table.labels(seen[name].held))
        courses.append(Course(title, [mark.step for mark in marks], accuracy, epoch, cost, majority))
    return courses


def _readable(seen: ViewImages) -> bool:
    """Whether there are labels for a probe to tell apart, and images that it can be trained on in a while."""
    labels = labels_of(seen.table, np.arange(len(seen.images)))
    return len(seen.images) <= MOST and labels is not None and len(np.unique(labels[seen.learnt])) > 1


def _interval(hits: np.ndarray, seen: ViewImages) -> Estimate:
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


def _said(course: Course) -> str:
    first, last = course.accuracy[0], course.accuracy[-1]
    return (
        f"{course.name}: a probe's accuracy on held-out groups goes from {first.value:.3f} before the first step "
        f"to {last.value:.3f} [{last.low:.3f}, {last.high:.3f}] after {course.steps[-1] / course.epoch:.1f} "
        f"epochs; the commonest class alone gives {course.majority:.3f}."
    )


def _table(courses: Sequence[Course]) -> dict[str, Any]:
    rows = [
        [
            one.name,
            step,
            f"{step / one.epoch:.1f}",
            f"{step * one.cost.step:.3g}",
            f"{one.cost.map / one.cost.step:.2%}" if step else "–",
            f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]",
            f"{one.majority:.3f}",
        ]
        for one in courses
        for step, found in zip(one.steps, one.accuracy, strict=True)
    ]
    columns = ["agent", "steps", "epochs", "operations", "of which the map", "probe accuracy", "commonest class"]
    return {"title": "At every checkpoint that was kept", "columns": columns, "rows": rows}


def _seed(folder: Path) -> int:
    return int(any_recipe(folder).seed)
