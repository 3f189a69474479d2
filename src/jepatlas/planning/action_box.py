"""Action bounds: low ≤ u ≤ high in each dimension.

Planners express noise in half-widths of the box: a standard deviation of 0.5 is half the distance from the centre to a
bound, in any unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.lazy import lazy_import

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["ActionBox"]


class Space(Protocol):
    """The attributes of gymnasium's `Box` that are used here."""

    @property
    def low(self) -> np.ndarray: ...

    @property
    def high(self) -> np.ndarray: ...


@dataclass(frozen=True)
class ActionBox:
    """
    >>> ActionBox.symmetric(2.0, dim=2).clamp(torch.tensor([[3.0, -1.0]]))
    tensor([[ 2., -1.]])
    """

    low: tuple[float, ...]
    """Lower bound of each dimension."""
    high: tuple[float, ...]
    """Upper bound of each dimension."""

    def __post_init__(self) -> None:
        if not self.low or len(self.low) != len(self.high):
            raise InputError(
                f"low and high need one bound per action dimension, but low is {self.low} and high is {self.high}."
            )
        for axis, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise InputError(
                    f"Actions need finite bounds with low < high, but dimension {axis} has low {low} and high {high}. "
                    "Bound the actions first, for example with gymnasium.wrappers.RescaleAction."
                )

    @classmethod
    def symmetric(cls, limit: float, dim: int) -> Self:
        """The box [−limit, limit]^dim."""
        return cls((-float(limit),) * dim, (float(limit),) * dim)

    @classmethod
    def of(cls, space: Space) -> Self:
        """The bounds of a one-dimensional gymnasium `Box`."""
        if np.ndim(space.low) != 1:
            raise InputError(f"Actions must be vectors, but the action space has shape {np.shape(space.low)}.")
        return cls(tuple(float(x) for x in space.low), tuple(float(x) for x in space.high))

    @property
    def dim(self) -> int:
        return len(self.low)

    def sides(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """low and high, (a,) each, with the dtype and device of `like`."""
        low = torch.tensor(self.low, dtype=like.dtype, device=like.device)
        high = torch.tensor(self.high, dtype=like.dtype, device=like.device)
        return low, high

    def centre(self, like: Tensor) -> Tensor:
        low, high = self.sides(like)
        return (low + high) / 2

    def half(self, like: Tensor) -> Tensor:
        """Half the width in each dimension, (a,)."""
        low, high = self.sides(like)
        return (high - low) / 2

    def clamp(self, actions: Tensor) -> Tensor:
        low, high = self.sides(actions)
        return actions.clamp(low, high)

    def uniform(self, shape: tuple[int, ...], generator: Generator, like: Tensor) -> Tensor:
        """Actions drawn uniformly from the box, (*shape, a)."""
        low, high = self.sides(like)
        share = torch.rand(*shape, self.dim, generator=generator, device=generator.device, dtype=like.dtype)
        return low + share.to(like.device) * (high - low)
