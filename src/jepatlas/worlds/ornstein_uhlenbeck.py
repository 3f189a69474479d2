"""The Ornstein–Uhlenbeck law of "When Does LeJEPA Learn a World Model?".

z ~ N(0, I),  z' = ρ z + √(1−ρ²) η,  η ~ N(0, I).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.core.lazy import lazy_import

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["OrnsteinUhlenbeck", "Rho", "autoregress", "correlations"]

Rho = float | tuple[float, ...]


@dataclass(frozen=True)
class OrnsteinUhlenbeck:
    """Gaussian, stationary and reversible: the law for which linear identifiability is proven."""

    kind: ClassVar[str] = "ornstein-uhlenbeck"

    dim: int = 2
    """Number of latent dimensions."""
    rho: Rho = 0.95
    """Correlation between a state and its successor, in [0, 1): one value, or one per dimension."""

    def __post_init__(self) -> None:
        correlations(self.rho, self.dim)

    @property
    def gaussian(self) -> bool:
        return True

    @property
    def correlation(self) -> tuple[float, ...]:
        """
        >>> OrnsteinUhlenbeck(dim=2, rho=(0.9, 0.5)).correlation
        (0.9, 0.5)
        """
        return correlations(self.rho, self.dim)

    def correlation_after(self, steps: int) -> tuple[float, ...]:
        return tuple(rho**steps for rho in self.correlation)

    def states(self, count: int, generator: Generator) -> Tensor:
        return torch.randn(count, self.dim, generator=generator, device=generator.device)

    def transition(self, z: Tensor, generator: Generator) -> Tensor:
        noise = torch.randn(z.shape, generator=generator, dtype=z.dtype, device=z.device)
        return autoregress(z, noise, self.rho)


def correlations(rho: Rho, dim: int) -> tuple[float, ...]:
    """One ρ per dimension; raises InputError if rho does not fit dim or is outside [0, 1)."""
    check_count("dim", dim)
    values = rho if isinstance(rho, tuple) else (rho,) * dim
    if len(values) != dim:
        raise InputError(f"rho has length {len(values)}, but dim is {dim}. Give one value, or one per dimension.")
    check_argument("rho", rho, all(0 <= value < 1 for value in values), "in [0, 1)")
    return values


def autoregress(z: Tensor, noise: Tensor, rho: Rho) -> Tensor:
    """ρ z + √(1−ρ²) η, with coefficients computed in float64: in float32, 1−ρ² cancels near ρ = 1."""
    keep = torch.tensor(rho, dtype=torch.float64, device="cpu")
    renew = (1 - keep.square()).sqrt()
    return keep.to(z) * z + renew.to(z) * noise
