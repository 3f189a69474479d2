"""Random walks on bounded regions that are stationary with the uniform distribution, scaled to unit variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.errors import check_count, check_positive
from jepatlas.core.lazy import lazy_import

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["BoundedWalk", "UniformWalk"]

WALL = math.sqrt(3)


@dataclass(frozen=True)
class UniformWalk:
    """Gaussian steps in each coordinate on [−√3, √3], reflected at the ends.

    Exactly stationary: the folded Gaussian is the kernel of reflected Brownian motion. Its eigenfunctions are cosines,
    so with width w = 2√3 and steps σ,  Corr(z, z') = Σ_{k odd} 96/(πk)⁴ · exp(−(σ π k / w)² / 2).
    """

    kind: ClassVar[str] = "uniform-walk"

    dim: int = 2
    """Number of latent dimensions."""
    step: float = 0.35
    """Standard deviation of one step; 0.35 gives a correlation near 0.95."""

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        check_positive("step", self.step)

    @property
    def gaussian(self) -> bool:
        return False

    @property
    def correlation(self) -> tuple[float, ...]:
        return self.correlation_after(1)

    def correlation_after(self, steps: int) -> tuple[float, ...]:
        rate = steps * (self.step * math.pi / (2 * WALL)) ** 2 / 2
        terms = (96 / (math.pi * k) ** 4 * math.exp(-rate * k**2) for k in range(1, 1000, 2))
        return (sum(terms),) * self.dim

    def states(self, count: int, generator: Generator) -> Tensor:
        uniform = torch.rand(count, self.dim, generator=generator, device=generator.device)
        return WALL * (2 * uniform - 1)

    def transition(self, z: Tensor, generator: Generator) -> Tensor:
        moved = z + self.step * torch.randn(z.shape, generator=generator, dtype=z.dtype, device=z.device)
        # Repeated reflection at both ends is a triangle wave of period 4√3.
        width = 2 * WALL
        return WALL - (torch.remainder(moved + WALL, 2 * width) - width).abs()


@dataclass(frozen=True)
class BoundedWalk:
    """Gaussian steps in the ball of radius √(n+2); a step that would leave the ball is rejected.

    Exactly stationary and uniform (Metropolis), with Cov = I. Coordinates are uncorrelated but dependent, so this law
    is outside the theorems on independent sources. Its correlation has no closed form.
    """

    kind: ClassVar[str] = "bounded-walk"

    dim: int = 2
    """Number of latent dimensions."""
    step: float = 0.35
    """Standard deviation of one step in each coordinate."""

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        check_positive("step", self.step)

    @property
    def gaussian(self) -> bool:
        return False

    @property
    def correlation(self) -> None:
        return None

    def correlation_after(self, steps: int) -> None:
        return None

    @property
    def radius(self) -> float:
        return math.sqrt(self.dim + 2)

    def states(self, count: int, generator: Generator) -> Tensor:
        direction = torch.randn(count, self.dim, generator=generator, device=generator.device)
        uniform = torch.rand(count, 1, generator=generator, device=generator.device)
        return self.radius * uniform ** (1 / self.dim) * torch.nn.functional.normalize(direction, dim=-1)

    def transition(self, z: Tensor, generator: Generator) -> Tensor:
        moved = z + self.step * torch.randn(z.shape, generator=generator, dtype=z.dtype, device=z.device)
        inside = torch.linalg.vector_norm(moved, dim=-1, keepdim=True) <= self.radius
        return torch.where(inside, moved, z)
