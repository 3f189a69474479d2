"""Planning with the truth: exact costs-to-go of rooms, directed or symmetrised, and the world's own dynamics.

A planner that goes by these sees states, imagines without error and knows every distance: where it fails, the energy
itself is at fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import torch
from torch import Tensor

from jepatlas.workflows.plan import PlanningAgent
from jepatlas.worlds import Rooms

__all__ = ["Energy", "all_knowing", "bare", "exact_energy", "exact_way_back", "symmetrised"]

Energy = Callable[[Tensor, Tensor], Tensor]


def all_knowing(world: Rooms, energy: Energy) -> PlanningAgent:
    """For the rooms as `bare` shows them."""
    return PlanningAgent(torch.from_numpy, _Dynamics(world), energy, world.action_dim)


def bare(world: Rooms) -> Rooms:
    """The same rooms, seen as what they are: the state."""
    return _Bare(**{field.name: getattr(world, field.name) for field in fields(world)})


class _Bare(Rooms):
    def observe(self, states: np.ndarray) -> np.ndarray:
        return states


class _Dynamics:
    """The world's own steps, for planning."""

    def __init__(self, world: Rooms) -> None:
        self.world = world

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
        """(b, 2), (b, t, 2) → (b, t, 2)"""
        states, ways = h.double().numpy(), []
        for u in actions.double().unbind(1):
            states = self.world.step(states, u.numpy())
            ways.append(states)
        return torch.from_numpy(np.stack(ways, 1)).to(h)


def exact_energy(world: Rooms) -> Energy:
    """The least number of steps from x to g, +∞ where there is no way."""

    def energy(x: Tensor, goal: Tensor) -> Tensor:
        return _by_goal(world.distance_to, x, goal)

    return energy


def exact_way_back(world: Rooms) -> Energy:
    """The least number of steps from g back to x, which is looked up from g, too."""

    def energy(goal: Tensor, x: Tensor) -> Tensor:
        return _by_goal(world.distance_from, x, goal)

    return energy


def symmetrised(energy: Energy, back: Energy | None = None) -> Energy:
    """(E(x, g) + E(g, x)) / 2; `back` is E where that is quicker to tell from the goal."""
    return lambda x, goal: (energy(x, goal) + (back or energy)(goal, x)) / 2


def _by_goal(distance: Callable[[np.ndarray, np.ndarray], np.ndarray], x: Tensor, goal: Tensor) -> Tensor:
    """Distances are told of one goal and many states, so rows of one goal are asked about together."""
    x, goal = torch.broadcast_tensors(x, goal)
    states, goals = (end.reshape(-1, 2).double().numpy() for end in (x, goal))
    each, number = np.unique(goals, axis=0, return_inverse=True)
    found = np.empty(len(states))
    for i, one in enumerate(each):
        rows = number.ravel() == i
        found[rows] = distance(one, states[rows])
    return torch.from_numpy(found).reshape(x.shape[:-1]).to(x)
