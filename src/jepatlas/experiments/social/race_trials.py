"""Trials that race ways of training: agents alone and taught, and a probe's accuracy at every checkpoint.

In the scenes of `social-views` no objective raises a probe's accuracy on unseen objects: with 45 training objects it is
higher for an untrained network than for a trained agent. The races therefore use more objects in smaller images. World,
objective, learning rate and threshold were chosen by training alone, with other seeds, before any student was taught.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Plain, Run, Scale, Trial
from jepatlas.experiments.social.probe_sharing import share_probe
from jepatlas.experiments.social.race_runs import combine_runs, race_record, train_way
from jepatlas.experiments.social.scenes import WORLDS, source_of
from jepatlas.experiments.social.trained_agents import agent_trial
from jepatlas.objectives.teaching import DistillationConfig, MigrationConfig, MutualConfig, RunningMapConfig
from jepatlas.recipes import MutualRecipe, TaughtRecipe, TeacherFile, VisionRecipe
from jepatlas.training import ConstantSchedule
from jepatlas.workflows.runs import train_job
from jepatlas.workflows.vision import VisionAgent, cost_of, encoding_flops, load_agent, teacher_arrays
from jepatlas.workflows.vision.training_cost import TrainedRecipe
from jepatlas.worlds.objects import CATEGORIES, RenderedObjects

__all__ = ["RACES", "Race", "migration_trials", "mutual_trials", "prior_cost", "run_migration", "run_mutual"]

WEIGHT = 1.0
"""Weight of the teaching loss, which is in units of its target's variance, against the agent's own loss."""
TEACHERS = {"migration": "teacher", "logits": "teacher", "latents": "teacher", "shuffled": "shuffled"}


@dataclass(frozen=True)
class Race:
    """The agents of a race, and how they are measured."""

    scene: str
    world: RenderedObjects
    objective: str
    seeds: int
    checkpoints: int
    """Checkpoints at which a probe is trained."""
    pairs: int
    """Shared states in a step. Each costs a whole forward and backward pass, so there are few."""
    memory: float
    """Number of steps over which the running map averages."""
    threshold: float | None
    """Accuracy to reach; by default the final accuracy of training alone."""
    replicates: int
    size: int | None = None
    """Image size, if it differs from that of the usual agents."""
    training: Plain = field(default_factory=dict)
    """Changes to the training of the usual agents."""


MANY_OBJECTS = RenderedObjects(CATEGORIES, instances=200, azimuths=4, elevations=(30.0,), lights=("noon",), size=32)
"""6,400 states of 1,600 objects."""
RACES: dict[Scale, Race] = {
    "tiny": Race("rendered", WORLDS["tiny"], "ijepa", 1, 2, 16, 2.0, None, 5),
    "small": Race("rendered", MANY_OBJECTS, "simclr", 4, 12, 16, 40.0, 0.8, 200, 32, {"lr": 1e-3, "batch_size": 128}),
    "paper": Race("smallnorb", WORLDS["paper"], "ijepa", 3, 50, 64, 40.0, 0.85, 500),
}


def _trials(scale: Scale, seed: int, run: Run, settings: Callable[[Scale, int], Plain]) -> list[Trial]:
    """One trial per seed."""
    race = RACES[scale]
    trials = []
    for number in range(seed, seed + race.seeds):
        trials.append(Trial({"scene": race.scene, "seed": number}, run, settings(scale, number)))
    return trials


def migration_trials(scale: Scale, seed: int) -> list[Trial]:
    """Trials with a teacher of one view and students of the other."""
    return _trials(scale, seed, run_migration, _migration_settings)


def mutual_trials(scale: Scale, seed: int) -> list[Trial]:
    """Trials with two agents that learn at once."""
    return _trials(scale, seed, run_mutual, _mutual_settings)


def _migration_settings(scale: Scale, seed: int) -> Plain:
    recipes = [_recipe(scale, 0, seed, measured=False), _recipe(scale, 1, seed)]
    return _settings(scale, recipes) | {"replicates": RACES[scale].replicates}


def _mutual_settings(scale: Scale, seed: int) -> Plain:
    return _settings(scale, [_recipe(scale, view, seed) for view in range(2)])


def _settings(scale: Scale, recipes: list[Plain]) -> Plain:
    race = RACES[scale]
    return {
        "scene": race.scene,
        "world": to_plain(race.world),
        "threshold": race.threshold,
        "pairs": race.pairs,
        "recipes": recipes,
        "weight": WEIGHT,
        "memory": race.memory,
    }


def _recipe(scale: Scale, view: int, seed: int, *, measured: bool = True) -> Plain:
    """The recipe of an agent. A `measured` one keeps its checkpoints and has a constant learning rate after warm-up:
    under a decaying one, the accuracy at a step would depend on when training is to end."""
    race = RACES[scale]
    usual = from_plain(VisionRecipe, agent_trial(scale, race.scene, view, seed, race.objective).settings["recipe"])
    recipe = replace(usual, size=race.size or usual.size, training=replace(usual.training, **race.training))
    if not measured:
        return to_plain(recipe)
    warmup = max(1, recipe.training.steps // 10)
    every = recipe.training.steps // race.checkpoints
    training = replace(
        recipe.training, schedule=ConstantSchedule(warmup), checkpoint_every=every, keep=race.checkpoints + 1
    )
    return to_plain(replace(recipe, training=training))


def run_migration(settings: Plain, folder: str) -> Plain:
    """Train a teacher of one view, then students of the other: alone, taught in several ways, and, as a control, taught
    with the teacher's latents of other states."""
    place = Path(folder)
    teacher, student = _agents(settings)
    record = train_job(to_plain(teacher), str(place / "teacher"))
    if record["status"] != "finished":
        return record
    _write_teacher_files(place, teacher.seed)
    runs = {name: train_way(recipe, place / name) for name, recipe in _students(student, settings, place).items()}
    if not runs["scratch"].finished:
        return runs["scratch"].record
    agent = load_agent(place / "teacher")
    accuracies, lost = share_probe(agent, load_agent(place / "scratch"), teacher.seed, settings["replicates"])
    measured = {f"probe_{name}": value for name, value in accuracies.items()}
    return race_record(runs, settings, student, prior_cost(agent), measured) | {"probe_lost": lost}


