"""Langevin motion with a generalised normal density: stationary additive noise, the class of Theorem 2.

    dz = ∇ log p(z) dt + √2 dW,    p(z) ∝ exp(−|z/s|^α)    in each coordinate, over a time t = −ln ρ

Each step of the discretisation is accepted or rejected by Metropolis' rule, so that p is kept exactly and the motion is
reversible whatever the step (MALTA: Roberts and Tweedie, 1996). With shorter steps nearly all are accepted, and the
motion is Langevin's. Its first eigenfunction is that of `sturm_liouville_generalised_normal`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.errors import check_argument
from jepatlas.core.lazy import lazy_import
from jepatlas.worlds.generalised_normal import AdditiveGeneralisedNormal, scale
from jepatlas.worlds.ornstein_uhlenbeck import Rho, autoregress, correlations

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["LangevinGeneralisedNormal"]

LONGEST_STEP = 0.004
"""Of time. At α = 32 the density falls to zero within .06; a step of .004 has noise .09."""


@dataclass(frozen=True)
class LangevinGeneralisedNormal:
    """z(t) of Langevin motion with density GN(α), stationary and reversible.

    `rho` sets the time between states, t = −ln ρ, in which the Gaussian (α = 2) has correlation ρ. For other α the
    correlation is Σ_k a_k² exp(−λ_k t), with a_k the coefficients of z in the eigenfunctions.
    """

    kind: ClassVar[str] = "langevin-generalised-normal"

    dim: int = 2
    """Number of latent dimensions."""
    rho: Rho = 0.95
    """exp(−t) for the time t between a state and its successor, in (0, 1): one value, or one per dimension."""
    alpha: float = 4.0
    """Exponent of the density, from 1 (Laplace) over 2 (Gaussian) to 32 (nearly uniform)."""

    def __post_init__(self) -> None:
        check_argument("rho", self.rho, all(rho > 0 for rho in correlations(self.rho, self.dim)), "in (0, 1)")
        check_argument("alpha", self.alpha, 1 <= self.alpha <= 32, "from 1 to 32")

    @property
    def gaussian(self) -> bool:
        return self.alpha == 2

    @property
    def correlation(self) -> tuple[float, ...] | None:
        return self.correlation_after(1)

    def correlation_after(self, steps: int) -> tuple[float, ...] | None:
        """Known in closed form for the Gaussian only."""
        if not self.gaussian:
            return None
        return tuple(rho**steps for rho in correlations(self.rho, self.dim))

    def states(self, count: int, generator: Generator) -> Tensor:
        return AdditiveGeneralisedNormal(self.dim, self.rho, self.alpha).states(count, generator)

    def transition(self, z: Tensor, generator: Generator) -> Tensor:
        if self.gaussian:
            noise = torch.randn(z.shape, generator=generator, dtype=z.dtype, device=z.device)
            return autoregress(z, noise, self.rho)
        wide = z.to(torch.promote_types(z.dtype, torch.float32))
        time = -torch.tensor(correlations(self.rho, self.dim), dtype=torch.float64).log().to(wide)
        steps = math.ceil(float(time.max()) / LONGEST_STEP)
        for _ in range(steps):
            wide = self._step(wide, time / steps, generator)
        return wide.to(z.dtype)

    def _step(self, z: Tensor, time: Tensor, generator: Generator) -> Tensor:
        """A Langevin step of each coordinate, or z where it is rejected."""
        spread = (2 * time).sqrt()
        noise = torch.randn(z.shape, generator=generator, dtype=z.dtype, device=z.device)
        proposed = z + self._drift(z, time, spread) + spread * noise
        noise_back = (z - proposed - self._drift(proposed, time, spread)) / spread
        log_ratio = self._log_density(proposed) - self._log_density(z) + (noise.square() - noise_back.square()) / 2
        chance = torch.rand(z.shape, generator=generator, dtype=z.dtype, device=z.device)
        return torch.where(chance.log() < log_ratio, proposed, z)

    def _log_density(self, z: Tensor) -> Tensor:
        return -(z.abs() / scale(self.alpha)).pow(self.alpha)

    def _drift(self, z: Tensor, time: Tensor, most: Tensor) -> Tensor:
        """∇ log p dt, no larger than the noise: near the edge of a nearly uniform density it would overshoot."""
        s = scale(self.alpha)
        gradient = -z.sign() * self.alpha / s * (z.abs() / s).pow(self.alpha - 1)
        return (time * gradient).clamp(-most, most)
