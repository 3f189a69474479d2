"""Tasks in a world, and what becomes of them when an agent drives: seen, planned, done, seen again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from jepatlas.base.errors import InputError
from jepatlas.base.seeding import numpy_generator
from jepatlas.plan import ActionBox, LatentCost, LatentCostConfig, MPPIConfig, PlannerConfig, compiled, receding_horizon
from jepatlas.planning.agents import PlanningAgent
from jepatlas.worlds import ActionWorld

__all__ = ["Drive", "DrivingConfig", "Tasks", "draw_tasks", "drive", "drive_at_random"]


@dataclass(frozen=True)
class Tasks:
    """From where to where."""

    starts: np.ndarray  # (b, n)
    goals: np.ndarray  # (b, n)


@dataclass(frozen=True)
class DrivingConfig:
    """How an agent plans, and how long it may drive."""

    planner: PlannerConfig = field(default_factory=lambda: MPPIConfig(horizon=12, samples=128, iterations=3))
    cost: LatentCostConfig = field(default_factory=lambda: LatentCostConfig(stage=1.0, terminal=1.0))
    """What a plan is judged by: the energy at its end, after each action, or both."""
    steps: int = 80
    """Steps of the world that an episode may take."""
    replan: int = 2
    """Plans are made anew after so many of their actions."""
    compile: bool = False
    """Roll out through torch.compile, which takes a while once and is faster after that."""

    def __post_init__(self) -> None:
        for name in ("steps", "replan"):
            if not getattr(self, name) >= 1:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given.")


@dataclass(frozen=True)
class Drive:
    """What happened, task by task; after a goal was reached nothing moves any more."""

    tasks: Tasks
    states: np.ndarray  # (b, t + 1, n)
    actions: np.ndarray  # (b, t, a)
    reached: np.ndarray  # (b,) bool
    energies: np.ndarray  # (b, t + 1): what the agent thought was still to go

    @property
    def steps(self) -> np.ndarray:
        """Steps until the goal was reached; all of them where it was not."""
        moving = (self.actions != 0).any(axis=-1)
        return (moving * np.arange(1, moving.shape[1] + 1)).max(axis=1, initial=0)


def draw_tasks(world: ActionWorld, count: int, seed: int) -> Tasks:
    """Starts and goals that can be reached from them, other ones than any training has seen."""
    if count < 1:
        raise InputError(f"At least 1 task is needed, but {count} were asked for.")
    rng = numpy_generator(seed, "tasks")
    starts = world.states(count, rng)
    return Tasks(starts, world.goals(starts, rng))


def drive(
    world: ActionWorld, agent: PlanningAgent, tasks: Tasks, config: DrivingConfig | None = None, seed: int = 0
) -> Drive:
    """Receding-horizon planning of all tasks at once, in the world itself."""
    config = config or DrivingConfig()
    if world.action_dim != agent.action_dim:
        raise InputError(
            f"The agent acts in {agent.action_dim} dimensions, but the world '{world.kind}' takes {world.action_dim}. "
            "Plan in the world that it was trained on."
        )
    planner = config.planner.build(ActionBox.symmetric(1.0, agent.stride * agent.action_dim))
    dynamics = compiled(agent.dynamics) if config.compile else agent.dynamics
    cost = LatentCost(dynamics, agent.energy, config.cost)
    course = _Course(world, agent, tasks)
    with torch.no_grad():
        if not course.done.all():
            actions = -(-config.steps // agent.stride)
            receding_horizon(planner, cost, course.info(), course.step, steps=actions, replan=config.replan, seed=seed)
    return course.drive()


class _Course:
    """The state of every task, moved by what is planned for it."""

    def __init__(self, world: ActionWorld, agent: PlanningAgent, tasks: Tasks) -> None:
        self.world, self.agent, self.tasks = world, agent, tasks
        self.states, self.actions = [tasks.starts], []
        self.done = world.reached(tasks.starts, tasks.goals)
        self.goal = agent.see(world.observe(tasks.goals))
        self.here = agent.see(world.observe(tasks.starts))
        self.energies = [self._energy()]

    def info(self) -> Mapping[str, Tensor]:
        return {"start": self.here, "goal": self.goal, "done": torch.from_numpy(self.done)}

    def step(self, actions: Tensor) -> Mapping[str, Tensor]:
        for action in actions.double().numpy().reshape(len(actions), self.agent.stride, -1).swapaxes(0, 1):
            self._move(action)
        self.here = self.agent.see(self.world.observe(self.states[-1]))
        self.energies[-1] = self._energy()
        return self.info()

    def _move(self, action: np.ndarray) -> None:
        action = np.where(self.done[:, None], 0.0, action)
        moved = self.world.step(self.states[-1], action)
        self.states.append(np.where(self.done[:, None], self.states[-1], moved))
        self.actions.append(action)
        self.energies.append(self.energies[-1])  # it looks again only after all steps of an action
        self.done = self.done | self.world.reached(self.states[-1], self.tasks.goals)

    @torch.no_grad()
    def _energy(self) -> np.ndarray:
        return self.agent.energy(self.here, self.goal).double().numpy()

    def drive(self) -> Drive:
        empty = np.zeros((len(self.done), 0, self.world.action_dim))
        actions = np.stack(self.actions, 1) if self.actions else empty
        return Drive(self.tasks, np.stack(self.states, 1), actions, self.done, np.stack(self.energies, 1))


def drive_at_random(world: ActionWorld, tasks: Tasks, steps: int, seed: int = 0) -> np.ndarray:
    """Which goals are reached by any actions whatever: the control of every success rate, (b,) bool."""
    rng, states = numpy_generator(seed, "random drive"), tasks.starts
    done = world.reached(states, tasks.goals)
    for _ in range(steps):
        moved = world.step(states, rng.uniform(-1, 1, (len(states), world.action_dim)))
        states = np.where(done[:, None], states, moved)
        done = done | world.reached(states, tasks.goals)
    return done
