"""Eigenfunctions of the Langevin generator of a 1-D stationary density p: the warp that a JEPA learns there.

    L f = (1/p)(p f')',      −L f_k = λ_k f_k,      E f_k f_l = 1[k = l],      0 = λ_0 < λ_1 < …

f_k has k zeros, so f_1 is monotone: the warp that Theorem 2 of "When Does LeJEPA Learn a World Model?" predicts for
each coordinate. It is affine only for the Gaussian, where f_k = He_k/√k! and λ_k = k. The process is Langevin motion
with the same noise everywhere; a Gaussian copula z = F⁻¹(Φ(u)) has the first eigenfunction Φ⁻¹∘F instead.

With heavy tails there may be no discrete λ_1. For p ∝ exp(−|x/s|^α) that is so for α ≤ 1. The result then has no
eigenfunctions, and a `reason`.

The discrete problem is K f = λ M f in finite volumes: M is the mass p dx of each cell, K is made of p/dx at the faces,
with no flux through the ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy  # submodules are imported on first use

from jepatlas.core.errors import InputError, check_count, check_positive

__all__ = ["SturmLiouville", "sturm_liouville", "sturm_liouville_generalised_normal"]

LogDensity = Callable[[np.ndarray], np.ndarray]

DEPTHS = (50.0, 100.0, 200.0, 400.0)
"""How far below its maximum log p is followed outwards, until the eigenfunctions fit on the grid."""
CONFINED = 1e-6
"""√p f at an open end, relative to its maximum, below which an eigenfunction counts as confined to the grid."""
MAX_DEPTH = 36.0
"""Grid points where p is below e^{−MAX_DEPTH} of its maximum are dropped: rounding dominates f there."""
GRID_TOLERANCE = 1e-2
"""Largest relative difference of an eigenvalue between the coarse and the fine grid."""
DISTINCT = 1e-7
"""Relative difference below which two eigenvalues count as equal (as in a density with two deep wells)."""
ROUNDING = 1e-7
"""λ_1 in units of the density's width below which it is rounding error: entries of K reach 1e9 in these units."""
SIGN_FLOOR = 1e-6
"""Relative size of √p f below which its sign is not trusted."""

NO_EIGENFUNCTION = (
    "No first eigenfunction was found, so no warp is predicted: the slowest function is concentrated at the ends of "
    "the grid, however wide. The tails are too heavy for a discrete spectrum, or nearly so."
)
TOO_FEW = (
    "Only {found} of {count} eigenfunctions were found: the others are concentrated at the ends of the grid, however "
    "wide. The spectrum is continuous from there on."
)
ZERO_EIGENVALUE = (
    "No first eigenfunction was found, so no warp is predicted: its eigenvalue is 0 up to rounding. Either the tails "
    "are too heavy for a discrete spectrum, or the density has wells so deep that transitions never happen."
)
COARSE = (
    "Only {found} of {count} eigenfunctions were found: from there on, two grids give different results. Increase "
    "'points', or, if the density ends or jumps, pass the interval as 'support'."
)


@dataclass(frozen=True)
class SturmLiouville:
    """Eigenvalues λ_1, λ_2, … and eigenfunctions on a grid, without the constant one.

    `reason` is a sentence that explains why fewer eigenfunctions were found than requested, or None.
    """

    x: np.ndarray  # (m,)
    density: np.ndarray  # (m,): p, normalised
    eigenvalues: np.ndarray  # (k,)
    eigenfunctions: np.ndarray  # (k, m): unit variance, positive at the right end
    affinity: float  # Corr(f_1, x)²: 1 for the Gaussian only; NaN without f_1
    reason: str | None

    def warp(self, x: np.ndarray) -> np.ndarray:
        """f_1 at x: monotone interpolation on the grid, linear extrapolation beyond it."""
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
    """The first `count` eigenfunctions of a density on an interval, given log p up to a constant.

    Solved on grids of `points` and three times as many cells, and extrapolated: errors are about 1e-9 for smooth p.

    >>> gaussian = sturm_liouville(lambda x: -(x**2) / 2)
    >>> gaussian.eigenvalues.round(6).tolist(), round(gaussian.affinity, 6)
    ([1.0, 2.0, 3.0, 4.0], 1.0)
    """
    check_count("count", count)
    if points < 101:
        raise InputError(f"points must be at least 101, but is {points}.")
    problem = _Density(log_density, support)
    coarse, confined, depth = problem.widened(count, points)
    x = coarse.x
    mass = coarse.mass
    fine = problem.eigenpairs(depth, count, 3 * len(x))
    found = _consistent(coarse, fine, confined)
    # The error is a series in even powers of the cell width. Every third fine cell shares its centre with a coarse one.
    values = (9 * fine.values - coarse.values)[:found] / 8
    functions = (9 * fine.functions[:, 1::3] - coarse.functions)[:found] / 8
    functions /= np.sqrt(np.square(functions) @ mass)[:, None]
    centred = x - x @ mass
    affinity = math.nan
    if found:
        affinity = float((functions[0] * centred @ mass) ** 2 / (np.square(centred) @ mass))
    reason = _reason(found, confined, count, fine.values[0] * problem.scale**2)
    density = mass / coarse.width
    kept = density >= density.max() * np.exp(-MAX_DEPTH)
    return SturmLiouville(x[kept], density[kept], values, functions[:, kept], affinity, reason)


