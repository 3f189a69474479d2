"""The spiral of "When Does LeJEPA Learn a World Model?": the wider a circle, the further it is turned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from jepatlas.core.errors import check_argument
from jepatlas.worlds.checks import check_plane

__all__ = ["Spiral"]


@dataclass(frozen=True)
class Spiral:
    """x = R(ω‖z‖) z in the plane, R(θ) the rotation by θ.

    It preserves volume and every isotropic density: x is as Gaussian as z, so Gaussianity alone cannot undo it.
    """

    kind: ClassVar[str] = "spiral"

    twist: float = math.pi
    """The angle ω, in radians, by which the circle of radius one is turned."""

    def __post_init__(self) -> None:
        check_argument("twist", self.twist, math.isfinite(self.twist), "finite")

    def observed_dim(self, dim: int) -> int:
        return check_plane(self.kind, dim)

    def __call__(self, z: Tensor) -> Tensor:
        """
        >>> Spiral()(torch.tensor([[1.0, 0.0]])).round(decimals=6) + 0.0
        tensor([[-1.,  0.]])
        """
        return self._turn(z, self.twist)

    def inverse(self, x: Tensor) -> Tensor:
        # Turning keeps the radius, so the angle can be read off x.
        return self._turn(x, -self.twist)

    def _turn(self, points: Tensor, twist: float) -> Tensor:
        self.observed_dim(points.shape[-1])
        angle = twist * torch.linalg.vector_norm(points, dim=-1)
        cosine, sine = angle.cos(), angle.sin()
        first, second = points.unbind(-1)
        return torch.stack([cosine * first - sine * second, sine * first + cosine * second], -1)
