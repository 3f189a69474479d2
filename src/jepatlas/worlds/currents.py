"""A vehicle in a current: ẋ = W(x) + s·e with a heading e that it chooses, ‖e‖ = 1.

E(x, y) is the least time from x to y, which is not the time back; where the current is faster than the vehicle there
may be no way back at all. The truth comes from a closed form or from an eikonal solver, not from here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from jepatlas.core.errors import check_argument, check_count
from jepatlas.core.records import Experience
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.current_fields import AnyCurrent, ShearCurrent
from jepatlas.worlds.episodes import as_experience, check_walk

__all__ = ["CurrentWorld"]

SUBSTEPS = 4  # of Runge and Kutta's fourth-order method in one step
TRIES = 64  # headings tried before an episode is over because each leads out
TILES = 8  # along each side of the box, of which episodes see a share


@dataclass(frozen=True)
class CurrentWorld:
    """The box [−half, half]², a vehicle of its own speed, and a current.

    >>> CurrentWorld().velocity(np.array([[0.0, 0.5]]))
    array([[0.45, 0.  ]])
    """

    kind: ClassVar[str] = "current"

    current: AnyCurrent = field(default_factory=ShearCurrent)
    """What carries the vehicle along."""
    speed: float = 1.0
    """The vehicle's own speed; a current may be faster."""
    half: float = 1.0
    """Half of the box's side."""
    step: float = 0.1
    """The time for which a heading is kept, which is the cost of a step."""

    def __post_init__(self) -> None:
        for name in ("speed", "half", "step"):
            check_argument(name, getattr(self, name), 0 < getattr(self, name) < math.inf, "positive and finite")

    @property
    def observed_dim(self) -> int:
        return 2

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """The current W at each place: (..., 2)."""
        return self.current.velocity(np.asarray(x, dtype=np.float64))

    def on_grid(self, resolution: int) -> tuple[np.ndarray, np.ndarray]:
        """The places a along a side (resolution,), and W at the points (a[j], a[i]): (resolution, resolution, 2)."""
        check_count("resolution", resolution, minimum=2)
        axis = np.linspace(-self.half, self.half, resolution)
        return axis, self.velocity(np.stack(np.meshgrid(axis, axis), -1))

    def states(self, count: int, seed: int) -> np.ndarray:
        """Places drawn uniformly from the box: (count, 2)."""
        check_count("count", count)
        return numpy_generator(seed, "states").uniform(-self.half, self.half, (count, 2))

    def observe(self, z: np.ndarray) -> np.ndarray:
        """Both coordinates, brought to [−1, 1]."""
        return np.asarray(z, dtype=np.float64) / self.half

    def move(self, z: np.ndarray, heading: np.ndarray) -> np.ndarray:
        """The way through the current in one step with a heading (an angle): (SUBSTEPS + 1, ..., 2), from z on."""
        own = self.speed * np.stack([np.cos(heading), np.sin(heading)], -1)
        h, way = self.step / SUBSTEPS, [np.asarray(z, dtype=np.float64)]
        for _ in range(SUBSTEPS):
            x = way[-1]
            a = self.velocity(x) + own
            b = self.velocity(x + h / 2 * a) + own
            c = self.velocity(x + h / 2 * b) + own
            d = self.velocity(x + h * c) + own
            way.append(x + h / 6 * (a + 2 * b + 2 * c + d))
        return np.stack(way)

    def walk(self, episodes: int, length: int, seed: int, coverage: float = 1.0) -> Experience:
        """Episodes of random headings that stay in the box, and in a share `coverage` of its tiles.

        A heading that leads out is drawn again; where none is found, as under a current that is faster than the
        vehicle, the episode is over.
        """
        check_walk(episodes, length, coverage)
        random, seen = numpy_generator(seed, "walk"), _seen_tiles(seed, coverage)
        z = np.full((episodes, length + 1, 2), np.nan)
        z[:, 0] = self._begin(episodes, seen, random)
        for step in range(length):
            going = np.flatnonzero(~np.isnan(z[:, step, 0]))
            z[going, step + 1] = self._next(z[going, step], seen, random)
        went = ~np.isnan(z[:, 1:, 0])
        return as_experience(z, went, np.full(went.shape, self.step), self.observe)

    def _begin(self, episodes: int, seen: np.ndarray, random: np.random.Generator) -> np.ndarray:
        tile = random.choice(np.flatnonzero(seen), episodes)
        within = random.uniform(size=(episodes, 2))
        return self.half * (2 * (np.stack(np.divmod(tile, TILES), -1) + within) / TILES - 1)

    def _next(self, z: np.ndarray, seen: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Where a random heading leads; NaN where none was found that stays inside."""
        after, open_ = np.full(z.shape, np.nan), np.arange(len(z))
        for _ in range(TRIES):
            way = self.move(z[open_], random.uniform(0, 2 * math.pi, len(open_)))
            inside = self._inside(way, seen).all(0)
            after[open_[inside]] = way[-1][inside]
            open_ = open_[~inside]
            if not len(open_):
                break
        return after

    def _inside(self, x: np.ndarray, seen: np.ndarray) -> np.ndarray:
        tile = np.floor((x / self.half + 1) / 2 * TILES).astype(np.int64)
        inside = (np.abs(x) < self.half).all(-1)
        row, column = np.moveaxis(np.clip(tile, 0, TILES - 1), -1, 0)
        return inside & seen[row * TILES + column]


def _seen_tiles(seed: int, coverage: float) -> np.ndarray:
    """A random share of the tiles, at least one; a larger share contains a smaller."""
    order = numpy_generator(seed, "coverage").permutation(TILES**2)
    return np.isin(np.arange(TILES**2), order[: max(1, round(coverage * TILES**2))])
