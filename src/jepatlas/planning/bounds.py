"""The box of allowed actions: low ≤ u ≤ high, for each dimension.

Planners measure in its half-widths: a spread of 0.5 is half of the way from the centre to a wall, in any unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import torch
from torch import Generator, Tensor

from jepatlas.core.errors import InputError

__all__ = ["ActionBox"]


class Space(Protocol):
    """What gymnasium's `Box` has."""

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
    """The least action, for each dimension."""
    high: tuple[float, ...]
    """The largest action, for each dimension."""

    def __post_init__(self) -> None:
        if not self.low or len(self.low) != len(self.high):
            raise InputError(f"An action box has bounds for each dimension, but low is {self.low}, high {self.high}.")
        for axis, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise InputError(
                    f"Actions must have finite bounds, low < high, but dimension {axis} goes from {low} to {high}. "
                    "Planners search within them: bound the actions, for example by gymnasium.wrappers.RescaleAction."
                )

    @classmethod
    def symmetric(cls, limit: float, dim: int) -> Self:
        return cls((-float(limit),) * dim, (float(limit),) * dim)

    @classmethod
    def of(cls, space: Space) -> Self:
        """The bounds of a gymnasium `Box` of vectors."""
        if np.ndim(space.low) != 1:
            raise InputError(f"Actions must be vectors, but the space has shape {np.shape(space.low)}.")
        return cls(*(tuple(float(x) for x in side) for side in (space.low, space.high)))

    @property
    def dim(self) -> int:
        return len(self.low)

    def sides(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """low and high, (a,), in the precision and on the device of `like`."""
        low, high = (torch.tensor(side, dtype=like.dtype, device=like.device) for side in (self.low, self.high))
        return low, high

    def centre(self, like: Tensor) -> Tensor:
        low, high = self.sides(like)
        return (low + high) / 2

    def half(self, like: Tensor) -> Tensor:
        """Half the width of each dimension."""
        low, high = self.sides(like)
        return (high - low) / 2

    def clamp(self, actions: Tensor) -> Tensor:
        return actions.clamp(*self.sides(actions))

    def uniform(self, shape: tuple[int, ...], generator: Generator, like: Tensor) -> Tensor:
        """Actions from all over the box, (*shape, a)."""
        low, high = self.sides(like)
        share = torch.rand(*shape, self.dim, generator=generator, device=generator.device, dtype=like.dtype)
        return low + share.to(like.device) * (high - low)
