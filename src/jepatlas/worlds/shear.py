"""Shears of the plane, from "When Does LeJEPA Learn a World Model?": one coordinate is pushed by the other.

Both preserve volume, but not the Gaussian density.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from jepatlas.core.errors import check_argument
from jepatlas.worlds.checks import check_plane

__all__ = ["ParabolicShear", "SinusoidalShear"]


@dataclass(frozen=True)
class SinusoidalShear:
    """x = (z₀ + sin(ω z₁), z₁)."""

    kind: ClassVar[str] = "sinusoidal-shear"

    frequency: float = 1.5
    """The angular frequency ω of the sine."""

    def __post_init__(self) -> None:
        check_argument("frequency", self.frequency, math.isfinite(self.frequency), "finite")

    def observed_dim(self, dim: int) -> int:
        return check_plane(self.kind, dim)

    def __call__(self, z: Tensor) -> Tensor:
        """
        >>> SinusoidalShear(frequency=0.0)(torch.tensor([[1.0, 2.0]]))
        tensor([[1., 2.]])
        """
        self.observed_dim(z.shape[-1])
        return torch.stack([z[..., 0] + (self.frequency * z[..., 1]).sin(), z[..., 1]], -1)

    def inverse(self, x: Tensor) -> Tensor:
        self.observed_dim(x.shape[-1])
        return torch.stack([x[..., 0] - (self.frequency * x[..., 1]).sin(), x[..., 1]], -1)


@dataclass(frozen=True)
class ParabolicShear:
    """x = (z₀, z₁ + z₀²)."""

    kind: ClassVar[str] = "parabolic-shear"

    def observed_dim(self, dim: int) -> int:
        return check_plane(self.kind, dim)

    def __call__(self, z: Tensor) -> Tensor:
        """
        >>> ParabolicShear()(torch.tensor([[3.0, 1.0]]))
        tensor([[ 3., 10.]])
        """
        self.observed_dim(z.shape[-1])
        return torch.stack([z[..., 0], z[..., 1] + z[..., 0].square()], -1)

    def inverse(self, x: Tensor) -> Tensor:
        self.observed_dim(x.shape[-1])
        return torch.stack([x[..., 0], x[..., 1] - x[..., 0].square()], -1)
