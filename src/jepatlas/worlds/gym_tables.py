"""Deterministic gymnasium environments with finitely many states and actions, as worlds with exact energies.

Each action in each state is an edge s → s'; E(s, s') is the least cost of actions that lead there, +∞ if none do. No
step leaves a terminal state: what falls into a hole stays there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError
from jepatlas.core.graphs import Graph
from jepatlas.core.records import Experience
from jepatlas.worlds.episodes import as_experience, walk_graph
from jepatlas.worlds.gym_dynamics import Step, TabularDynamics, read_dynamics

__all__ = ["GymTable"]


@dataclass(frozen=True)
class GymTable:
    """The states that can be entered from where episodes begin, and the steps between different ones.

    Actions that leave the state as it is (into a wall) are no steps here: no shortest path has them.

    >>> len(GymTable("CliffWalking-v1").positions)  # 4 × 12 cells, without the 10 from which one falls at once
    38
    """

    kind: ClassVar[str] = "gym"

    env: str = "CliffWalking-v1"
    """The environment's registered name, for example CliffWalking-v1, FrozenLake-v1, FrozenLake8x8-v1 or Taxi-v4."""
    cost: Literal["step", "reward"] = "step"
    """What a step costs: 1, or the reward with the sign turned."""

    def __post_init__(self) -> None:
        check_literals(self)

    @cached_property
    def _dynamics(self) -> TabularDynamics:
        return read_dynamics(self.env)

    @cached_property
    def _steps(self) -> tuple[Step, ...]:
        """The steps that can happen: none leaves a terminal state, whatever the table says of it."""
        final = {end for _, end, _, over in self._dynamics.steps if over}
        return tuple(step for step in self._dynamics.steps if step[0] not in final)

    @cached_property
    def numbers(self) -> np.ndarray:
        """The number of each state in the environment, counted from 0: (n,)."""
        ends: dict[int, set[int]] = {}
        for state, end, _, _ in self._steps:
            ends.setdefault(state, set()).add(end)
        entered, front = set(self._dynamics.begins), list(self._dynamics.begins)
        while front:
            new = ends.get(front.pop(), set()) - entered
            entered |= new
            front.extend(new)
        return np.array(sorted(entered))

    @property
    def observed_dim(self) -> int:
        return 2 if self._dynamics.shape else self._dynamics.size

    @cached_property
    def positions(self) -> np.ndarray:
        """Row and column of each state where the environment is a grid, else its number: (n, 2) or (n, 1)."""
        shape = self._dynamics.shape or (self._dynamics.size,)
        return np.stack(np.unravel_index(self.numbers, shape), -1).astype(np.float64)

    @cached_property
    def graph(self) -> Graph:
        """Every step, between places in `positions`, with its cost."""
        known = set(self.numbers.tolist())
        steps = [(s, end, reward) for s, end, reward, _ in self._steps if s in known and s != end]
        ends = np.array([step[:2] for step in steps], dtype=np.int64).reshape(-1, 2)
        reward = np.array([step[2] for step in steps])
        source, target = np.searchsorted(self.numbers, ends).T
        return Graph(len(self.numbers), source, target, self._cost(reward))

    def _cost(self, reward: np.ndarray) -> np.ndarray:
        if self.cost == "step":
            return np.ones(len(reward))
        if len(reward) and reward.max() > 0:
            raise InputError(
                f"'{self.env}' has steps with a reward of {reward.max():g}, so their cost would be negative. Set cost "
                "to 'step'."
            )
        return -reward + 0.0  # no negative zeros

    def observe(self, z: np.ndarray) -> np.ndarray:
        """Row and column, each brought to [−1, 1], where the environment is a grid; else a one for the state."""
        z = np.asarray(z, dtype=np.float64)
        if self._dynamics.shape:
            return 2 * z / np.maximum(1, np.array(self._dynamics.shape) - 1) - 1
        return np.eye(self._dynamics.size)[z[..., 0].astype(np.int64)]

    def walk(self, episodes: int, length: int, seed: int, coverage: float = 1.0) -> Experience:
        """Random episodes that use a share `coverage` of the possible steps; they begin in any state."""
        states, cost = walk_graph(self.graph, episodes, length, seed, coverage)
        return as_experience(self.positions[states], states[:, 1:] >= 0, cost, self.observe)
