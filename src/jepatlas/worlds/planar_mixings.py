"""Mixings of the plane from "When Does LeJEPA Learn a World Model?": the spiral and two shears.

All three preserve volume. The spiral also preserves isotropic densities; the shears do not preserve the Gaussian.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.errors import InputError, check_argument
from jepatlas.core.lazy import lazy_import

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy_import("torch")

__all__ = ["ParabolicShear", "SinusoidalShear", "Spiral"]


@dataclass(frozen=True)
class Spiral:
    """x = R(ω‖z‖) z, with R(θ) the rotation by θ.

    It preserves volume and every isotropic density: x is as Gaussian as z, so Gaussianity alone cannot undo it.
    """

    kind: ClassVar[str] = "spiral"

    twist: float = math.pi
    """The angle ω, in radians, by which the unit circle is rotated."""

    def __post_init__(self) -> None:
        check_argument("twist", self.twist, math.isfinite(self.twist), "finite")

    def observed_dim(self, dim: int) -> int:
        return _check_plane(self.kind, dim)

    def __call__(self, z: Tensor) -> Tensor:
        """
        >>> Spiral()(torch.tensor([[1.0, 0.0]])).round(decimals=6) + 0.0
        tensor([[-1.,  0.]])
        """
        return self._rotate(z, self.twist)

    def inverse(self, x: Tensor) -> Tensor:
        # The rotation keeps the radius, so x determines the angle.
        return self._rotate(x, -self.twist)

    def _rotate(self, points: Tensor, twist: float) -> Tensor:
        self.observed_dim(points.shape[-1])
        angle = twist * torch.linalg.vector_norm(points, dim=-1)
        cosine, sine = angle.cos(), angle.sin()
        first, second = points.unbind(-1)
        return torch.stack([cosine * first - sine * second, sine * first + cosine * second], -1)


@dataclass(frozen=True)
class SinusoidalShear:
    """x = (z₀ + sin(ω z₁), z₁)."""

    kind: ClassVar[str] = "sinusoidal-shear"

    frequency: float = 1.5
    """The angular frequency ω of the sine."""

    def __post_init__(self) -> None:
        check_argument("frequency", self.frequency, math.isfinite(self.frequency), "finite")

    def observed_dim(self, dim: int) -> int:
        return _check_plane(self.kind, dim)

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
        return _check_plane(self.kind, dim)

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


def _check_plane(mixing: str, dim: int) -> int:
    if dim != 2:
        raise InputError(
            f"The mixing '{mixing}' needs states of dim 2, but dim is {dim}. Set dim to 2, or use 'coupling'."
        )
    return 2
