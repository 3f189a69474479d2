"""A 1-D law, found from its log-density, and its eigenproblem in finite volumes on a grid as wide as it needs.

K f = λ M f        M: the mass p dx of each cell,  K: made of p/dx at the faces; no flux through the ends
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.special

from jepatlas.core.errors import InputError

__all__ = ["Eigenpairs", "Law", "LogDensity"]

LogDensity = Callable[[np.ndarray], np.ndarray]

DEPTHS = (50.0, 100.0, 200.0, 400.0)
"""How far below its maximum log p is followed outward, until the eigenfunctions fit in."""
CONFINED = 1e-6
"""√p f at an open end, relative to its maximum, below which an eigenfunction counts as found."""


class Eigenpairs(NamedTuple):
    x: np.ndarray  # (m,): centres of the cells
    width: np.ndarray  # (m,)
    mass: np.ndarray  # (m,): p dx, of sum 1
    values: np.ndarray  # (k,)
    functions: np.ndarray  # (k, m)


class Law:
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
        self.low, self.high = self._wall(-1, self.low), self._wall(1, self.high)
        left, right = self._reach(-1, 0.5), self._reach(1, 0.5)
        self.centre, self.scale = (left + right) / 2, (right - left) / 2

    def log(self, x: np.ndarray) -> np.ndarray:
        """log p, zero at its maximum."""
        with np.errstate(over="ignore", divide="ignore"):  # far out, −inf is what it should be
            values = np.asarray(self._log_density(x), dtype=np.float64) - self._peak
        if values.shape != x.shape or np.isnan(values).any() or (values == np.inf).any():
            raise InputError("The log-density must give one number below infinity for each x.")
        return values

    def followed_outward(self, count: int, points: int) -> tuple[Eigenpairs, int, float]:
        """Eigenpairs on as wide a range as they need, how many of them are confined to it, and its depth."""
        depth, cells = DEPTHS[0], points | 1  # an odd number of cells has one in the middle, for a kink there
        while True:
            pairs = self.eigenpairs(depth, count, cells)
            found = self.confined(pairs)
            if found == count or depth == DEPTHS[-1]:
                return pairs, found, depth
            depth = DEPTHS[DEPTHS.index(depth) + 1]
            cells = round(points * depth / DEPTHS[0]) | 1  # as fine as before: coarse cells would confine a wave

    def eigenpairs(self, depth: float, count: int, points: int) -> Eigenpairs:
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
        return Eigenpairs(x, width, mass, values, (signs * vectors / np.sqrt(mass)[:, None]).T)

    def confined(self, pairs: Eigenpairs) -> int:
        """How many of the first eigenfunctions die out towards the open ends. Where there is a wall they need not."""
        size = np.abs(pairs.functions * np.sqrt(pairs.mass))
        left = size[:, 0] if self.low == -math.inf else 0.0
        right = size[:, -1] if self.high == math.inf else 0.0
        inside = np.maximum(left, right) <= CONFINED * size.max(1)
        return len(inside) if inside.all() else int(np.argmin(inside))

    def _wall(self, side: int, given: float) -> float:
        """Where p ends, on an open side on which it does not fall off but stops: log p is −∞ just beyond."""
        if math.isfinite(given):
            return given
        edge = self._reach(side, DEPTHS[-1])
        beyond = abs(edge - self.mode) * (1 + 1e-9) + 1e-12
        return edge if self._beside(side * beyond) == -math.inf else given

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