def sturm_liouville_generalised_normal(alpha: float, count: int = 4, *, points: int = 2001) -> SturmLiouville:
    """The same for p ∝ exp(−|x/s|^α) with unit variance, s² = Γ(1/α)/Γ(3/α). No eigenfunctions exist for α ≤ 1."""
    check_positive("alpha", alpha)
    log_scale = (math.lgamma(1 / alpha) - math.lgamma(3 / alpha)) / 2
    scale = math.exp(log_scale)
    if alpha > 1:
        return sturm_liouville(lambda x: -(np.abs(x / scale) ** alpha), count, points=points)
    depth = np.linspace(-MAX_DEPTH, MAX_DEPTH, points)
    with np.errstate(divide="ignore", over="ignore"):  # tiny α exceeds the range of floats on both sides
        x = np.copysign(np.exp(log_scale + np.log(np.abs(depth)) / alpha), depth)
        density = np.exp(math.log(alpha / 2) - log_scale - math.lgamma(1 / alpha) - np.abs(depth))
    start = f"1/(4s²) = {1 / (4 * scale**2):.3g}" if alpha == 1 else "0"
    reason = (
        f"A generalised normal with α = {alpha:g} has no first eigenfunction, so no warp is predicted: for α ≤ 1 its "
        f"spectrum is continuous from {start} upwards."
    )
    return SturmLiouville(x, density, np.empty(0), np.empty((0, points)), math.nan, reason)


def _consistent(coarse: _Eigenpairs, fine: _Eigenpairs, confined: int) -> int:
    """How many of the leading eigenpairs agree with theory: λ_k positive, increasing, equal on both grids; k zeros.

    Where the spectrum is continuous from 0 on, values near 0 are rounding errors that only look confined.
    """
    values = fine.values[:confined]
    others = coarse.values[:confined]
    agree = np.abs(values - others) <= GRID_TOLERANCE * values
    increasing = np.diff(values, prepend=0.0) > DISTINCT * values
    zeros = np.array([_sign_changes(f, coarse.mass) for f in coarse.functions[:confined]], dtype=int)
    valid = agree & increasing & (zeros == np.arange(1, confined + 1))
    return confined if valid.all() else int(np.argmin(valid))


def _reason(found: int, confined: int, count: int, first: float) -> str | None:
    """Why fewer than `count` were found; `first` is λ_1 in units of the density's width."""
    if found == count:
        return None
    if found < confined and first > ROUNDING:
        return COARSE.format(found=found, count=count)
    if found < confined and not found:
        return ZERO_EIGENVALUE
    if found:
        return TOO_FEW.format(found=found, count=count)
    return NO_EIGENFUNCTION


def _sign_changes(function: np.ndarray, mass: np.ndarray) -> int:
    """Number of sign changes where the mass is large enough for signs to be reliable."""
    size = function * np.sqrt(mass)
    signs = np.sign(size[np.abs(size) > SIGN_FLOOR * np.abs(size).max()])
    return int((np.diff(signs) != 0).sum())


class _Eigenpairs(NamedTuple):
    x: np.ndarray  # (m,): cell centres
    width: np.ndarray  # (m,)
    mass: np.ndarray  # (m,): p dx, normalised
    values: np.ndarray  # (k,)
    functions: np.ndarray  # (k, m)


