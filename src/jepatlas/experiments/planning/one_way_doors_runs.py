"""What one trial of `one-way-doors` does: tasks through the doors, driven by energies that are exact or learned.

All drive the same tasks with the same planner. The exact energies act on true states and true dynamics, so that nothing
but the energy can be at fault; the learned ones on the latents of one world model, and with its dynamics.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are asked for
import torch

from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.energy.learned_energies import exactly, fit_energy
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.planning.exact_planning import all_knowing, bare, exact_energy, exact_way_back, symmetrised
from jepatlas.experiments.planning.planning_outcomes import told
from jepatlas.recipes import EnergyRecipe, StepFile
from jepatlas.workflows.energy import load_fitted
from jepatlas.workflows.plan import (
    DrivingConfig,
    PlanningAgent,
    Tasks,
    TrainedModel,
    agent_of,
    draw_tasks,
    drive,
    drive_at_random,
    latent_episodes,
    load_world_model,
)
from jepatlas.workflows.runs import train_job
from jepatlas.worlds import Rooms

__all__ = ["BOTH_WAYS", "run_exact", "run_learned", "through_doors"]

BOTH_WAYS = "symmetrised iqe"
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
    """A world model, and on its latents an energy of each head: so that encoder and dynamics are the same for all."""
    place, seed = Path(folder), settings["seed"]
    record = train_job(settings["recipe"], str(place / "model"))
    if record["status"] != "finished":
        return record
    model = load_world_model(place / "model")
    agent, orders, agents = agent_of(model), {}, {}
    world, config, _ = _given(settings)
    _write_steps(model, place / "steps.npz")
    for head, plain in settings["energies"].items():
        recipe = replace(from_plain(EnergyRecipe, plain), source=StepFile(str(place / "steps.npz")))
        lost = fit_energy(recipe, place / head)
        if lost["status"] != "finished":
            return lost
        agents[head] = replace(agent, energy=load_fitted(place / head).energy)
    agents[BOTH_WAYS] = replace(agent, energy=symmetrised(agents["iqe"].energy))
    for name, one in agents.items():
        orders |= _orders(world, name, one, seed)
    tasks = through_doors(world, settings["tasks"], seed)
    found = told({name: drive(world, one, tasks, config, seed).reached for name, one in agents.items()})
    told_orders = as_verdicts(orders, "Spearman's correlation with the exact energy.")
    return record | found | {"verdicts": found["verdicts"] + told_orders}


def _write_steps(model: TrainedModel, path: Path) -> None:
    """The steps of the episodes that the model was trained on, as it sees them; each costs one."""
    seen = latent_episodes(model, held=False)
    steps = {"x": seen.h.astype(np.float32), "x_next": seen.h_next.astype(np.float32)}
    write_arrays(path, steps | {"cost": np.ones(len(seen.h)), "episode": seen.episode})


@torch.no_grad()
def _orders(world: Rooms, name: str, agent: PlanningAgent, seed: int) -> dict[str, Estimate]:
    """How well the energy orders pairs of states: as the exact one does, and as that symmetrised."""
    rng = numpy_generator(seed, "pairs of states")
    x, y = world.states(PAIRS, rng), world.states(PAIRS, rng)
    there, back = exact_energy(world), exact_way_back(world)
    learned = agent.energy(agent.encode(world.observe(x)), agent.encode(world.observe(y))).double().numpy()
    ends = torch.from_numpy(x), torch.from_numpy(y)
    truths = {"order": there(*ends), "symmetric_order": symmetrised(there, back)(*ends)}
    return {
        f"{name}_{order}": exactly(float(np.asarray(scipy.stats.spearmanr(learned, truth.numpy()))[0]), PAIRS)
        for order, truth in truths.items()
    }


def _given(settings: dict[str, Any]) -> tuple[Rooms, DrivingConfig, int]:
    return from_plain(Rooms, settings["world"]), from_plain(DrivingConfig, settings["driving"]), settings["seed"]
