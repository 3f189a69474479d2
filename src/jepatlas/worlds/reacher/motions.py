"""Motions of the arm without a planner: an Ornstein–Uhlenbeck law and a hand-written controller.

`OrnsteinUhlenbeckMotion` is the law for which linear identifiability is proven, on the joint angles:

    angle = scale · z,  z ~ N(0, I),  z' = ρ z + √(1−ρ²) η,  η ~ N(0, I).

`ScriptedMotion` reaches for one target after another by inverse kinematics and proportional control,
u = clip(gain · (q* − q) / max_turn + noise · η), with q* the joint angles of the target. It moves fast, slows down and
waits: cheap to generate, and far from Gaussian.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from jepatlas.core.errors import check_argument, check_count, check_not_negative, check_positive
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.reacher.arm import Reacher
from jepatlas.worlds.reacher.kinematics import WRIST_LIMIT, draw_targets, joint_angles

__all__ = ["LARGEST_ARC", "Motion", "OrnsteinUhlenbeckMotion", "ScriptedMotion", "check_trajectory"]

LARGEST_SHARE_OUTSIDE = 1e-3
LARGEST_ARC = 1.7
"""For targets within this arc, no posture is at the discontinuity of the shoulder's angle, ±π."""


class Motion(Protocol):
    kind: ClassVar[str]

    def trajectory(self, world: Reacher, episodes: int, length: int, seed: int) -> np.ndarray:  # (e, t, 2)
        """Joint angles in radians, determined by the seed."""
        ...


def check_trajectory(episodes: int, length: int) -> None:
    check_count("episodes", episodes)
    check_count("length", length)


@dataclass(frozen=True)
class OrnsteinUhlenbeckMotion:
    """Gaussian on the line, not on the circle: the scale is limited so that angles hardly ever pass ±π.

    >>> f"{OrnsteinUhlenbeckMotion().outside:.1e}"
    '3.4e-06'
    """

    kind: ClassVar[str] = "ornstein-uhlenbeck"

    rho: float = 0.9
    """Correlation of successive angles, in [0, 1)."""
    scale: float = 0.6
    """Standard deviation of both angles, in radians."""

    def __post_init__(self) -> None:
        check_argument("rho", self.rho, 0 <= self.rho < 1, "in [0, 1)")
        check_positive("scale", self.scale)
        allowed = f"at most 0.835, so that at most a share of {LARGEST_SHARE_OUTSIDE:g} of the images is out of range"
        check_argument("scale", self.scale, self.outside <= LARGEST_SHARE_OUTSIDE, allowed)

    @property
    def outside(self) -> float:
        """The share of images with the shoulder beyond ±π or the wrist beyond its limits."""
        inside = 1.0
        for limit in (math.pi, WRIST_LIMIT):
            inside *= math.erf(limit / self.scale / math.sqrt(2))
        return 1 - inside

    def trajectory(self, world: Reacher, episodes: int, length: int, seed: int) -> np.ndarray:
        """Stationary from the first angle. Angles are neither clipped nor wrapped, so the law is exactly Gaussian."""
        del world  # angles are sampled directly, so `max_turn` does not apply
        check_trajectory(episodes, length)
        z = numpy_generator(seed, "reacher-ornstein-uhlenbeck").standard_normal((episodes, length, 2))
        for step in range(1, length):
            z[:, step] = self.rho * z[:, step - 1] + math.sqrt(1 - self.rho**2) * z[:, step]
        return self.scale * z


@dataclass(frozen=True)
class ScriptedMotion:
    """Reaches for random targets, with the elbow on a random side."""

    kind: ClassVar[str] = "scripted"

    steps_per_target: int = 20
    """Number of steps after which the target changes."""
    gain: float = 0.3
    """Share of the remaining angle that a step covers, up to max_turn; above 0 and at most 1."""
    noise: float = 0.1
    """Standard deviation of the noise in each action, as a share of the largest action."""
    arc: float = 1.5
    """Largest direction of targets to either side, in radians; at most 1.7, so that angles do not wrap."""

    def __post_init__(self) -> None:
        check_count("steps_per_target", self.steps_per_target)
        check_argument("gain", self.gain, 0 < self.gain <= 1, "above 0 and at most 1")
        check_not_negative("noise", self.noise)
        check_argument("arc", self.arc, 0 < self.arc <= LARGEST_ARC, f"above 0 and at most {LARGEST_ARC}")

    def trajectory(self, world: Reacher, episodes: int, length: int, seed: int) -> np.ndarray:
        """By the world's own steps, from a start posture with the same distribution as the targets."""
        check_trajectory(episodes, length)
        rng = numpy_generator(seed, "reacher-scripted")
        q = np.empty((episodes, length, 2))
        q[:, 0] = self._draw_postures(episodes, rng)
        target = self._draw_postures(episodes, rng)
        for step in range(1, length):
            if step % self.steps_per_target == 0:
                target = self._draw_postures(episodes, rng)
            noise = self.noise * rng.standard_normal((episodes, 2))
            action = self.gain * (target - q[:, step - 1]) / world.max_turn + noise
            q[:, step] = world.step(q[:, step - 1], np.clip(action, -1, 1))
        return q

    def _draw_postures(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return joint_angles(draw_targets(count, self.arc, rng), rng.choice([-1.0, 1.0], count))
