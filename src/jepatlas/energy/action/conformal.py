"""Efforts that are the same in all directions.

L(x, v) = f(x)‖v‖        with f ≥ c; f = const is the Euclidean length, f = 1/x_d Poincaré's half-space
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from jepatlas.energy.action.effort import norm

__all__ = ["Conformal", "Euclidean"]


@dataclass(frozen=True)
class Euclidean:
    """c‖v‖ everywhere: minimal paths are straight."""

    floor: float = 1.0

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        return self.floor * norm(v)


@dataclass(frozen=True)
class Conformal:
    """f(x)‖v‖; where f is below the floor x is outside the world, and the effort +∞."""

    factor: Callable[[Tensor], Tensor]  # (..., d) → (...)
    floor: float

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        factor = self.factor(x)
        inside = factor >= self.floor
        return torch.where(inside, factor, 1.0) * norm(v) + torch.where(inside, 0.0, torch.inf)
