"""Protocols of worlds, objectives, energies, dynamics, costs and planners. Classes need not inherit from them.

A *world* provides states, transitions and observations, from which batches are made. An *objective* owns an *encoder*
and everything else that is trained, and maps a batch to a `Loss`. *Dynamics* predict latents under actions, a *cost*
evaluates sequences of actions, and a *planner* minimises a cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from jepatlas.core.records import Loss, Plan

if TYPE_CHECKING:
    from torch import Generator, Tensor

__all__ = ["Batches", "Cost", "Dynamics", "Energy", "Law", "Objective", "Planner", "World"]


class Law(Protocol):
    """The distribution of states and of their transitions."""

    @property
    def dim(self) -> int: ...

    @property
    def correlation(self) -> tuple[float, ...] | None:
        """Corr(z_i, z'_i) for each dimension, if known in closed form."""
        ...

    @property
    def gaussian(self) -> bool:
        """Whether (z, z') is jointly Gaussian and stationary, as the identifiability theorems require."""
        ...

    def states(self, count: int, generator: Generator) -> Tensor: ...  # (b, n)

    def transition(self, z: Tensor, generator: Generator) -> Tensor: ...  # (b, n) → (b, n)


class World(Law, Protocol):
    """A law of states and a mixing that observes them."""

    @property
    def observed_dim(self) -> int: ...

    def observe(self, z: Tensor) -> Tensor: ...  # (b, n) → (b, p)


class Objective(Protocol):
    """One `nn.Module` that owns everything trainable and maps a batch to a `Loss`."""

    def __call__(self, batch: Any, step: int) -> Loss: ...

    def encode(self, x: Tensor) -> Tensor: ...  # (b, p) → (b, d)

    def after_step(self, step: int) -> None:
        """Called after each optimiser step, for example to update moving averages."""
        ...

    def smallest_batch(self, dim: int) -> int:
        """The smallest number of rows that its batch statistics need for latents of width `dim`."""
        ...


class Energy(Protocol):
    """The cost of going from x to y: non-negative, and finite if it is learned."""

    @property
    def guaranteed_quasimetric(self) -> bool:
        """Whether zero at identical points and the triangle inequality hold by construction."""
        ...

    @property
    def pseudo(self) -> bool:
        """Whether distinct points may be at distance 0."""
        ...

    def __call__(self, x: Tensor, y: Tensor) -> Tensor: ...  # (..., d), (..., d) → (...)


class Dynamics(Protocol):
    """Predicted latents under actions."""

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:  # (b, d), (b, t, a) → (b, t, d)
        """The latents after each action."""
        ...


class Cost(Protocol):
    """The cost of candidate action sequences for each start; +∞ if the goal cannot be reached.

    `info` holds the rows' inputs: at least the latents "start" and "goal", each (b, d).
    """

    def __call__(self, info: Mapping[str, Tensor], actions: Tensor) -> Tensor: ...  # (b, k, t, a) → (b, k)


class Planner(Protocol):
    """Minimises a cost over actions, for each start."""

    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        """`warm` is an initial sequence for each start, (b, t, a), for example the rest of the previous plan."""
        ...


class Batches(Protocol):
    """The batch of a step. It is always the same for the same step, so that resumed runs see the same data."""

    def __call__(self, step: int, /) -> Any: ...
