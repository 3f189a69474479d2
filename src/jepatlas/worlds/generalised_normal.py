"""Two laws with the generalised normal density p(x) ∝ exp(−|x/s|^α), s² = Γ(1/α)/Γ(3/α), of unit variance.

α = 1 is Laplace, α = 2 Gaussian, α → ∞ uniform. The laws differ in their transitions: additive noise, as published,
does not keep the density; a Gaussian copula keeps it exactly.

The warp Φ⁻¹∘F between the density and a Gaussian is accurate at the centre and in both tails: with a = 1/α and
t = |z/s|^α,  P(|Z| > |z|) = Q(a, t)  and  P(|U| > |u|) = erfc(|u|/√2), where Q is the regularised upper incomplete
gamma function. So |u| and |z| follow from Q(a, t) = erfc(|u|/√2), and they share a sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jepatlas.core.errors import check_argument
from jepatlas.core.lazy import lazy_import
from jepatlas.worlds.ornstein_uhlenbeck import OrnsteinUhlenbeck, Rho, autoregress, correlations

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = [
    "AdditiveGeneralisedNormal",
    "CopulaGeneralisedNormal",
    "from_gaussian",
    "hermite_variances",
    "scale",
    "to_gaussian",
]

# Below this t the series P(a, t) = t^a / Γ(1+a) · (1 − a t/(1+a) + …) equals its first term in double precision.
# For large α the series is also necessary, because t = |z/s|^α itself underflows near the centre.
TINY = 1e-17

# Above this P, too few digits of 1 − P are left, and Q is used instead. Q is five times slower, so not earlier.
FAR = 0.9


@dataclass(frozen=True)
class AdditiveGeneralisedNormal:
    """z' = ρ z + √(1−ρ²) η with z, η ~ GN(α): the sampler of "When Does LeJEPA Learn a World Model?".

    Mean, variance and correlation are stationary, the density is not for α ≠ 2. The law is therefore outside the
    theorems on stationary additive noise; `LangevinGeneralisedNormal` is within it.
    """

    kind: ClassVar[str] = "additive-generalised-normal"

    dim: int = 2
    """Number of latent dimensions."""
    rho: Rho = 0.95
    """Correlation between a state and its successor, in [0, 1): one value, or one per dimension."""
    alpha: float = 1.0
    """Exponent of the density, from 1/8 (heavy tails) over 2 (Gaussian) to 32 (nearly uniform)."""

    def __post_init__(self) -> None:
        correlations(self.rho, self.dim)
        _check_alpha(self.alpha)

    @property
    def gaussian(self) -> bool:
        return self.alpha == 2

    @property
    def correlation(self) -> tuple[float, ...]:
        return correlations(self.rho, self.dim)

    def correlation_after(self, steps: int) -> tuple[float, ...]:
        return tuple(rho**steps for rho in self.correlation)

    def states(self, count: int, generator: Generator) -> Tensor:
        empty = torch.empty(count, self.dim, device=generator.device)
        return _sample(empty, self.alpha, generator)

    def transition(self, z: Tensor, generator: Generator) -> Tensor:
        return autoregress(z, _sample(z, self.alpha, generator), self.rho)


@dataclass(frozen=True)
class CopulaGeneralisedNormal:
    """z = F⁻¹(Φ(u)) with u Ornstein–Uhlenbeck: exactly stationary and reversible with marginals GN(α).

    The warp Φ⁻¹∘F to a Gaussian has a closed form, so recovery up to a warp can be scored. The noise is not additive
    in z. `rho` is the correlation of u; that of z is Σ_d v_d ρ^d, with v_d the variance of F⁻¹∘Φ at Hermite degree d.
    """

    kind: ClassVar[str] = "copula-generalised-normal"

    dim: int = 2
    """Number of latent dimensions."""
    rho: Rho = 0.95
    """Correlation of the underlying Gaussian states, in [0, 1): one value, or one per dimension."""
    alpha: float = 1.0
    """Exponent of the density, from 1/8 (heavy tails) over 2 (Gaussian) to 32 (nearly uniform)."""

    def __post_init__(self) -> None:
        correlations(self.rho, self.dim)
        _check_alpha(self.alpha)

    @property
    def gaussian(self) -> bool:
        return self.alpha == 2

    @property
    def correlation(self) -> tuple[float, ...]:
        return self.correlation_after(1)

    def correlation_after(self, steps: int) -> tuple[float, ...]:
        variances = ((1, 1.0),) if self.gaussian else hermite_variances(self.alpha)
        result = []
        for rho in correlations(self.rho, self.dim):
            result.append(sum(v * rho ** (steps * degree) for degree, v in variances))
        return tuple(result)

    def states(self, count: int, generator: Generator) -> Tensor:
        return self.from_gaussian(self._latent_law.states(count, generator))

    def transition(self, z: Tensor, generator: Generator) -> Tensor:
        return self.from_gaussian(self._latent_law.transition(self.to_gaussian(z), generator))

    def to_gaussian(self, z: Tensor) -> Tensor:
        """u = Φ⁻¹(F(z)), finite up to 37 standard deviations."""
        return torch.from_numpy(to_gaussian(_array(z), self.alpha)).to(z)

    def from_gaussian(self, u: Tensor) -> Tensor:
        """z = F⁻¹(Φ(u)), finite up to 37 standard deviations."""
        return torch.from_numpy(from_gaussian(_array(u), self.alpha)).to(u)

    @cached_property
    def _latent_law(self) -> OrnsteinUhlenbeck:
        return OrnsteinUhlenbeck(self.dim, self.rho)


def _check_alpha(alpha: float) -> None:
    check_argument("alpha", alpha, 1 / 8 <= alpha <= 32, "from 1/8 to 32")


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()


def _sample(like: Tensor, alpha: float, generator: Generator) -> Tensor:
    """s U G^{1/α} with U uniform on (−1, 1), G ~ Gamma(1 + 1/α).

    The textbook form ± s Gamma(1/α)^{1/α} underflows: for α = 32 in one of fifteen float32 draws.
    """
    # Half precision would overflow in the power for small α.
    wide = torch.promote_types(like.dtype, torch.float32)
    shape = torch.full_like(like, 1 + 1 / alpha, dtype=wide)
    gamma = torch._standard_gamma(shape, generator=generator)  # pyright: ignore[reportPrivateImportUsage]
    uniform = torch.rand(like.shape, generator=generator, dtype=wide, device=like.device)
    return (scale(alpha) * (2 * uniform - 1) * gamma.pow(1 / alpha)).to(like.dtype)


def scale(alpha: float) -> float:
    """The scale s of unit variance, √(Γ(1/α)/Γ(3/α)).

    >>> round(scale(2.0) ** 2, 12)
    2.0
    """
    return math.exp((math.lgamma(1 / alpha) - math.lgamma(3 / alpha)) / 2)


def to_gaussian(z: np.ndarray, alpha: float) -> np.ndarray:
    """u = Φ⁻¹(F(z))."""
    from scipy import special  # noqa: PLC0415  (slow to import)

    a = 1 / alpha
    radius = np.abs(z) / scale(alpha)
    t = radius**alpha
    inside = np.where(t < TINY, radius / special.gamma(1 + a), special.gammainc(a, t))
    size = special.erfinv(inside)
    far = inside > FAR
    size[far] = special.erfcinv(special.gammaincc(a, t[far]))
    return np.copysign(math.sqrt(2) * size, z)


def from_gaussian(u: np.ndarray, alpha: float) -> np.ndarray:
    """z = F⁻¹(Φ(u))."""
    from scipy import special  # noqa: PLC0415  (slow to import)

    a = 1 / alpha
    size = np.abs(u) / math.sqrt(2)
    inside = special.erf(size)
    t = special.gammaincinv(a, inside)
    far = inside > FAR
    t[far] = special.gammainccinv(a, special.erfc(size[far]))
    radius = np.where(t < TINY, inside * special.gamma(1 + a), t**a)
    return np.copysign(scale(alpha) * radius, u)


@cache
def hermite_variances(alpha: float, degrees: int = 200, nodes: int = 600) -> tuple[tuple[int, float], ...]:
    """(d, v_d): the variance of z = F⁻¹(Φ(u)) in each normalised Hermite polynomial of u; they sum to 1.

    By Mehler's formula, E[z z'] = Σ_d v_d ρ^d if u and u' have correlation ρ. The last entry is the variance above the
    largest degree. Only odd degrees occur, because the warp is odd.

    >>> [(d, round(v, 9)) for d, v in hermite_variances(2.0)[:2]]
    [(1, 1.0), (3, 0.0)]
    """
    u, weight = _half_normal_quadrature(nodes)
    weighted = weight * from_gaussian(u, alpha)
    previous, current = np.ones_like(u), u
    variances = []
    for d in range(1, degrees):
        if d % 2:
            variances.append((d, float(weighted @ current) ** 2))
        previous, current = current, (u * current - math.sqrt(d) * previous) / math.sqrt(d + 1)
    rest = max(0.0, 1 - sum(v for _, v in variances))
    return (*variances, (degrees + 1, rest))


def _half_normal_quadrature(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes u > 0 and weights of E f(U) for even f.

    Gauss–Legendre in u^{1/4}: for α < 1 the warp has a singularity of order 1 + α at zero, where Gauss–Hermite is
    inaccurate.
    """
    from scipy import special  # noqa: PLC0415  (slow to import)

    x, weight = special.roots_legendre(nodes)
    end = 14 ** (1 / 4)  # beyond 14 standard deviations even u^16 is negligible
    v = end * (x + 1) / 2
    density = math.sqrt(2 / math.pi) * np.exp(-(v**8) / 2)
    return v**4, weight * end / 2 * 4 * v**3 * density
