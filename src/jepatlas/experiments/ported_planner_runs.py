"""What one trial of `ported-planner` does: two world models of one world, trained apart through two cameras.

The planner of the first, its dynamics and its energy, drives the camera of the second through maps that are fitted on
different numbers of shared states. All drive the same tasks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from jepatlas.alignments import MapKind
from jepatlas.base.config import from_plain
from jepatlas.base.seeding import numpy_generator
from jepatlas.experiments.latents import inform
from jepatlas.experiments.planning_outcomes import told
from jepatlas.planning import (
    DrivingConfig,
    agent_of,
    draw_tasks,
    drive,
    drive_at_random,
    fit_port,
    load_world_model,
    ported,
    same_world,
    shared_latents,
)
from jepatlas.runs import train_job

__all__ = ["MAPS", "run", "through"]

MAPS: tuple[MapKind, ...] = ("ridge", "procrustes")
TEST = 1000  # further shared states, that maps are scored on


def through(kind: str, states: int) -> str:
    """The name of a map in records."""
    return f"{kind}_{states}"


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train both; drive the second's camera by its own planner, by the first's, and through shuffled pairs."""
    places = [Path(folder) / f"agent-{number}" for number in range(2)]
    for recipe, place in zip(settings["recipes"], places, strict=True):
        record = train_job(recipe, str(place))
        if record["status"] != "finished":
            return record
    a, b = map(load_world_model, places)
    world, planner, own, seed = same_world(a, b), agent_of(a), agent_of(b), settings["seed"]
    most = max(settings["states"])
    shared = shared_latents(a, b, most + TEST, seed)
    apart, scores, agents = shared.rows(slice(most, None)), {}, {"own": own}
    maps = [(kind, states) for kind in MAPS for states in settings["states"]]
    for kind, states in maps:
        into, scores[f"{through(kind, states)}_r2"] = fit_port(kind, shared.rows(slice(states)), apart, seed)
        agents[through(kind, states)] = ported(planner, b.encode, into)
    shuffled = shared.rows(slice(most)).shuffled(numpy_generator(seed, "shuffled pairs"))
    agents["shuffled"] = ported(planner, b.encode, fit_port("ridge", shuffled, apart, seed)[0])
    config, tasks = from_plain(DrivingConfig, settings["driving"]), draw_tasks(world, settings["tasks"], seed)
    reached = {name: drive(world, agent, tasks, config, seed).reached for name, agent in agents.items()}
    assert a.world is not None
    home = drive(a.world, planner, tasks, config, seed).reached
    found = told(reached | {"home": home, "chance": drive_at_random(world, tasks, config.steps, seed)})
    r2 = inform(cast(Any, scores), "R² of a map from the second's latents to the first's, on other states.")
    return record | found | {"verdicts": found["verdicts"] + r2}
