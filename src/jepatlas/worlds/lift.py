"""Lift: an injective nonlinear map of states into a space of more dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.core.lazy import lazy_import
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.random_matrices import semi_orthogonal, tensors, well_conditioned

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy_import("torch")

__all__ = ["Lift"]


@dataclass(frozen=True)
class Lift:
    """x = B σ(A z), A (p × n) with orthonormal columns, σ the leaky ReLU, B (p × p) well conditioned.

    Injective, because each of the three maps is. The left inverse z = Aᵀ σ⁻¹(B⁻¹ x) is exact on the image.
    """

    kind: ClassVar[str] = "lift"

    observed: int = 8
    """Number of observed dimensions p, at least that of the states."""
    dim: int | None = None
    """Number of latent dimensions n; only `inverse` needs it."""
    slope: float = 0.2
    """Slope of the leaky ReLU for negative values, in (0, 1]; 1 makes the lift linear."""
    seed: int = 0
    """Seed of the random weights."""

    def __post_init__(self) -> None:
        check_count("observed", self.observed)
        check_argument("slope", self.slope, 0 < self.slope <= 1, "in (0, 1] (slope 0 is not invertible)")
        if self.dim is not None:
            self.observed_dim(self.dim)

    def observed_dim(self, dim: int) -> int:
        check_count("dim", dim)
        if self.dim not in (None, dim):
            raise InputError(f"The mixing 'lift' has dim {self.dim}, but the states have dim {dim}.")
        if self.observed < dim:
            raise InputError(f"observed is {self.observed}, but it must be at least the dim of the states, {dim}.")
        return self.observed

    def __call__(self, z: Tensor) -> Tensor:
        self.observed_dim(z.shape[-1])
        a, b, _ = _weights(self.observed, self.seed, z.shape[-1], z.dtype, z.device)
        return torch.nn.functional.leaky_relu(z @ a.T, self.slope) @ b.T

    def inverse(self, x: Tensor) -> Tensor:
        if self.dim is None:
            raise InputError("The inverse of 'lift' needs the number of latent dimensions: Lift(dim=...).")
        check_argument("x.shape[-1]", x.shape[-1], x.shape[-1] == self.observed, f"observed = {self.observed}")
        a, _, b_inverse = _weights(self.observed, self.seed, self.dim, x.dtype, x.device)
        return torch.nn.functional.leaky_relu(x @ b_inverse.T, 1 / self.slope) @ a


@lru_cache(maxsize=32)
def _weights(observed: int, seed: int, dim: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, ...]:
    """A, B and B⁻¹."""
    a = semi_orthogonal(observed, dim, numpy_generator(seed, "worlds/lift", 0))
    b, b_inverse = well_conditioned(observed, numpy_generator(seed, "worlds/lift", 1))
    return tensors((a, b, b_inverse), dtype, device)
