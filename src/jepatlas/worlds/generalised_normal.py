"""Two laws whose states have the generalised normal density p(x) ∝ exp(−|x/s|^α), s² = Γ(1/α)/Γ(3/α).

α = 1 is Laplace, α = 2 Gaussian, α → ∞ uniform; the variance is always one. The laws differ in how states move:
additive noise, as published, leaves the density; a Gaussian copula keeps it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Generator, Tensor

from jepatlas.core.errors import check_argument
from jepatlas.worlds.normal_scores import from_gaussian, hermite_variances, scale, to_gaussian
from jepatlas.worlds.ornstein_uhlenbeck import OrnsteinUhlenbeck, Rho, autoregress, rates

__all__ = ["AdditiveGeneralisedNormal", "CopulaGeneralisedNormal"]


@dataclass(frozen=True)
class AdditiveGeneralisedNormal:
    """z' = ρ z + √(1−ρ²) η with z, η ~ GN(α): the sampler of "When Does LeJEPA Learn a World Model?".

    Mean, variance and correlation are kept, the density is not: for α ≠ 2 the law is *not* stationary, so it lies
    outside the theorems about stationary additive noise. `CopulaGeneralisedNormal` is the stationary twin.
    """

    kind: ClassVar[str] = "additive-generalised-normal"

    dim: int = 2
    """Number of latent dimensions."""
    rho: Rho = 0.95
    """Correlation of a state and its successor, in [0, 1): one for all dimensions, or one for each."""
    alpha: float = 1.0
    """Exponent of the density, from 1/8 (heavy tails) over 2 (Gaussian) to 32 (nearly uniform)."""

    def __post_init__(self) -> None:
        rates(self.rho, self.dim)
        _check_alpha(self.alpha)

    @property
    def gaussian(self) -> bool:
        return self.alpha == 2

    @property
    def correlation(self) -> tuple[float, ...]:
        return rates(self.rho, self.dim)

    def correlation_after(self, steps: int) -> tuple[float, ...]:
        return tuple(rho**steps for rho in self.correlation)

    def states(self, count: int, generator: Generator) -> Tensor:
        empty = torch.empty(count, self.dim, device=generator.device)
        return _generalised_normal(empty, self.alpha, generator)

    def transition(self, z: Tensor, generator: Generator) -> Tensor:
        return autoregress(z, _generalised_normal(z, self.alpha, generator), self.rho)


@dataclass(frozen=True)
class CopulaGeneralisedNormal:
    """z = F⁻¹(Φ(u)) with u Ornstein–Uhlenbeck: exactly stationary and reversible with marginals GN(α).

    The warp Φ⁻¹∘F that makes it Gaussian is known in closed form, so recovery up to a warp can be scored. The noise is
    not additive in z. `rho` is the correlation of u; that of z is Σ_d v_d ρ^d, v_d the variance of F⁻¹∘Φ at degree d.
    """

    kind: ClassVar[str] = "copula-generalised-normal"

    dim: int = 2
    """Number of latent dimensions."""
    rho: Rho = 0.95
    """Correlation of the Gaussian states behind it, in [0, 1): one for all dimensions, or one for each."""
    alpha: float = 1.0
    """Exponent of the density, from 1/8 (heavy tails) over 2 (Gaussian) to 32 (nearly uniform)."""

    def __post_init__(self) -> None:
        rates(self.rho, self.dim)
        _check_alpha(self.alpha)

    @property
    def gaussian(self) -> bool:
        return self.alpha == 2

    @property
    def correlation(self) -> tuple[float, ...]:
        return self.correlation_after(1)

    def correlation_after(self, steps: int) -> tuple[float, ...]:
        variances = ((1, 1.0),) if self.gaussian else hermite_variances(self.alpha)
        behind = rates(self.rho, self.dim)
        known = {rho: sum(v * rho ** (steps * degree) for degree, v in variances) for rho in set(behind)}
        return tuple(known[rho] for rho in behind)

    def states(self, count: int, generator: Generator) -> Tensor:
        return self.from_gaussian(self._behind.states(count, generator))

    def transition(self, z: Tensor, generator: Generator) -> Tensor:
        return self.from_gaussian(self._behind.transition(self.to_gaussian(z), generator))

    def to_gaussian(self, z: Tensor) -> Tensor:
        """u = Φ⁻¹(F(z)), finite up to 37 standard deviations."""
        return torch.from_numpy(to_gaussian(_array(z), self.alpha)).to(z)

    def from_gaussian(self, u: Tensor) -> Tensor:
        """z = F⁻¹(Φ(u)), finite up to 37 standard deviations."""
        return torch.from_numpy(from_gaussian(_array(u), self.alpha)).to(u)

    @cached_property
    def _behind(self) -> OrnsteinUhlenbeck:
        return OrnsteinUhlenbeck(self.dim, self.rho)


def _check_alpha(alpha: float) -> None:
    check_argument("alpha", alpha, 1 / 8 <= alpha <= 32, "from 1/8 to 32")


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()


def _generalised_normal(like: Tensor, alpha: float, generator: Generator) -> Tensor:
    """s U G^{1/α} with U uniform on (−1, 1), G ~ Gamma(1 + 1/α).

    The textbook form ± s Gamma(1/α)^{1/α} underflows: for α = 32 it would in one float32 draw of fifteen.
    """
    # Half precision would overflow in the power for small α.
    wide = torch.promote_types(like.dtype, torch.float32)
    shape = torch.full_like(like, 1 + 1 / alpha, dtype=wide)
    gamma = torch._standard_gamma(shape, generator=generator)  # pyright: ignore[reportPrivateImportUsage]
    uniform = torch.rand(like.shape, generator=generator, dtype=wide, device=like.device)
    return (scale(alpha) * (2 * uniform - 1) * gamma.pow(1 / alpha)).to(like.dtype)
