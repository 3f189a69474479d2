"""Joint angles of an isotropic Ornstein–Uhlenbeck law, for which linear identifiability is proven:

angle = scale · z,  z ~ N(0, I),  z' = ρ z + √(1−ρ²) η,  η ~ N(0, I).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from jepatlas.core.errors import check_argument
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.reacher.kinematics import WRIST_LIMIT
from jepatlas.worlds.reacher.motion import check_trajectory
from jepatlas.worlds.reacher.world import Reacher

__all__ = ["OrnsteinUhlenbeckMotion"]

LARGEST_OUTSIDE = 1e-3


@dataclass(frozen=True)
class OrnsteinUhlenbeckMotion:
    """Gaussian on the line, not round the circle: so the scale is kept small enough that the cut is hardly ever met.

    >>> f"{OrnsteinUhlenbeckMotion().outside:.1e}"
    '3.4e-06'
    """

    kind: ClassVar[str] = "ornstein-uhlenbeck"

    rho: float = 0.9
    """Correlation of a joint's angle and the next, in [0, 1)."""
    scale: float = 0.6
    """Standard deviation of either angle, in radians."""

    def __post_init__(self) -> None:
        check_argument("rho", self.rho, 0 <= self.rho < 1, "in [0, 1)")
        check_argument("scale", self.scale, 0 < self.scale < math.inf, "positive and finite")
        what = f"so small that at most {LARGEST_OUTSIDE:g} of the pictures show the arm beyond its range: at most 0.835"
        check_argument("scale", self.scale, self.outside <= LARGEST_OUTSIDE, what)

    @property
    def outside(self) -> float:
        """The share of pictures in which the shoulder is beyond ±π or the wrist beyond its limits."""
        inside = [1 - 2 * ndtr(-limit / self.scale) for limit in (math.pi, WRIST_LIMIT)]
        return float(1 - inside[0] * inside[1])

    def trajectory(self, world: Reacher, episodes: int, length: int, seed: int) -> np.ndarray:
        """Stationary from the first angle on. Nothing is clipped or wrapped: the law stays exactly Gaussian."""
        del world  # the angles are given, not commanded: no largest turn holds for them
        check_trajectory(episodes, length)
        z = numpy_generator(seed, "reacher-ornstein-uhlenbeck").standard_normal((episodes, length, 2))
        for step in range(1, length):
            z[:, step] = self.rho * z[:, step - 1] + math.sqrt(1 - self.rho**2) * z[:, step]
        return self.scale * z