class _Density:
    """A density on an interval, located by its maximum, and its eigenproblem on grids of any width."""

    def __init__(self, log_density: LogDensity, support: tuple[float, float]) -> None:
        self.low, self.high = support
        if not self.low < self.high:
            raise InputError(f"support must be an interval (low, high) with low < high, but is {support}.")
        self._log_density = log_density
        self._peak = 0.0
        inner = np.linspace(0, 1, 20_003)[1:-1]
        if math.isfinite(self.high - self.low):
            x = self.low + (self.high - self.low) * inner
        else:
            x = np.sinh(24 * inner - 12)  # up to 8e4 on both sides
            x = x[(x > self.low) & (x < self.high)]
        values = self.log(x)
        best = int(np.argmax(values)) if len(x) else 0
        at_open_end = (best == 0 and self.low == -math.inf) or (best == len(x) - 1 and self.high == math.inf)
        if not len(x) or at_open_end or not np.isfinite(values[best]):
            raise InputError("log_density has no maximum near zero. Shift and scale the density to variance 1.")
        self.mode = float(x[best])
        self._peak = float(values[best])
        self.low = self._edge(-1, self.low)
        self.high = self._edge(1, self.high)
        left = self._level(-1, 0.5)
        right = self._level(1, 0.5)
        self.centre = (left + right) / 2
        self.scale = (right - left) / 2

    def log(self, x: np.ndarray) -> np.ndarray:
        """log p, normalised to zero at its maximum."""
        with np.errstate(over="ignore", divide="ignore"):  # −inf is correct far out in the tails
            values = np.asarray(self._log_density(x), dtype=np.float64) - self._peak
        if values.shape != x.shape or np.isnan(values).any() or (values == np.inf).any():
            raise InputError("log_density must return one number below infinity for each x.")
        return values

    def widened(self, count: int, points: int) -> tuple[_Eigenpairs, int, float]:
        """Eigenpairs on the narrowest sufficient grid, how many of them are confined to it, and its depth."""
        cells = points | 1  # an odd number of cells puts one in the middle, where a density may have a kink
        depth = DEPTHS[0]
        while True:
            pairs = self.eigenpairs(depth, count, cells)
            found = self.confined(pairs)
            if found == count or depth == DEPTHS[-1]:
                return pairs, found, depth
            depth = DEPTHS[DEPTHS.index(depth) + 1]
            cells = round(points * depth / DEPTHS[0]) | 1  # the same cell size: coarse cells would confine a wave

    def eigenpairs(self, depth: float, count: int, points: int) -> _Eigenpairs:
        """Solve K f = λ M f on cells that are equidistant in t, where x = centre + scale·sinh t: wider in the tails."""
        ends = np.array([self._level(-1, depth), self._level(1, depth)])
        first, last = np.arcsinh((ends - self.centre) / self.scale)
        step = (last - first) / points
        t = first + step * (np.arange(points) + 0.5)
        faces = t[:-1] + step / 2
        x = self.centre + self.scale * np.sinh(t)
        width = self.scale * np.cosh(t) * step
        log_mass = self.log(x) + np.log(width)
        flow = self.log(self.centre + self.scale * np.sinh(faces)) - np.log(self.scale * np.cosh(faces) * step)
        # The symmetric form M^{-1/2} K M^{-1/2}, computed from logarithms: p spans hundreds of orders of magnitude.
        diagonal = np.r_[np.exp(flow - log_mass[:-1]), 0] + np.r_[0, np.exp(flow - log_mass[1:])]
        off_diagonal = -np.exp(flow - (log_mass[:-1] + log_mass[1:]) / 2)
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal, select="i", select_range=(1, count))
        mass = np.exp(log_mass - scipy.special.logsumexp(log_mass))
        signs = np.sign(np.sum(vectors[-points // 10 :], axis=0))
        return _Eigenpairs(x, width, mass, values, (signs * vectors / np.sqrt(mass)[:, None]).T)

    def confined(self, pairs: _Eigenpairs) -> int:
        """How many leading eigenfunctions decay towards the open ends. At a finite end they need not."""
        size = np.abs(pairs.functions * np.sqrt(pairs.mass))
        left = size[:, 0] if self.low == -math.inf else 0.0
        right = size[:, -1] if self.high == math.inf else 0.0
        inside = np.maximum(left, right) <= CONFINED * size.max(1)
        return len(inside) if inside.all() else int(np.argmin(inside))

    def _edge(self, side: int, given: float) -> float:
        """The end of the support: `given` if finite, else the point beyond which log p is −∞, else infinity."""
        if math.isfinite(given):
            return given
        edge = self._level(side, DEPTHS[-1])
        beyond = abs(edge - self.mode) * (1 + 1e-9) + 1e-12
        return edge if self._log_beside_mode(side * beyond) == -math.inf else given

    def _level(self, side: int, depth: float) -> float:
        """The point on one side of the maximum where log p = −depth, or the end of the support before that."""
        edge = self.high if side > 0 else self.low
        room = abs(edge - self.mode) * (1 - 1e-9)  # excludes the end itself, where p may be zero
        near = 0.0
        far = min(1e-3, room)
        while self._log_beside_mode(side * far) > -depth:
            if far >= room:
                return edge
            if far > 1e150:
                raise InputError("log_density does not decay. Pass the interval on which it lives as 'support'.")
            near = far
            far = min(2 * far, room)
        for _ in range(60):
            middle = (near + far) / 2
            if self._log_beside_mode(side * middle) > -depth:
                near = middle
            else:
                far = middle
        return self.mode + side * near

    def _log_beside_mode(self, distance: float) -> float:
        return float(self.log(np.array([self.mode + distance]))[0])
