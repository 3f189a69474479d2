"""Closed-loop evaluation of an agent: observe, plan, act, observe again."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jepatlas.core.errors import InputError, check_count
from jepatlas.core.lazy import lazy_import
from jepatlas.core.seeding import numpy_generator
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

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from jepatlas.core.contracts import Cost
    from jepatlas.data import RandomPolicy
    from jepatlas.workflows.plan.planning_agent import PlanningAgent
    from jepatlas.workflows.plan.planning_tasks import Tasks
    from jepatlas.worlds import ActionWorld
else:
    torch = lazy_import("torch")

__all__ = ["Drive", "DrivingConfig", "drive", "drive_at_random", "planning_cost"]


@dataclass(frozen=True)
class DrivingConfig:
    """Planner, cost and length of an episode."""

    planner: PlannerConfig = field(default_factory=lambda: MPPIConfig(horizon=12, samples=128, iterations=3))
    cost: LatentCostConfig = field(default_factory=lambda: LatentCostConfig(stage=1.0, terminal=1.0))
    """Cost of a plan: the energy at its end, after each action, or both; squared distances for LQR."""
    steps: int = 80
    """Maximal number of steps of an episode."""
    replan: int = 2
    """Number of actions after which a new plan is made."""
    compile: bool = False
    """Roll out through torch.compile: a slow first call, faster afterwards."""

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("replan", self.replan)


@dataclass(frozen=True)
class Drive:
    """Trajectories of all tasks; after its goal is reached, a task does not move."""

    tasks: Tasks
    states: np.ndarray  # (b, t + 1, n)
    actions: np.ndarray  # (b, t, a)
    reached: np.ndarray  # (b,) bool
    steps: np.ndarray  # (b,): until the goal was reached, or all steps
    energies: np.ndarray  # (b, t + 1): the agent's energy to the goal
    unreachable: np.ndarray  # (b,) bool: no candidate of the first plan had a finite cost


def drive(
    world: ActionWorld, agent: PlanningAgent, tasks: Tasks, config: DrivingConfig | None = None, seed: int = 0
) -> Drive:
    """Receding-horizon planning of all tasks at once in the true world."""
    config = config or DrivingConfig()
    if world.action_dim != agent.action_dim:
        raise InputError(
            f"The agent has {agent.action_dim} action dimensions, but the world '{world.kind}' has {world.action_dim}. "
            "Plan in the world of its training."
        )
    planner = config.planner.build(ActionBox.symmetric(1.0, agent.stride * agent.action_dim))
    cost = planning_cost(agent, config)
    episode = _Episode(world, agent, tasks)
    unreachable = np.zeros(len(episode.done), dtype=bool)
    if not episode.done.all():
        actions = -(-config.steps // agent.stride)
        with torch.no_grad():
            loop = receding_horizon(
                planner, cost, episode.info(), episode.step, steps=actions, replan=config.replan, seed=seed
            )
        unreachable[list(loop.unreachable)] = True
    return episode.result(unreachable)


def planning_cost(agent: PlanningAgent, config: DrivingConfig) -> Cost:
    """The cost of plans in the agent's latents."""
    if isinstance(config.planner, LQRConfig):
        from jepatlas.workflows.plan.planning_agent import quadratic_cost  # noqa: PLC0415  (imports torch)

        return quadratic_cost(agent.linear, config.cost)
    dynamics = compiled(agent.dynamics) if config.compile else agent.dynamics
    return LatentCost(dynamics, agent.energy, config.cost)


class _Episode:
    """The states of all tasks, and what the agent observes."""

    def __init__(self, world: ActionWorld, agent: PlanningAgent, tasks: Tasks) -> None:
        self.world, self.agent, self.tasks = world, agent, tasks
        self.states = [tasks.starts]
        self.actions: list[np.ndarray] = []
        self.done = world.reached(tasks.starts, tasks.goals)
        self.steps = np.zeros(len(self.done), dtype=int)
        self.goal = agent.encode(world.observe(tasks.goals))
        self.frames: deque[np.ndarray] = deque(maxlen=agent.history)
        self._observe()
        self.energies = [self._energy()]

    def info(self) -> Mapping[str, Tensor]:
        return {"start": self.latent, "goal": self.goal, "done": torch.from_numpy(self.done)}

    def step(self, actions: Tensor) -> Mapping[str, Tensor]:
        """One action of the plan, `stride` steps of the world."""
        for action in actions.double().numpy().reshape(len(actions), self.agent.stride, -1).swapaxes(0, 1):
            self._world_step(action)
        self._observe()
        self.energies[-1] = self._energy()
        return self.info()

    def _world_step(self, action: np.ndarray) -> None:
        done = self.done[:, None]
        action = np.where(done, 0.0, action)
        moved = self.world.step(self.states[-1], action)
        self.states.append(np.where(done, self.states[-1], moved))
        self.actions.append(action)
        self.steps += ~self.done
        self.energies.append(self.energies[-1])  # the agent observes only after all steps of an action
        self.done = self.done | self.world.reached(self.states[-1], self.tasks.goals)

    def _observe(self) -> None:
        from jepatlas.data import stack_history  # noqa: PLC0415  (imports torch)

        self.frames.append(self.world.observe(self.states[-1]))
        self.latent = self.agent.encode(stack_history([*self.frames], self.agent.history))

    def _energy(self) -> np.ndarray:
        with torch.no_grad():
            return self.agent.energy(self.latent, self.goal).double().numpy()

    def result(self, unreachable: np.ndarray) -> Drive:
        empty = np.zeros((len(self.done), 0, self.world.action_dim))
        actions = np.stack(self.actions, 1) if self.actions else empty
        states, energies = np.stack(self.states, 1), np.stack(self.energies, 1)
        return Drive(self.tasks, states, actions, self.done, self.steps, energies, unreachable)


def drive_at_random(
    world: ActionWorld, tasks: Tasks, steps: int, seed: int = 0, policy: RandomPolicy | None = None
) -> np.ndarray:
    """Which goals random actions reach, (b,) bool: the control of every success rate.

    Actions are independent and uniform, or those of a policy; correlated actions travel further.
    """
    rng = numpy_generator(seed, "random drive")
    states, done = tasks.starts, world.reached(tasks.starts, tasks.goals)
    shape = (len(states), world.action_dim)
    act = None
    if policy is not None:
        from gymnasium.spaces import Box  # noqa: PLC0415  (slow to import)

        act = policy.begin(Box(-1.0, 1.0, shape, np.float64))
    for _ in range(steps):
        actions = rng.uniform(-1, 1, shape) if act is None else act(states, {}, rng)
        moved = world.step(states, actions)
        states = np.where(done[:, None], states, moved)
        done = done | world.reached(states, tasks.goals)
    return done
