"""What becomes of tasks when an agent drives: seen, planned, done, seen again."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from gymnasium.spaces import Box
from torch import Tensor

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import InputError
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import RandomPolicy, stack_history
from jepatlas.planning import (
    ActionBox,
    LatentCost,
    LatentCostConfig,
    LQRConfig,
    MPPIConfig,
    PlannerConfig,
    compiled,
    receding_horizon,
)
from jepatlas.workflows.plan.agents import PlanningAgent
from jepatlas.workflows.plan.linear_latents import quadratic_cost
from jepatlas.workflows.plan.tasks import Tasks
from jepatlas.worlds import ActionWorld

__all__ = ["Drive", "DrivingConfig", "drive", "drive_at_random"]


@dataclass(frozen=True)
class DrivingConfig:
    """How an agent plans, and how long it may drive."""

    planner: PlannerConfig = field(default_factory=lambda: MPPIConfig(horizon=12, samples=128, iterations=3))
    cost: LatentCostConfig = field(default_factory=lambda: LatentCostConfig(stage=1.0, terminal=1.0))
    """What a plan is judged by: the energy at its end, after each action, or both; for LQR the squared distance."""
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
    steps: np.ndarray  # (b,): until the goal was reached; all of them where it was not
    energies: np.ndarray  # (b, t + 1): what the agent thought was still to go
    out_of_reach: np.ndarray  # (b,) bool: nothing that the agent tried at the start had a finite cost


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
    cost, course = _cost(agent, config), _Course(world, agent, tasks)
    lost = np.zeros(len(course.done), dtype=bool)
    if not course.done.all():
        actions = -(-config.steps // agent.stride)
        with torch.no_grad():
            found = receding_horizon(
                planner, cost, course.info(), course.step, steps=actions, replan=config.replan, seed=seed
            )
        lost[list(found.unreachable)] = True
    return course.drive(lost)


def _cost(agent: PlanningAgent, config: DrivingConfig) -> Cost:
    if isinstance(config.planner, LQRConfig):
        return quadratic_cost(agent.linear, config.cost)
    dynamics = compiled(agent.dynamics) if config.compile else agent.dynamics
    return LatentCost(dynamics, agent.energy, config.cost)


class _Course:
    """The state of every task, moved by what is planned for it."""

    def __init__(self, world: ActionWorld, agent: PlanningAgent, tasks: Tasks) -> None:
        self.world, self.agent, self.tasks = world, agent, tasks
        self.states, self.actions = [tasks.starts], []
        self.done = world.reached(tasks.starts, tasks.goals)
        self.steps = np.zeros(len(self.done), dtype=int)
        self.goal = agent.see(world.observe(tasks.goals))
        self.seen = deque([world.observe(tasks.starts)], maxlen=agent.history)
        self.here = agent.see(stack_history([*self.seen], agent.history))
        self.energies = [self._energy()]

    def info(self) -> Mapping[str, Tensor]:
        return {"start": self.here, "goal": self.goal, "done": torch.from_numpy(self.done)}

    def step(self, actions: Tensor) -> Mapping[str, Tensor]:
        for action in actions.double().numpy().reshape(len(actions), self.agent.stride, -1).swapaxes(0, 1):
            self._move(action)
        self.seen.append(self.world.observe(self.states[-1]))
        self.here = self.agent.see(stack_history([*self.seen], self.agent.history))
        self.energies[-1] = self._energy()
        return self.info()

    def _move(self, action: np.ndarray) -> None:
        action = np.where(self.done[:, None], 0.0, action)
        moved = self.world.step(self.states[-1], action)
        self.states.append(np.where(self.done[:, None], self.states[-1], moved))
        self.actions.append(action)
        self.steps += ~self.done
        self.energies.append(self.energies[-1])  # it looks again only after all steps of an action
        self.done = self.done | self.world.reached(self.states[-1], self.tasks.goals)

    @torch.no_grad()
    def _energy(self) -> np.ndarray:
        return self.agent.energy(self.here, self.goal).double().numpy()

    def drive(self, out_of_reach: np.ndarray) -> Drive:
        empty = np.zeros((len(self.done), 0, self.world.action_dim))
        actions = np.stack(self.actions, 1) if self.actions else empty
        states, energies = np.stack(self.states, 1), np.stack(self.energies, 1)
        return Drive(self.tasks, states, actions, self.done, self.steps, energies, out_of_reach)


def drive_at_random(
    world: ActionWorld, tasks: Tasks, steps: int, seed: int = 0, policy: RandomPolicy | None = None
) -> np.ndarray:
    """Which goals are reached by any actions whatever: the control of every success rate, (b,) bool.

    Actions have no memory, or are as smooth as those of a policy: one that persists gets about more.
    """
    rng, states = numpy_generator(seed, "random drive"), tasks.starts
    shape, done = (len(states), world.action_dim), world.reached(states, tasks.goals)
    act = None if policy is None else policy.begin(Box(-1.0, 1.0, shape, np.float64))
    for _ in range(steps):
        moved = world.step(states, rng.uniform(-1, 1, shape) if act is None else act(states, {}, rng))
        states = np.where(done[:, None], states, moved)
        done = done | world.reached(states, tasks.goals)
    return done
