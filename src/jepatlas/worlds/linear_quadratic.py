"""The linear–quadratic world: z' = A z + B u with cost Σ zᵀQz + uᵀRu, solved by a Riccati equation.

The state is observed directly, or through a mixing: x = g(z). There are no pixels. `step` accepts any u, so that
optimal controls can be applied; the actions of the environment lie in [−1, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jepatlas.core.errors import InputError, check_argument, check_count, check_positive
from jepatlas.core.lazy import lazy_import
from jepatlas.core.linear_system import LinearSystem
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.latent_world import AnyMixing

if TYPE_CHECKING:
    import torch

    from jepatlas.worlds.environment import ActionEnv
else:
    torch = lazy_import("torch")

__all__ = ["LinearQuadratic"]

Rows = tuple[tuple[float, ...], ...]

MAX_WALKS = 100  # random walks of 2n steps that look for a goal outside `reach`


@dataclass(frozen=True)
class LinearQuadratic:
    """A and B are given by rows, or random: A with spectral radius `radius`, B with columns of length 1.

    >>> world = LinearQuadratic(dim=1, actions=1, a=((0.5,),), b=((2.0,),))
    >>> world.step(np.array([[4.0]]), np.array([[-1.0]])).tolist()
    [[0.0]]
    """

    kind: ClassVar[str] = "linear-quadratic"

    dim: int = 4
    """Number of state dimensions n."""
    actions: int = 2
    """Number of action dimensions."""
    a: Rows | None = None
    """Rows of A; none for a random A."""
    b: Rows | None = None
    """Rows of B; none for a random B."""
    radius: float = 0.95
    """Spectral radius of a random A: the share of a state that remains after a step, in the slowest direction."""
    seed: int = 0
    """Seed of random A and B."""
    state_cost: float = 1.0
    """Q is this multiple of the identity."""
    action_cost: float = 0.1
    """R is this multiple of the identity."""
    mixing: AnyMixing | None = None
    """Map from states to observations; none for the state itself."""
    reach: float = 0.1
    """Distance from the goal at which it counts as reached."""

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        check_count("actions", self.actions)
        check_argument("radius", self.radius, 0 < self.radius < 1, "above 0 and below 1, so that states stay bounded")
        for name in ("state_cost", "action_cost", "reach"):
            check_positive(name, getattr(self, name))
        if self.mixing is not None:
            self.mixing.observed_dim(self.dim)
        _check_rows("a", self.a, (self.dim, self.dim))
        _check_rows("b", self.b, (self.dim, self.actions))
        radius = np.abs(np.linalg.eigvals(self.A)).max()
        if radius > 1 + 1e-9:
            raise InputError(f"a has spectral radius {radius:.4g}, so states would grow without bound. Use at most 1.")

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
        """The gymnasium environment, without rendering."""
        from jepatlas.worlds.environment import ActionEnv  # noqa: PLC0415  (gymnasium is slow to import)

        return ActionEnv(self, render_mode)

    def states(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Standard normal, as the identifiability theorems assume."""
        check_count("count", count)
        return rng.standard_normal((count, self.dim))

    def goals(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Where random actions in [−1, 1] lead in 2n steps, repeated until the goal is outside `reach`."""
        goals = np.array(states, dtype=np.float64)
        for _ in range(MAX_WALKS):
            near = np.flatnonzero(self.reached(states, goals))
            if not len(near):
                return goals
            for _ in range(2 * self.dim):
                goals[near] = self.step(goals[near], rng.uniform(-1, 1, (len(near), self.actions)))
        raise InputError(
            f"Random actions in [−1, 1] do not lead further than reach = {self.reach}. Lower reach, or use a larger b."
        )

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
        raise InputError(
            f"{name} must have {shape[0]} rows of length {shape[1]}, but it has {len(rows)} rows of lengths "
            f"{sorted(lengths)}."
        )
    if not all(math.isfinite(entry) for row in rows for entry in row):
        raise InputError(f"{name} contains NaN or infinite entries. Give finite ones.")
