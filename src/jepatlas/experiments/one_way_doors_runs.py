"""What one trial of `one-way-doors` does: tasks through the doors, driven by energies that are exact or learned.

All drive the same tasks with the same planner. The exact energies act on true states and true dynamics, so that nothing
but the energy can be at fault; the learned ones on pixels, and with the dynamics that were learned with them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from scipy.stats import spearmanr

from jepatlas.base.config import from_plain
from jepatlas.base.records import Estimate
from jepatlas.base.seeding import numpy_generator
from jepatlas.experiments.energy_runs import exactly
from jepatlas.experiments.exact_planning import all_knowing, bare, exact_energy, exact_way_back, symmetrised
from jepatlas.experiments.latents import inform
from jepatlas.experiments.planning_outcomes import told
from jepatlas.planning import (
    DrivingConfig,
    PlanningAgent,
    Tasks,
    agent_of,
    draw_tasks,
    drive,
    drive_at_random,
    load_world_model,
)
from jepatlas.runs import train_job
from jepatlas.worlds import Rooms

__all__ = ["run_exact", "run_learned", "through_doors"]

PAIRS = 200  # of states, on which learned energies are held against the exact ones


def through_doors(world: Rooms, count: int, seed: int) -> Tasks:
    """Tasks that start in one room and end in the other."""
    drawn = draw_tasks(world, 6 * count, seed)  # about half of them do
    across = (drawn.starts[:, 0] < world.wall_at) != (drawn.goals[:, 0] < world.wall_at)
    return Tasks(drawn.starts[across][:count], drawn.goals[across][:count])


def run_exact(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """The exact cost-to-go, as it is and symmetrised."""
    del folder  # nothing is trained
    world, config, seed = _given(settings)
    there = exact_energy(world)
    energies = {"directed": there, "symmetric": symmetrised(there, exact_way_back(world))}
    tasks = through_doors(world, settings["tasks"], seed)
    reached = {
        name: drive(bare(world), all_knowing(world, energy), tasks, config, seed).reached
        for name, energy in energies.items()
    }
    chance = drive_at_random(world, tasks, config.steps, seed)
    return {"status": "finished"} | told(reached | {"chance": chance})


def run_learned(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """A learned energy, as it is and symmetrised."""
    record = train_job(settings["recipe"], folder)
    if record["status"] != "finished":
        return record
    world, config, seed = _given(settings)
    agent = agent_of(load_world_model(Path(folder)))
    tasks = through_doors(world, settings["tasks"], seed)
    agents = {"agent": agent, "symmetrised": replace(agent, energy=symmetrised(agent.energy))}
    found = told({name: drive(world, one, tasks, config, seed).reached for name, one in agents.items()})
    orders = inform(_orders(world, agent, seed), "Spearman's correlation with the exact energy.")
    return record | found | {"verdicts": found["verdicts"] + orders}


@torch.no_grad()
def _orders(world: Rooms, agent: PlanningAgent, seed: int) -> dict[str, Estimate]:
    """How well the energy orders pairs of states: as the exact one does, and as that symmetrised."""
    rng = numpy_generator(seed, "pairs of states")
    x, y = world.states(PAIRS, rng), world.states(PAIRS, rng)
    there, back = exact_energy(world), exact_way_back(world)
    learned = agent.energy(agent.see(world.observe(x)), agent.see(world.observe(y))).double().numpy()
    ends = torch.from_numpy(x), torch.from_numpy(y)
    truths = {"order": there(*ends), "symmetric_order": symmetrised(there, back)(*ends)}
    return {
        name: exactly(float(np.asarray(cast(Any, spearmanr(learned, truth.numpy())))[0]), PAIRS)
        for name, truth in truths.items()
    }


def _given(settings: dict[str, Any]) -> tuple[Rooms, DrivingConfig, int]:
    return from_plain(Rooms, settings["world"]), from_plain(DrivingConfig, settings["driving"]), settings["seed"]
