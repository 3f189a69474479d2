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
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.special
from scipy.interpolate import PchipInterpolator

from jepatlas.base.errors import InputError

__all__ = ["SturmLiouville", "sturm_liouville", "sturm_liouville_generalised_normal"]

LogDensity = Callable[[np.ndarray], np.ndarray]

DEPTHS = (50.0, 100.0, 200.0, 400.0)
"""How far below its maximum log p is followed outward, until the eigenfunctions fit in."""
SHOWN = 36.0
"""Where p is smaller than e^{−SHOWN} of its maximum there is never a sample, and rounding blurs f: it is not kept."""
CONFINED = 1e-6
"""√p f at an open end, relative to its maximum, below which an eigenfunction counts as found."""

HEAVY = (
    "This law has no first eigenfunction that could be found, so no warp is predicted: however far out the tails are "
    "followed, the slowest function lives at their ends. They are too heavy, or nearly so, for a discrete spectrum."
)
FEW = (
    "Only {found} of {count} eigenfunctions were found: the others live at the ends of the tails, however far these "
    "are followed. From there on the spectrum is continuous."
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
        curve = PchipInterpolator(self.x, self.eigenfunctions[0])
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
    law = _Law(log_density, support)
    coarse, found, depth = law.followed_outward(count, points)
    x, mass = coarse.x, coarse.mass
    finer = law.eigenpairs(depth, count, 3 * len(x))
    # Errors are even powers of the cell's width, and every third cell of the finer grid has a centre of the coarse one.
    values = (9 * finer.values - coarse.values)[:found] / 8
    functions = (9 * finer.functions[:, 1::3] - coarse.functions)[:found] / 8
    functions /= np.sqrt(np.square(functions) @ mass)[:, None]
    apart = x - x @ mass
    affinity = float((functions[0] * apart @ mass) ** 2 / (np.square(apart) @ mass)) if found else math.nan
    reason = None if found == count else FEW.format(found=found, count=count) if found else HEAVY
    density = mass / coarse.width
    shown = density >= density.max() * np.exp(-SHOWN)
    return SturmLiouville(x[shown], density[shown], values, functions[:, shown], affinity, reason)


def sturm_liouville_generalised_normal(alpha: float, count: int = 4, *, points: int = 2001) -> SturmLiouville:
    """The same for p ∝ exp(−|x/s|^α) with unit variance, s² = Γ(1/α)/Γ(3/α); nothing to find for α ≤ 1."""
    if not 0 < alpha < math.inf:
        raise InputError(f"The exponent α of a generalised normal must be positive and finite, but {alpha} was given.")
    scale = math.exp((math.lgamma(1 / alpha) - math.lgamma(3 / alpha)) / 2)
    if alpha > 1:
        return sturm_liouville(lambda x: -(np.abs(x / scale) ** alpha), count, points=points)
    depth = np.linspace(-SHOWN, SHOWN, points)
    x = scale * np.copysign(np.abs(depth) ** (1 / alpha), depth)
    density = np.exp(-np.abs(depth)) * alpha / (2 * scale * math.gamma(1 / alpha))
    start = f"1/(4s²) = {1 / (4 * scale**2):.3g}" if alpha == 1 else "0"
    reason = (
        f"A generalised normal with α = {alpha:g} has no first eigenfunction, so no warp is predicted: for α ≤ 1 the "
        f"tails are so heavy that the spectrum is continuous, from {start} upward."
    )
    return SturmLiouville(x, density, np.empty(0), np.empty((0, points)), math.nan, reason)


class _Eigenpairs(NamedTuple):
    x: np.ndarray  # (m,): centres of the cells
    width: np.ndarray  # (m,)
    mass: np.ndarray  # (m,): p dx, of sum 1
    values: np.ndarray  # (k,)
    functions: np.ndarray  # (k, m)


class _Law:
    """A density on an interval, found by its maximum, and its eigenproblem on grids of any reach."""

    def __init__(self, log_density: LogDensity, support: tuple[float, float]) -> None:
        self.low, self.high = support
        if not self.low < self.high:
            raise InputError(f"The support must be an interval, low < high, but {support} was given.")
        self._log_density, self._peak = log_density, 0.0
        inner = np.linspace(0, 1, 20_003)[1:-1]
        if math.isfinite(self.high - self.low):
            x = self.low + (self.high - self.low) * inner
        else:
            x = np.sinh(24 * inner - 12)  # up to 8e4 on both sides
            x = x[(x > self.low) & (x < self.high)]
        values = self.log(x)
        best = int(np.argmax(values)) if len(x) else 0
        astray = (best == 0 and self.low == -math.inf) or (best == len(x) - 1 and self.high == math.inf)
        if not len(x) or astray or not np.isfinite(values[best]):
            raise InputError("No maximum of the density was found near zero: shift and scale it to variance 1.")
        self.mode, self._peak = float(x[best]), float(values[best])
        left, right = self._reach(-1, 0.5), self._reach(1, 0.5)
        self.centre, self.scale = (left + right) / 2, (right - left) / 2

    def log(self, x: np.ndarray) -> np.ndarray:
        """log p, zero at its maximum."""
        with np.errstate(over="ignore", divide="ignore"):  # far out, −inf is what it should be
            values = np.asarray(self._log_density(x), dtype=np.float64) - self._peak
        if values.shape != x.shape or np.isnan(values).any() or (values == np.inf).any():
            raise InputError("The log-density must give one number below infinity for each x.")
        return values

    def followed_outward(self, count: int, points: int) -> tuple[_Eigenpairs, int, float]:
        """Eigenpairs on as wide a range as they need, how many of them are confined to it, and its depth."""
        depth, cells = DEPTHS[0], points | 1  # an odd number of cells has one in the middle, for a kink there
        while True:
            pairs = self.eigenpairs(depth, count, cells)
            found = self.confined(pairs)
            if found == count or depth == DEPTHS[-1]:
                return pairs, found, depth
            depth = DEPTHS[DEPTHS.index(depth) + 1]
            cells = round(points * depth / DEPTHS[0]) | 1  # as fine as before: coarse cells would confine a wave

    def eigenpairs(self, depth: float, count: int, points: int) -> _Eigenpairs:
        """K f = λ M f, with M the mass p dx of each cell and K made of p/dx at the faces; no flux through the ends.

        Cells are even in t with x = centre + scale·sinh t, so that they widen with the tails.
        """
        ends = np.array([self._reach(-1, depth), self._reach(1, depth)])
        first, last = np.arcsinh((ends - self.centre) / self.scale)
        step = (last - first) / points
        t = first + step * (np.arange(points) + 0.5)
        faces = t[:-1] + step / 2
        x, width = self.centre + self.scale * np.sinh(t), self.scale * np.cosh(t) * step
        mass = self.log(x) + np.log(width)
        flow = self.log(self.centre + self.scale * np.sinh(faces)) - np.log(self.scale * np.cosh(faces) * step)
        # Symmetric form M^{-1/2} K M^{-1/2}, from logarithms: p itself spans hundreds of decades.
        diagonal = np.r_[np.exp(flow - mass[:-1]), 0] + np.r_[0, np.exp(flow - mass[1:])]
        aside = -np.exp(flow - (mass[:-1] + mass[1:]) / 2)
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, aside, select="i", select_range=(1, count))
        mass = np.exp(mass - scipy.special.logsumexp(mass))
        signs = np.sign(np.sum(vectors[-points // 10 :], axis=0))
        return _Eigenpairs(x, width, mass, values, (signs * vectors / np.sqrt(mass)[:, None]).T)

    def confined(self, pairs: _Eigenpairs) -> int:
        """How many of the first eigenfunctions die out towards the open ends. Where there is a wall they need not."""
        size = np.abs(pairs.functions * np.sqrt(pairs.mass))
        left = size[:, 0] if self.low == -math.inf else 0.0
        right = size[:, -1] if self.high == math.inf else 0.0
        inside = np.maximum(left, right) <= CONFINED * size.max(1)
        return len(inside) if inside.all() else int(np.argmin(inside))

    def _reach(self, side: int, depth: float) -> float:
        """Where log p falls to −depth on one side of its maximum, or the wall before that."""
        wall = self.high if side > 0 else self.low
        room = abs(wall - self.mode) * (1 - 1e-9)  # not the wall itself, where p may be zero
        near, far = 0.0, min(1e-3, room)
        while self._beside(side * far) > -depth:
            if far >= room:
                return wall
            if far > 1e150:
                raise InputError("The density does not fall off: give the interval that it lives on as 'support'.")
            near, far = far, min(2 * far, room)
        for _ in range(60):
            middle = (near + far) / 2
            near, far = (middle, far) if self._beside(side * middle) > -depth else (near, middle)
        return self.mode + side * near

    def _beside(self, distance: float) -> float:
        return float(self.log(np.array([self.mode + distance]))[0])
