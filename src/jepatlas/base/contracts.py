"""The protocols. Whatever satisfies one can stand where ours does; nothing needs to be inherited.

A *world* gives states, transitions and observations. *Views* turn them into batches. An *objective* owns an
*encoder* and everything else that is trained, and turns a batch into a `Loss`. The loop knows nothing more.
"""

from __future__ import annotations

from typing import Any, Protocol

from torch import Generator, Tensor

from jepatlas.base.records import Loss

__all__ = ["Batches", "Encoder", "Energy", "Law", "Mixing", "Objective", "World"]


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


class Batches(Protocol):
    """The batch of a step, the same one whenever it is asked for: so a resumed run sees what the first would have."""

    def __call__(self, step: int, /) -> Any: ...