def prior_cost(teacher: VisionAgent) -> float:
    """Operations of the teacher's training and of its latents of the shared states."""
    recipe = teacher.recipe
    training = cost_of(recipe).step * recipe.training.steps
    return training + encoding_flops(teacher.objective, recipe.size, len(teacher.seen.learnt))


def run_mutual(settings: Plain, folder: str) -> Plain:
    """Train two agents apart, and pairs of agents that teach each other."""
    place = Path(folder)
    first, second = _agents(settings)
    alone = [train_way(agent, place / name) for name, agent in (("first", first), ("second", second))]
    for run in alone:
        if not run.finished:
            return run.record
    teaching = MutualConfig(weight=settings["weight"], memory=settings["memory"])
    mutual = MutualRecipe(first, second, teaching, settings["pairs"])
    runs = {"apart": combine_runs(*alone)}
    for method in ("alternating", "cross"):
        runs[method] = train_way(replace(mutual, teaching=replace(teaching, method=method)), place / method)
    return race_record(runs, settings, first, 0.0, {})


def _agents(settings: Plain) -> list[VisionRecipe]:
    images = source_of(settings["scene"], from_plain(RenderedObjects, settings["world"]))
    return [replace(from_plain(VisionRecipe, plain), images=images) for plain in settings["recipes"]]


def _write_teacher_files(place: Path, seed: int) -> None:
    """Written once: a resumed trial must find the files that its students began with."""
    if (place / "shuffled.npz").exists():
        return
    arrays = teacher_arrays(place / "teacher")
    write_arrays(place / "teacher.npz", arrays)
    order = numpy_generator(seed, "shuffled").permutation(len(arrays["h"]))
    write_arrays(place / "shuffled.npz", arrays | {"h": arrays["h"][order]})


def _students(student: VisionRecipe, settings: Plain, place: Path) -> Mapping[str, TrainedRecipe]:
    weight = settings["weight"]
    migration = MigrationConfig(weight, map=RunningMapConfig(memory=settings["memory"]))
    teachings = {
        "migration": migration,
        "shuffled": migration,
        "logits": DistillationConfig(weight),
        "latents": DistillationConfig(weight, "latents"),
    }
    students: dict[str, TrainedRecipe] = {"scratch": student}
    for name, teaching in teachings.items():
        teacher = TeacherFile(str(place / f"{TEACHERS[name]}.npz")).sealed()
        students[name] = TaughtRecipe(teacher, teaching, settings["pairs"], student)
    return students
