"""What one trial of `ported-planner` does: two world models of one world, trained apart through two cameras.

The planner of the first, its dynamics and its energy, drives the camera of the second through maps that are fitted on
different numbers of shared states. All drive the same tasks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.config import from_plain
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.planning.planning_outcomes import told
from jepatlas.workflows.align import MapKind
from jepatlas.workflows.plan import (
    DrivingConfig,
    TrainedModel,
    agent_of,
    draw_tasks,
    drive,
    drive_at_random,
    fit_port,
    load_world_model,
    ported,
    same_world,
    shared_latents,
    shuffled_pairs,
)
from jepatlas.workflows.runs import train_job

__all__ = ["MAPS", "run", "through"]

MAPS: tuple[MapKind, ...] = ("ridge", "procrustes")
TEST = 1000  # further shared states, that maps are scored on


def through(kind: str, states: int) -> str:
    """The name of a map in records."""
    return f"{kind}_{states}"


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train both; drive the second's camera by its own planner, by the first's, and through shuffled pairs."""
    places = [Path(folder) / f"agent-{number}" for number in range(2)]
    records = [train_job(recipe, str(place)) for recipe, place in zip(settings["recipes"], places, strict=True)]
    if lost := [record for record in records if record["status"] != "finished"]:
        return lost[0]
    a, b = map(load_world_model, places)
    world, planner, seed = same_world(a, b), agent_of(a), settings["seed"]
    maps, scores = _maps(a, b, settings["states"], seed)
    agents = {"own": agent_of(b)} | {name: ported(planner, b.encode, into) for name, into in maps.items()}
    config, tasks = from_plain(DrivingConfig, settings["driving"]), draw_tasks(world, settings["tasks"], seed)
    reached = {name: drive(world, agent, tasks, config, seed).reached for name, agent in agents.items()}
    assert a.world is not None  # it is b's, but for the camera
    home = drive(a.world, planner, tasks, config, seed).reached
    found = told(reached | {"home": home, "chance": drive_at_random(world, tasks, config.steps, seed)})
    r2 = as_verdicts(scores, "R² of a map from the second's latents to the first's, on other states.")
    return records[0] | found | {"verdicts": found["verdicts"] + r2}


def _maps(
    a: TrainedModel, b: TrainedModel, numbers: list[int], seed: int
) -> tuple[dict[str, LinearMap], dict[str, Estimate]]:
    """Maps of every kind from every number of shared states, and one of shuffled pairs; R² of each but that."""
    most = max(numbers)
    shared = shared_latents(a, b, most + TEST, seed)
    apart, maps, scores = shared.rows(np.arange(most, len(shared))), {}, {}
    for kind in MAPS:
        for number in numbers:
            name = through(kind, number)
            maps[name], scores[f"{name}_r2"] = fit_port(kind, shared.rows(np.arange(number)), apart, seed)
    shuffled = shuffled_pairs(shared.rows(np.arange(most)), numpy_generator(seed, "shuffled pairs"))
    maps["shuffled"], _ = fit_port("ridge", shuffled, apart, seed)
    return maps, scores
