"""Growing and shrinking at different prices: each coordinate is a size s > 0.

L(s, v) = Σ (a·v⁺ + b·v⁻) / s        with the action  a·log⁺(s'/s) + b·log⁺(s/s')  for each coordinate
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jepatlas.core.errors import InputError

__all__ = ["Scale"]


@dataclass(frozen=True)
class Scale:
    """a for growing, b for shrinking; sizes are up to `largest`, for c‖v‖ could bound nothing that has no limit."""

    grow: float
    shrink: float
    largest: float

    def __post_init__(self) -> None:
        if not min(self.grow, self.shrink, self.largest) > 0:
            raise InputError(f"Growing, shrinking and the largest size must be positive, but {self} was given.")

    @property
    def floor(self) -> float:
        return min(self.grow, self.shrink) / self.largest

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        inside = ((x > 0) & (x <= self.largest)).all(-1)
        sizes = torch.where(inside[..., None], x, 1.0)
        effort = ((self.grow * torch.relu(v) + self.shrink * torch.relu(-v)) / sizes).sum(-1)
        return torch.where(inside, effort, torch.inf)
