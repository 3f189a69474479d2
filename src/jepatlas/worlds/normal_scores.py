"""The warp between a generalised normal and a Gaussian, accurate at the centre and in both tails.

With a = 1/α and t = |z/s|^α,  P(|Z| > |z|) = Q(a, t)  and  P(|U| > |u|) = erfc(|u|/√2),  where Q is the regularised
upper incomplete gamma function. So |u| and |z| follow from one equation, Q(a, t) = erfc(|u|/√2), and share a sign.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy import special

__all__ = ["from_gaussian", "hermite_variances", "scale", "to_gaussian"]

# Below this t the series P(a, t) = t^a / Γ(1+a) · (1 − a t/(1+a) + …) is its first term to double precision.
# For large α it is also the only way: t = |z/s|^α itself underflows near the centre.
TINY = 1e-17

# Above this P = 1 − Q has too few digits left, and Q takes over. Not earlier: Q costs five times as much.
FAR = 0.9


def scale(alpha: float) -> float:
    """s with unit variance, √(Γ(1/α)/Γ(3/α)).

    >>> round(scale(2.0) ** 2, 12)
    2.0
    """
    return math.exp((math.lgamma(1 / alpha) - math.lgamma(3 / alpha)) / 2)


def to_gaussian(z: np.ndarray, alpha: float) -> np.ndarray:
    """u = Φ⁻¹(F(z))."""
    a, radius = 1 / alpha, np.abs(z) / scale(alpha)
    t = radius**alpha
    inside = np.where(t < TINY, radius / special.gamma(1 + a), special.gammainc(a, t))
    size = special.erfinv(inside)
    far = inside > FAR
    size[far] = special.erfcinv(special.gammaincc(a, t[far]))
    return np.copysign(math.sqrt(2) * size, z)


def from_gaussian(u: np.ndarray, alpha: float) -> np.ndarray:
    """z = F⁻¹(Φ(u))."""
    a, size = 1 / alpha, np.abs(u) / math.sqrt(2)
    inside = special.erf(size)
    t = special.gammaincinv(a, inside)
    far = inside > FAR
    t[far] = special.gammainccinv(a, special.erfc(size[far]))
    radius = np.where(t < TINY, inside * special.gamma(1 + a), t**a)
    return np.copysign(scale(alpha) * radius, u)


@cache
def hermite_variances(alpha: float, degrees: int = 200, nodes: int = 600) -> tuple[tuple[int, float], ...]:
    """(d, v_d): how the unit variance of z = F⁻¹(Φ(u)) is spread over the normalised Hermite polynomials of u.

    By Mehler's formula E[z z'] = Σ_d v_d ρ^d if u and u' have correlation ρ. What lies above the last degree is
    counted there. Only odd degrees occur, as the warp is odd.

    >>> [(d, round(v, 9)) for d, v in hermite_variances(2.0)[:2]]
    [(1, 1.0), (3, 0.0)]
    """
    u, weight = _half_normal_quadrature(nodes)
    weighted = weight * from_gaussian(u, alpha)
    before, now = np.ones_like(u), u
    variances = []
    for d in range(1, degrees):
        if d % 2:
            variances.append((d, float(weighted @ now) ** 2))
        before, now = now, (u * now - math.sqrt(d) * before) / math.sqrt(d + 1)
    rest = max(0.0, 1 - sum(v for _, v in variances))
    return (*variances, (degrees + 1, rest))


def _half_normal_quadrature(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes u > 0 and weights of E f(U) for even f.

    Gauss–Legendre in u^{1/4}: for α < 1 the warp has a singularity of order 1 + α at zero, which spoils Gauss–Hermite.
    """
    x, weight = special.roots_legendre(nodes)
    end = 14 ** (1 / 4)  # beyond 14 standard deviations even u^16 is nothing
    v = end * (x + 1) / 2
    density = math.sqrt(2 / math.pi) * np.exp(-(v**8) / 2)
    return v**4, weight * end / 2 * 4 * v**3 * density
