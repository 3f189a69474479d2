"""Eigenfunctions of the generator of a 1-D stationary law with density p, and so the warp that a JEPA learns there.

    L f = (1/p)(p f')',      −L f_k = λ_k f_k,      E f_k f_l = 1[k = l],      0 = λ_0 < λ_1 < …

f_k has k zeros, so f_1 is always monotone: the warp that Theorem 2 of "When Does LeJEPA Learn a World Model?" predicts
for each coordinate. It is affine only for the Gaussian, where f_k = He_k/√k! and λ_k = k. The law is that of Langevin
motion, whose noise is the same everywhere; a Gaussian copula z = F⁻¹(Φ(u)) has the first eigenfunction Φ⁻¹∘F instead.

Heavy tails may leave no discrete λ_1: the slowest functions then live ever further out, and there is nothing to draw.
For p ∝ exp(−|x/s|^α) that is so for α ≤ 1. The result then has no eigenfunctions, and a `reason`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are loaded when they are asked for

from jepatlas.core.errors import InputError
from jepatlas.identifiability.warps.law import Eigenpairs, Law, LogDensity

__all__ = ["SturmLiouville", "sturm_liouville", "sturm_liouville_generalised_normal"]

SHOWN = 36.0
"""Where p is smaller than e^{−SHOWN} of its maximum there is never a sample, and rounding blurs f: it is not kept."""

STEADY = 1e-2
"""How far the eigenvalues of the coarse and the finer grid may be apart, relative to them."""
DISTINCT = 1e-7
"""Eigenvalues nearer to each other than this, relative to them, are one; those of two deep wells come near that."""
ROUNDING = 1e-7
"""λ_1, in units of the law's own width, below which it is rounding: the largest entries of K are near 1e9 of those."""
BLUR = 1e-6
"""√p f below this share of its maximum says nothing of its sign."""

HEAVY = (
    "This law has no first eigenfunction that could be found, so no warp is predicted: however far out the tails are "
    "followed, the slowest function lives at their ends. They are too heavy, or nearly so, for a discrete spectrum."
)
FEW = (
    "Only {found} of {count} eigenfunctions were found: the others live at the ends of the tails, however far these "
    "are followed. From there on the spectrum is continuous."
)


STILL = (
    "This law has no first eigenfunction that could be told from rounding, so no warp is predicted: its eigenvalue is "
    "0 to all digits. Either the tails are too heavy for a discrete spectrum, or wells are so deep that they are not "
    "left."
)
COARSE = (
    "Only {found} of {count} eigenfunctions were found: from there on two grids give different ones. Give more points, "
    "or, where the density ends or jumps, the interval that it lives on as 'support'."
)


@dataclass(frozen=True)
class SturmLiouville:
    """Eigenvalues λ_1, λ_2, … and eigenfunctions on a grid, without the constant one; none where there is a `reason`.

    The reason is a sentence to be shown. It is also given where fewer eigenfunctions exist than were asked for.
    """

    x: np.ndarray  # (m,)
    density: np.ndarray  # (m,): p, normalised
    eigenvalues: np.ndarray  # (k,)
    eigenfunctions: np.ndarray  # (k, m): unit variance, positive at the right end
    affinity: float  # Corr(f_1, x)²: one for the Gaussian only; NaN where there is no f_1
    reason: str | None

    def warp(self, x: np.ndarray) -> np.ndarray:
        """f_1, monotone between the points of the grid too, and straight beyond them."""
        if not len(self.eigenvalues):
            raise InputError(self.reason or "There is no eigenfunction.")
        curve = scipy.interpolate.PchipInterpolator(self.x, self.eigenfunctions[0])
        inside = np.clip(x, self.x[0], self.x[-1])
        return curve(inside) + curve.derivative()(inside) * (x - inside)


