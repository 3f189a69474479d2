"""Planning with exact costs-to-go of rooms, directed or symmetrised, and the true dynamics.

Such a planner has states, exact predictions and exact distances, so its failures are due to the energy itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import spearman
from jepatlas.experiments.engine.rules import point_estimates
from jepatlas.workflows.plan import PlanningAgent, Tasks, draw_tasks
from jepatlas.worlds import Rooms

__all__ = [
    "Energy",
    "exact_agent",
    "exact_energy",
    "exact_way_back",
    "rank_correlations",
    "symmetrised",
    "through_doors",
    "with_states",
]

PAIRS = 200  # of states, for comparing learned with exact energies

Energy = Callable[[Tensor, Tensor], Tensor]


def exact_agent(world: Rooms, energy: Energy) -> PlanningAgent:
    """An agent with exact dynamics, for rooms whose observations are states (`with_states`)."""
    return PlanningAgent(torch.from_numpy, _Dynamics(world), energy, world.action_dim)


def with_states(world: Rooms) -> Rooms:
    """The same rooms with the state as the observation."""
    return _RoomsWithStates(**{field.name: getattr(world, field.name) for field in fields(world)})


class _RoomsWithStates(Rooms):
    def observe(self, states: np.ndarray) -> np.ndarray:
        return states


class _Dynamics:
    """The true steps of the world."""

    def __init__(self, world: Rooms) -> None:
        self.world = world

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
        """(b, 2), (b, t, 2) → (b, t, 2)"""
        states = h.double().numpy()
        path = []
        for u in actions.double().unbind(1):
            states = self.world.step(states, u.numpy())
            path.append(states)
        return torch.from_numpy(np.stack(path, 1)).to(h)


def exact_energy(world: Rooms) -> Energy:
    """The least number of steps from x to g, +∞ if there is none."""

    def energy(x: Tensor, goal: Tensor) -> Tensor:
        return _by_goal(world.distance_to, x, goal)

    return energy


def exact_way_back(world: Rooms) -> Energy:
    """The least number of steps from g back to x, also computed per goal."""

    def energy(goal: Tensor, x: Tensor) -> Tensor:
        return _by_goal(world.distance_from, x, goal)

    return energy


def symmetrised(energy: Energy, back: Energy | None = None) -> Energy:
    """(E(x, g) + E(g, x)) / 2; `back` is a version of E that is faster to compute per goal."""
    return lambda x, goal: (energy(x, goal) + (back or energy)(goal, x)) / 2


def _by_goal(distance: Callable[[np.ndarray, np.ndarray], np.ndarray], x: Tensor, goal: Tensor) -> Tensor:
    """Distances of many states to each distinct goal, computed goal by goal."""
    x, goal = torch.broadcast_tensors(x, goal)
    states, goals = (end.reshape(-1, 2).double().numpy() for end in (x, goal))
    each, number = np.unique(goals, axis=0, return_inverse=True)
    found = np.empty(len(states))
    for i, one in enumerate(each):
        rows = number.ravel() == i
        found[rows] = distance(one, states[rows])
    return torch.from_numpy(found).reshape(x.shape[:-1]).to(x)


@torch.no_grad()
def rank_correlations(world: Rooms, agent: PlanningAgent, seed: int) -> dict[str, Estimate]:
    """Spearman's correlation of an agent's energy with the exact one, directed and symmetrised, over random states."""
    rng = numpy_generator(seed, "pairs of states")
    x = world.states(PAIRS, rng)
    y = world.states(PAIRS, rng)
    learned = agent.energy(agent.encode(world.observe(x)), agent.encode(world.observe(y))).double().numpy()
    there = exact_energy(world)
    both_ways = symmetrised(there, exact_way_back(world))
    found = {}
    for name, energy in (("order", there), ("symmetric_order", both_ways)):
        truth = energy(torch.from_numpy(x), torch.from_numpy(y)).numpy()
        found[name] = spearman(learned, truth).value
    return point_estimates(found, PAIRS)


def through_doors(world: Rooms, count: int, seed: int) -> Tasks:
    """Tasks that start in one room and end in the other."""
    drawn = draw_tasks(world, 6 * count, seed)  # about half of them are
    across = (drawn.starts[:, 0] < world.wall_at) != (drawn.goals[:, 0] < world.wall_at)
    return Tasks(drawn.starts[across][:count], drawn.goals[across][:count])
