"""Trials that train a world model with a method and plan to goals that were not seen in training.

All methods have the same episodes, networks, planner and tasks. They differ in the loss of the encoder and in the
distance to the goal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from jepatlas.core.config import from_plain, to_plain
from jepatlas.experiments.engine.experiment import Plain, Scale, Trial
from jepatlas.experiments.planning.planning_methods import METHODS
from jepatlas.experiments.planning.planning_outcomes import success_record
from jepatlas.nn import ConvConfig, MLPConfig, ResidualDynamicsConfig
from jepatlas.planning import LatentCostConfig, MPPIConfig
from jepatlas.recipes import Predictive, WalkedWorld, WorldModelRecipe
from jepatlas.workflows.plan import DrivingConfig, agent_of, draw_tasks, drive, drive_at_random, load_world_model
from jepatlas.workflows.runs import train_job
from jepatlas.worlds import Maze, Rooms

__all__ = ["BUDGETS", "WORLDS", "Budget", "World", "driving", "model_recipe", "planning_trial", "run"]


@dataclass(frozen=True)
class World:
    """A world to plan in, and the lengths of its paths."""

    world: Rooms | Maze
    offset: float  # steps, more than the longest path
    steps: int  # limit of an episode


WORLDS = {
    "small rooms": World(Rooms(), 40.0, 80),
    "big rooms": World(Rooms(size="big"), 80.0, 120),
    "maze": World(Maze(cells=4), 60.0, 120),
    "one-way rooms": World(Rooms(size="big", one_way=True), 80.0, 120),
    "one-way maze": World(Maze(cells=4, loops=3, one_way=True), 60.0, 120),
}


@dataclass(frozen=True)
class Budget:
    episodes: int
    steps: int  # of training
    batch_size: int
    encoder: ConvConfig
    width: int  # of the dynamics
    embedding: MLPConfig  # of an energy beside SIGReg
    planner: MPPIConfig
    tasks: int
    length: int = 64  # of an episode


TINY_PLANNER = MPPIConfig(horizon=3, samples=4, iterations=1)
SMALL_PLANNER = MPPIConfig(horizon=12, samples=64, iterations=3)
BUDGETS = {
    "tiny": Budget(8, 3, 8, ConvConfig((8, 8), 16), 16, MLPConfig(16, 1), TINY_PLANNER, 4, 12),
    "small": Budget(600, 500, 64, ConvConfig((16, 32, 32), 128), 128, MLPConfig(128, 1), SMALL_PLANNER, 50),
    "paper": Budget(1000, 20_000, 128, ConvConfig(), 256, MLPConfig(), MPPIConfig(horizon=64, samples=2000), 200),
}


def model_recipe(scale: Scale, seed: int, world: str, method: str, steps: int | None = None) -> WorldModelRecipe:
    """A world model with the budget of a scale; `steps` of training if given."""
    budget = BUDGETS[scale]
    place = WORLDS[world]
    steps = steps or budget.steps
    loss, energy = METHODS[method].settings(place.offset, budget.embedding)
    base = WorldModelRecipe(
        seed=seed,
        source=WalkedWorld(place.world, episodes=budget.episodes, length=budget.length),
        encoder=budget.encoder,
        model=Predictive(dynamics=ResidualDynamicsConfig(budget.width), loss=loss, energy=energy),
    )
    # No check for collapse: an encoder shaped by an energy may need fewer dimensions than it has.
    training = replace(base.training, steps=steps, batch_size=budget.batch_size, checkpoint_every=steps, collapse=0.0)
    return replace(base, training=training)


def driving(scale: Scale, world: str) -> DrivingConfig:
    """One planner for all methods; its cost is the energy after every action, with the last one counted twice."""
    steps = 6 if scale == "tiny" else WORLDS[world].steps
    return DrivingConfig(BUDGETS[scale].planner, LatentCostConfig(stage=1.0, terminal=1.0), steps, replan=3)


def planning_trial(scale: Scale, seed: int, world: str, method: str) -> Trial:
    settings = {
        "recipe": to_plain(model_recipe(scale, seed, world, method)),
        "driving": to_plain(driving(scale, world)),
        "tasks": BUDGETS[scale].tasks,
    }
    return Trial({"world": world, "method": method, "seed": seed}, run, settings)


def run(settings: Plain, folder: str) -> Plain:
    """Train or resume, and plan. The outcome of each task is kept, because methods are compared by task."""
    record = train_job(settings["recipe"], folder)
    if record["status"] != "finished":
        return record
    model = load_world_model(Path(folder))
    config = from_plain(DrivingConfig, settings["driving"])
    world = model.world
    seed = model.recipe.seed
    assert world is not None
    tasks = draw_tasks(world, settings["tasks"], seed)
    reached = drive(world, agent_of(model), tasks, config, seed).reached
    chance = drive_at_random(world, tasks, config.steps, seed)
    return record | success_record({"agent": reached, "chance": chance})
