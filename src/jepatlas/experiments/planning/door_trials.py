"""Trials of planning through one-way doors, by exact energies and by energies learned on latents of a world model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain
from jepatlas.experiments.energy.learned_energies import fit_energy
from jepatlas.experiments.engine.experiment import Plain
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.experiments.planning.exact_planning import (
    exact_agent,
    exact_energy,
    exact_way_back,
    rank_correlations,
    symmetrised,
    through_doors,
    with_states,
)
from jepatlas.experiments.planning.planning_outcomes import success_record
from jepatlas.recipes import EnergyRecipe, StepFile
from jepatlas.workflows.energy import load_fitted
from jepatlas.workflows.plan import (
    DrivingConfig,
    TrainedModel,
    agent_of,
    drive,
    drive_at_random,
    latent_episodes,
    load_world_model,
)
from jepatlas.workflows.runs import train_job
from jepatlas.worlds import Rooms

__all__ = ["BOTH_WAYS", "run_exact", "run_learned", "write_steps"]

BOTH_WAYS = "symmetrised iqe"


def run_exact(settings: Plain, folder: str) -> Plain:
    """Plan with the exact cost-to-go, directed and symmetrised."""
    del folder  # nothing is trained
    world, config, seed = _given(settings)
    there = exact_energy(world)
    energies = {"directed": there, "symmetric": symmetrised(there, exact_way_back(world))}
    tasks = through_doors(world, settings["tasks"], seed)
    reached = {
        name: drive(with_states(world), exact_agent(world, energy), tasks, config, seed).reached
        for name, energy in energies.items()
    }
    chance = drive_at_random(world, tasks, config.steps, seed)
    return {"status": "finished"} | success_record(reached | {"chance": chance})


def run_learned(settings: Plain, folder: str) -> Plain:
    """Train a world model, and an energy of each head on its latents."""
    place = Path(folder)
    record = train_job(settings["recipe"], str(place / "model"))
    if record["status"] != "finished":
        return record
    model = load_world_model(place / "model")
    agent = agent_of(model)
    write_steps(model, place / "steps.npz")
    agents = {}
    for head, plain in settings["energies"].items():
        recipe = replace(from_plain(EnergyRecipe, plain), source=StepFile(str(place / "steps.npz")))
        outcome = fit_energy(recipe, place / head)
        if outcome["status"] != "finished":
            return outcome
        agents[head] = replace(agent, energy=load_fitted(place / head).energy)
    agents[BOTH_WAYS] = replace(agent, energy=symmetrised(agents["iqe"].energy))
    world, config, seed = _given(settings)
    tasks = through_doors(world, settings["tasks"], seed)
    found = success_record({name: drive(world, one, tasks, config, seed).reached for name, one in agents.items()})
    orders = {}
    for name, one in agents.items():
        orders |= {f"{name}_{order}": value for order, value in rank_correlations(world, one, seed).items()}
    correlations = as_verdicts(orders, "Spearman's correlation with the exact energy.")
    return record | found | {"verdicts": found["verdicts"] + correlations}


def write_steps(model: TrainedModel, path: Path) -> None:
    """The training steps of the model in its latents, each of cost one."""
    seen = latent_episodes(model, held=False)
    steps = {"x": seen.h.astype(np.float32), "x_next": seen.h_next.astype(np.float32)}
    write_arrays(path, steps | {"cost": np.ones(len(seen.h)), "episode": seen.episode})


def _given(settings: Plain) -> tuple[Rooms, DrivingConfig, int]:
    return from_plain(Rooms, settings["world"]), from_plain(DrivingConfig, settings["driving"]), settings["seed"]
