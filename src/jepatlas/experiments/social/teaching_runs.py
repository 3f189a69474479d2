"""What one trial of teaching does: train agents alone and in company, and read a probe from each as it goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.energy.energy_runs import exactly
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.social.race import Curve, Runner, raced
from jepatlas.experiments.social.scenes import source_of
from jepatlas.experiments.social.sharing import share_probe
from jepatlas.objectives.teaching import DistillationConfig, MigrationConfig, MutualConfig, RunningMapConfig
from jepatlas.recipes import MutualRecipe, TaughtRecipe, TeacherFile, VisionRecipe, read_images
from jepatlas.workflows.runs import train_job
from jepatlas.workflows.vision import (
    Cost,
    Seeing,
    collapse_verdict,
    cost_of,
    encoding_flops,
    graduate,
    load_agent,
    majority_of,
    milestones,
    teacher_arrays,
)
from jepatlas.worlds.objects import RenderedObjects

__all__ = ["paid_before", "run_migration", "run_mutual"]

Recipe = VisionRecipe | TaughtRecipe | MutualRecipe
TEACHERS = {"migration": "teacher", "logits": "teacher", "latents": "teacher", "shuffled": "shuffled"}


@dataclass(frozen=True)
class _Way:
    """How a run ended and, where it finished, what a probe read, what a step costs, and whether latents vary."""

    record: dict[str, Any]
    curve: Curve = field(default_factory=list)
    cost: Cost = field(default_factory=lambda: Cost(0.0))
    directions: float = np.nan

    @property
    def finished(self) -> bool:
        return self.record["status"] == "finished"


def run_migration(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """A teacher of one view; students of the other: alone, taught in several ways, and told of other states."""
    place, (teacher, student) = Path(folder), _agents(settings)
    record = train_job(to_plain(teacher), str(place / "teacher"))
    if record["status"] != "finished":
        return record
    _keep_lessons(place, teacher.seed)
    ways = {name: _trained(recipe, place / name) for name, recipe in _students(student, settings, place).items()}
    if not ways["scratch"].finished:
        return ways["scratch"].record
    agent = load_agent(place / "teacher")
    before = paid_before(agent)
    shared, lost = share_probe(agent, load_agent(place / "scratch"), teacher.seed, settings["replicates"])
    record = _record(ways, settings, student, before, {f"probe_{name}": value for name, value in shared.items()})
    return record | {"probe_lost": lost}


def paid_before(teacher: Seeing) -> float:
    """Operations of a teacher's training, and of its latents of the states that it tells of."""
    recipe = teacher.recipe
    training = cost_of(recipe).step * recipe.training.steps
    return training + encoding_flops(teacher.objective, recipe.size, len(teacher.seen.learnt))


def run_mutual(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Two agents that learn apart, and pairs that learn together."""
    place, (first, second) = Path(folder), _agents(settings)
    alone = [_trained(agent, place / name) for name, agent in (("first", first), ("second", second))]
    if lost := [way.record for way in alone if not way.finished]:
        return lost[0]
    teaching = MutualConfig(weight=settings["weight"], memory=settings["memory"])
    mutual = MutualRecipe(first, second, teaching, settings["pairs"])
    together = {
        method: _trained(replace(mutual, teaching=replace(teaching, method=method)), place / method)
        for method in ("alternating", "cross")
    }
    return _record({"apart": _joined(*alone)} | together, settings, first, 0.0, {})


def _agents(settings: dict[str, Any]) -> list[VisionRecipe]:
    images = source_of(settings["scene"], from_plain(RenderedObjects, settings["world"]))
    return [replace(from_plain(VisionRecipe, plain), images=images) for plain in settings["recipes"]]


def _keep_lessons(place: Path, seed: int) -> None:
    """Once: a trial that goes on must find the files that its students began with."""
    if not (place / "shuffled.npz").exists():
        lessons = teacher_arrays(place / "teacher")
        write_arrays(place / "teacher.npz", lessons)
        order = numpy_generator(seed, "shuffled").permutation(len(lessons["h"]))
        write_arrays(place / "shuffled.npz", lessons | {"h": lessons["h"][order]})


def _students(student: VisionRecipe, settings: dict[str, Any], place: Path) -> Mapping[str, Recipe]:
    weight = settings["weight"]
    migration = MigrationConfig(weight, map=RunningMapConfig(memory=settings["memory"]))
    teachings = {
        "migration": migration,
        "shuffled": migration,
        "logits": DistillationConfig(weight),
        "latents": DistillationConfig(weight, "latents"),
    }
    taught = {
        name: TaughtRecipe(
            TeacherFile(str(place / f"{TEACHERS[name]}.npz")).sealed(), teaching, settings["pairs"], student
        )
        for name, teaching in teachings.items()
    }
    return {"scratch": student} | taught


def _trained(recipe: Recipe, folder: Path) -> _Way:
    """Of two agents the mean accuracy, and the directions of the one that has fewer."""
    record = train_job(to_plain(recipe), str(folder))
    if record["status"] != "finished":
        return _Way(record)
    read = list(milestones(recipe, folder).values())
    curve = [(marks[0].step, float(np.mean([mark.accuracy for mark in marks]))) for marks in zip(*read, strict=True)]
    places = [folder] if isinstance(recipe, VisionRecipe) else graduate(folder).values()
    return _Way(record, curve, cost_of(recipe), min(map(_directions, places)))


def _joined(one: _Way, other: _Way) -> _Way:
    """Two agents that learned apart, as one way to train both."""
    curve = [(step, (a + b) / 2) for (step, a), (_, b) in zip(one.curve, other.curve, strict=True)]
    cost = Cost(one.cost.training + other.cost.training)
    return _Way(one.record, curve, cost, min(one.directions, other.directions))


def _directions(folder: Path) -> float:
    """Along how many directions the latents of held-out states vary in the end."""
    agent = load_agent(folder)
    return collapse_verdict(agent.latents(agent.seen.held)).value


def _record(
    ways: Mapping[str, _Way],
    settings: dict[str, Any],
    agent: VisionRecipe,
    before: float,
    measured: dict[str, Estimate],
) -> dict[str, Any]:
    """All ways but the first are charged what was paid before."""
    seen = read_images(agent)
    epoch, majority = len(seen.learnt) / agent.training.batch_size, majority_of(seen.table.labels(seen.held))
    runners = {
        name: Runner(way.curve, way.cost, before if number else 0.0)
        for number, (name, way) in enumerate(ways.items())
        if way.finished
    }
    found = raced(runners, settings["threshold"], epoch, majority) | measured
    found |= {f"{name}_directions": exactly(way.directions, 1) for name, way in ways.items()}
    return {
        "status": "finished",
        "verdicts": as_verdicts(found, "Of agents that were taught."),
        "epoch": epoch,
        "ways": {name: way.record["status"] for name, way in ways.items()},
        "curves": {name: way.curve for name, way in ways.items() if way.finished},
    }
