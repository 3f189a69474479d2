"""The linear–quadratic world: z' = A z + B u, with a cost Σ zᵀQz + uᵀRu whose optimum a Riccati equation gives.

The state is observed as it is, or through a mixing g that hides it: x = g(z). There are no pixels. The physics takes
any u, so that the optimal controls of theory can be tried; the environment's actions are those in [−1, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch

from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.core.linear_system import LinearSystem
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.environment import ActionEnv
from jepatlas.worlds.world import AnyMixing

__all__ = ["LinearQuadratic"]

Rows = tuple[tuple[float, ...], ...]

TRIES = 100  # of 2n random steps each, before goals are said to be too far


@dataclass(frozen=True)
class LinearQuadratic:
    """A and B are given by rows, or drawn by the seed: A of the spectral radius `radius`, B with columns of length 1.

    >>> world = LinearQuadratic(dim=1, actions=1, a=((0.5,),), b=((2.0,),))
    >>> world.step(np.array([[4.0]]), np.array([[-1.0]])).tolist()
    [[0.0]]
    """

    kind: ClassVar[str] = "linear-quadratic"

    dim: int = 4
    """Width n of the state."""
    actions: int = 2
    """Width of the action."""
    a: Rows | None = None
    """Rows of A; none to draw it."""
    b: Rows | None = None
    """Rows of B; none to draw it."""
    radius: float = 0.95
    """Spectral radius of a drawn A: the share of a state that is left after a step, in the slowest direction."""
    seed: int = 0
    """Seed of what is drawn."""
    state_cost: float = 1.0
    """Q is this times the identity."""
    action_cost: float = 0.1
    """R is this times the identity."""
    mixing: AnyMixing | None = None
    """How the state is observed; none for the state itself."""
    reach: float = 0.1
    """How near a goal one has reached it."""

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        check_count("actions", self.actions)
        check_argument("radius", self.radius, 0 < self.radius < 1, "above 0 and below 1, or states would grow")
        for name in ("state_cost", "action_cost", "reach"):
            check_argument(name, getattr(self, name), 0 < getattr(self, name) < math.inf, "positive and finite")
        if self.mixing is not None:
            self.mixing.observed_dim(self.dim)
        _check_rows("a", self.a, (self.dim, self.dim))
        _check_rows("b", self.b, (self.dim, self.actions))
        if (radius := np.abs(np.linalg.eigvals(self.A)).max()) > 1 + 1e-9:
            raise InputError(f"a has the spectral radius {radius:.4g}: states would grow without bound. At most 1 is.")

    @property
    def state_dim(self) -> int:
        return self.dim

    @property
    def action_dim(self) -> int:
        return self.actions

    @cached_property
    def A(self) -> np.ndarray:
        if self.a is not None:
            return np.array(self.a, dtype=np.float64)
        drawn = numpy_generator(self.seed, "worlds/linear-quadratic/a").standard_normal((self.dim, self.dim))
        return drawn * self.radius / np.abs(np.linalg.eigvals(drawn)).max()

    @cached_property
    def B(self) -> np.ndarray:
        if self.b is not None:
            return np.array(self.b, dtype=np.float64)
        drawn = numpy_generator(self.seed, "worlds/linear-quadratic/b").standard_normal((self.dim, self.actions))
        return drawn / np.linalg.norm(drawn, axis=0)

    @cached_property
    def system(self) -> LinearSystem:
        return LinearSystem(self.A, self.B)

    @property
    def Q(self) -> np.ndarray:
        return self.state_cost * np.eye(self.dim)

    @property
    def R(self) -> np.ndarray:
        return self.action_cost * np.eye(self.actions)

    def make(self, render_mode: str | None = None) -> ActionEnv:
        """The gymnasium environment; there is nothing to render."""
        return ActionEnv(self, render_mode)

    def states(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Standard normal, as the theorems on identifiability ask."""
        check_count("count", count)
        return rng.standard_normal((count, self.dim))

    def goals(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Where random actions lead in 2n steps or more, until it is out of `reach`: so actions in [−1, 1] do."""
        goals = np.array(states, dtype=np.float64)
        for _ in range(TRIES):
            near = np.flatnonzero(self.reached(states, goals))
            if not len(near):
                return goals
            for _ in range(2 * self.dim):
                goals[near] = self.step(goals[near], rng.uniform(-1, 1, (len(near), self.actions)))
        raise InputError(f"Actions in [−1, 1] do not lead out of reach = {self.reach}. Lower it, or give a larger b.")

    def admits(self, states: np.ndarray) -> np.ndarray:
        return np.logical_and.reduce(np.isfinite(states), axis=-1)

    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return self.system.step(states, actions)

    def observe(self, states: np.ndarray) -> np.ndarray:
        if self.mixing is None:
            return np.array(states, dtype=np.float64)
        return self.mixing(torch.tensor(states, dtype=torch.float64)).numpy()

    def reached(self, states: np.ndarray, goals: np.ndarray) -> np.ndarray:
        return np.linalg.norm(goals - states, axis=-1) <= self.reach


def _check_rows(name: str, rows: Rows | None, shape: tuple[int, int]) -> None:
    if rows is None:
        return
    lengths = {len(row) for row in rows}
    if len(rows) != shape[0] or lengths != {shape[1]}:
        raise InputError(f"{name} has {len(rows)} rows of lengths {sorted(lengths)}, but it must be {shape}.")
    if not all(math.isfinite(entry) for row in rows for entry in row):
        raise InputError(f"{name} holds NaN or infinite numbers. Give finite ones.")
