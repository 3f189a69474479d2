"""The protocols. Whatever satisfies one can stand where ours does; nothing needs to be inherited.

A *world* gives states, transitions and observations. *Views* turn them into batches. An *objective* owns an
*encoder* and everything else that is trained, and turns a batch into a `Loss`. The loop knows nothing more.
*Dynamics* say what becomes of a latent under actions, a *cost* what that is worth, and a *planner* what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from jepatlas.core.records import Loss, Plan

if TYPE_CHECKING:
    from torch import Generator, Tensor

__all__ = ["Batches", "Cost", "Dynamics", "Encoder", "Energy", "Law", "Mixing", "Objective", "Planner", "World"]


class Law(Protocol):
    """How states are distributed and how they move."""

    @property
    def dim(self) -> int: ...

    @property
    def correlation(self) -> tuple[float, ...] | None:
        """Corr(z_i, z'_i) for each dimension, where it is known in closed form."""
        ...

    @property
    def gaussian(self) -> bool:
        """Whether (z, z') is jointly Gaussian and stationary, as the identifiability theorems ask."""
        ...

    def states(self, count: int, generator: Generator) -> Tensor: ...  # (b, n)

    def transition(self, z: Tensor, generator: Generator) -> Tensor: ...  # (b, n) → (b, n)


class Mixing(Protocol):
    """How a state is observed: an injective map g."""

    def observed_dim(self, dim: int) -> int:
        """The width of x for states of width `dim`; an `InputError` where this mixing cannot take them."""
        ...

    def __call__(self, z: Tensor) -> Tensor: ...  # (b, n) → (b, p)

    def inverse(self, x: Tensor) -> Tensor: ...  # (b, p) → (b, n)


class World(Law, Protocol):
    """A law seen through a mixing."""

    @property
    def observed_dim(self) -> int: ...

    def observe(self, z: Tensor) -> Tensor: ...  # (b, n) → (b, p)


class Encoder(Protocol):
    """Any `nn.Module` from observations to latents."""

    def __call__(self, x: Tensor) -> Tensor: ...  # (b, p) → (b, d)


class Objective(Protocol):
    """One `nn.Module` that owns everything trainable and gives one kind of answer."""

    def __call__(self, batch: Any, step: int) -> Loss: ...

    def encode(self, x: Tensor) -> Tensor: ...  # (b, p) → (b, d)

    def after_step(self, step: int) -> None:
        """Called after each optimiser step: moving averages and the like."""
        ...

    def smallest_batch(self, dim: int) -> int:
        """How many rows its batch statistics need for latents of width `dim`."""
        ...


class Energy(Protocol):
    """What it takes to go from x to y: not negative, and finite wherever it is learned."""

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
    """What becomes of a latent under actions."""

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:  # (b, d), (b, t, a) → (b, t, d)
        """The latents after each of the actions."""
        ...


class Cost(Protocol):
    """What candidate sequences of actions cost, for each start; +∞ where a goal is out of reach.

    `info` carries what the cost needs to know, row by row: at least the latents "start" and "goal", each (b, d).
    """

    def __call__(self, info: Mapping[str, Tensor], actions: Tensor) -> Tensor: ...  # (b, k, t, a) → (b, k)


class Planner(Protocol):
    """Looks for the actions of least cost, for each start."""

    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        """`warm` is a sequence to begin from for each start, (b, t, a): what is left of the plan before."""
        ...


class Batches(Protocol):
    """The batch of a step, the same one whenever it is asked for: so a resumed run sees what the first would have."""

    def __call__(self, step: int, /) -> Any: ...