def sturm_liouville(
    log_density: LogDensity,
    count: int = 4,
    *,
    support: tuple[float, float] = (-math.inf, math.inf),
    points: int = 2001,
) -> SturmLiouville:
    """The first `count` eigenfunctions of a law on an interval, from log p up to a constant.

    Finite volumes on `points` cells and on three times as many, extrapolated: errors are near 1e-9 for smooth p.

    >>> gaussian = sturm_liouville(lambda x: -(x**2) / 2)
    >>> gaussian.eigenvalues.round(6).tolist(), round(gaussian.affinity, 6)
    ([1.0, 2.0, 3.0, 4.0], 1.0)
    """
    if count < 1 or points < 101:
        raise InputError(f"At least 1 eigenfunction and 101 points are needed, but {count} and {points} were given.")
    law = Law(log_density, support)
    coarse, found, depth = law.followed_outward(count, points)
    x, mass = coarse.x, coarse.mass
    finer = law.eigenpairs(depth, count, 3 * len(x))
    confined, found = found, _sound(coarse, finer, found)
    # Errors are even powers of the cell's width, and every third cell of the finer grid has a centre of the coarse one.
    values = (9 * finer.values - coarse.values)[:found] / 8
    functions = (9 * finer.functions[:, 1::3] - coarse.functions)[:found] / 8
    functions /= np.sqrt(np.square(functions) @ mass)[:, None]
    apart = x - x @ mass
    affinity = float((functions[0] * apart @ mass) ** 2 / (np.square(apart) @ mass)) if found else math.nan
    reason = _reason(found, confined, count, finer.values[0] * law.scale**2)
    density = mass / coarse.width
    shown = density >= density.max() * np.exp(-SHOWN)
    return SturmLiouville(x[shown], density[shown], values, functions[:, shown], affinity, reason)


def _sound(coarse: Eigenpairs, finer: Eigenpairs, found: int) -> int:
    """How many of the first `found` are as theory says: λ_k positive, rising, alike on both grids; f_k with k zeros.

    Where the spectrum is continuous from 0 on, what comes out near 0 is rounding, and only looks confined.
    """
    values, others = finer.values[:found], coarse.values[:found]
    steady = np.abs(values - others) <= STEADY * values
    rising = np.diff(values, prepend=0.0) > DISTINCT * values
    zeros = np.array([_zeros(f, coarse.mass) for f in coarse.functions[:found]], dtype=int)
    good = steady & rising & (zeros == np.arange(1, found + 1))
    return found if good.all() else int(np.argmin(good))


def _reason(found: int, confined: int, count: int, first: float) -> str | None:
    """Why there are fewer than asked for; `first` is λ_1 in units of the law's own width."""
    if found == count:
        return None
    if found < confined and first > ROUNDING:
        return COARSE.format(found=found, count=count)
    if found < confined and not found:
        return STILL
    return FEW.format(found=found, count=count) if found else HEAVY


def _zeros(function: np.ndarray, mass: np.ndarray) -> int:
    """Changes of sign, where there is any mass to speak of: further out rounding has the say."""
    size = function * np.sqrt(mass)
    signs = np.sign(size[np.abs(size) > BLUR * np.abs(size).max()])
    return int((np.diff(signs) != 0).sum())


def sturm_liouville_generalised_normal(alpha: float, count: int = 4, *, points: int = 2001) -> SturmLiouville:
    """The same for p ∝ exp(−|x/s|^α) with unit variance, s² = Γ(1/α)/Γ(3/α); nothing to find for α ≤ 1."""
    if not 0 < alpha < math.inf:
        raise InputError(f"The exponent α of a generalised normal must be positive and finite, but {alpha} was given.")
    log_scale = (math.lgamma(1 / alpha) - math.lgamma(3 / alpha)) / 2
    scale = math.exp(log_scale)
    if alpha > 1:
        return sturm_liouville(lambda x: -(np.abs(x / scale) ** alpha), count, points=points)
    depth = np.linspace(-SHOWN, SHOWN, points)
    with np.errstate(divide="ignore", over="ignore"):  # tiny α: narrower in the middle, and wider, than any number
        x = np.copysign(np.exp(log_scale + np.log(np.abs(depth)) / alpha), depth)
        density = np.exp(math.log(alpha / 2) - log_scale - math.lgamma(1 / alpha) - np.abs(depth))
    start = f"1/(4s²) = {1 / (4 * scale**2):.3g}" if alpha == 1 else "0"
    reason = (
        f"A generalised normal with α = {alpha:g} has no first eigenfunction, so no warp is predicted: for α ≤ 1 the "
        f"tails are so heavy that the spectrum is continuous, from {start} upward."
    )
    return SturmLiouville(x, density, np.empty(0), np.empty((0, points)), math.nan, reason)
