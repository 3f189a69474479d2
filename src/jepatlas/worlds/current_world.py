"""A vehicle in a current: ẋ = W(x) + s·e, with a heading e of its choice, ‖e‖ = 1.

E(x, y) is the minimal time from x to y. It differs from the time back, and is +∞ where a current faster than the
vehicle prevents the return. Exact values come from a closed form or an eikonal solver (`energy.exact`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from jepatlas.core.errors import check_count, check_positive
from jepatlas.core.records import Experience
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.currents import AnyCurrent, ShearCurrent
from jepatlas.worlds.random_episodes import as_experience, check_walk

__all__ = ["CurrentWorld"]

SUBSTEPS = 4  # Runge–Kutta steps per step of the world
MAX_HEADINGS = 64  # headings tried before an episode ends because all lead out of the box
TILES = 8  # tiles along a side of the box, of which episodes visit a share


@dataclass(frozen=True)
class CurrentWorld:
    """The box [−half, half]² with a current and a vehicle of constant speed.

    >>> CurrentWorld().velocity(np.array([[0.0, 0.5]]))
    array([[0.45, 0.  ]])
    """

    kind: ClassVar[str] = "current"

    current: AnyCurrent = field(default_factory=ShearCurrent)
    """Current that carries the vehicle along."""
    speed: float = 1.0
    """Speed of the vehicle; a current may be faster."""
    half: float = 1.0
    """Half the side of the box."""
    step: float = 0.1
    """Duration of a step with constant heading, which is the cost of the step."""

    def __post_init__(self) -> None:
        for name in ("speed", "half", "step"):
            check_positive(name, getattr(self, name))

    @property
    def observed_dim(self) -> int:
        return 2

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """The current W at positions (..., 2): (..., 2)."""
        return self.current.velocity(np.asarray(x, dtype=np.float64))

    def on_grid(self, resolution: int) -> tuple[np.ndarray, np.ndarray]:
        """Grid coordinates a (resolution,), and W at the points (a[j], a[i]): (resolution, resolution, 2)."""
        check_count("resolution", resolution, minimum=2)
        axis = np.linspace(-self.half, self.half, resolution)
        return axis, self.velocity(np.stack(np.meshgrid(axis, axis), -1))

    def states(self, count: int, seed: int) -> np.ndarray:
        """Positions drawn uniformly from the box: (count, 2)."""
        check_count("count", count)
        return numpy_generator(seed, "states").uniform(-self.half, self.half, (count, 2))

    def observe(self, z: np.ndarray) -> np.ndarray:
        """Both coordinates, scaled to [−1, 1]."""
        return np.asarray(z, dtype=np.float64) / self.half

    def move(self, z: np.ndarray, heading: np.ndarray) -> np.ndarray:
        """Trajectory of one step with a constant heading (an angle), from z on: (SUBSTEPS + 1, ..., 2)."""
        own = self.speed * np.stack([np.cos(heading), np.sin(heading)], -1)
        h = self.step / SUBSTEPS
        trajectory = [np.asarray(z, dtype=np.float64)]
        for _ in range(SUBSTEPS):
            x = trajectory[-1]
            a = self.velocity(x) + own
            b = self.velocity(x + h / 2 * a) + own
            c = self.velocity(x + h / 2 * b) + own
            d = self.velocity(x + h * c) + own
            trajectory.append(x + h / 6 * (a + 2 * b + 2 * c + d))
        return np.stack(trajectory)

    def walk(self, episodes: int, length: int, seed: int, coverage: float = 1.0) -> Experience:
        """Episodes of random headings that stay in the box and in a share `coverage` of its tiles.

        A heading that leads out is drawn again. If none is found, as in a current faster than the vehicle, the episode
        ends.
        """
        check_walk(episodes, length, coverage)
        rng = numpy_generator(seed, "walk")
        tiles = _covered_tiles(seed, coverage)
        z = np.full((episodes, length + 1, 2), np.nan)
        z[:, 0] = self._draw_starts(episodes, tiles, rng)
        for step in range(length):
            active = np.flatnonzero(~np.isnan(z[:, step, 0]))
            z[active, step + 1] = self._random_step(z[active, step], tiles, rng)
        taken = ~np.isnan(z[:, 1:, 0])
        return as_experience(z, taken, np.full(taken.shape, self.step), self.observe)

    def _draw_starts(self, episodes: int, tiles: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        tile = rng.choice(np.flatnonzero(tiles), episodes)
        offset = rng.uniform(size=(episodes, 2))
        return self.half * (2 * (np.stack(np.divmod(tile, TILES), -1) + offset) / TILES - 1)

    def _random_step(self, z: np.ndarray, tiles: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """States after a random heading; NaN where no heading stays inside."""
        after = np.full(z.shape, np.nan)
        open_rows = np.arange(len(z))
        for _ in range(MAX_HEADINGS):
            trajectory = self.move(z[open_rows], rng.uniform(0, 2 * math.pi, len(open_rows)))
            inside = self._inside(trajectory, tiles).all(0)
            after[open_rows[inside]] = trajectory[-1][inside]
            open_rows = open_rows[~inside]
            if not len(open_rows):
                break
        return after

    def _inside(self, x: np.ndarray, tiles: np.ndarray) -> np.ndarray:
        tile = np.floor((x / self.half + 1) / 2 * TILES).astype(np.int64)
        inside = (np.abs(x) < self.half).all(-1)
        row, column = np.moveaxis(np.clip(tile, 0, TILES - 1), -1, 0)
        return inside & tiles[row * TILES + column]


def _covered_tiles(seed: int, coverage: float) -> np.ndarray:
    """A random share of the tiles, at least one; a larger coverage includes the tiles of a smaller one."""
    order = numpy_generator(seed, "coverage").permutation(TILES**2)
    return np.isin(np.arange(TILES**2), order[: max(1, round(coverage * TILES**2))])
