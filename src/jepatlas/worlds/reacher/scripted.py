"""A goal-directed hand-written controller: one target after another, by inverse kinematics and proportional control.

u = clip(gain · (q* − q) / max_turn + noise · η), with q* the joint angles for the target. The arm hurries, slows down,
and waits: cheap to make, and far from Gaussian.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jepatlas.core.errors import check_argument, check_count
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.reacher.kinematics import draw_targets, joint_angles
from jepatlas.worlds.reacher.motion import check_trajectory
from jepatlas.worlds.reacher.world import Reacher

__all__ = ["LARGEST_ARC", "ScriptedMotion"]

LARGEST_ARC = 1.7
"""With targets up to here no posture that reaches one is at the cut of the shoulder's angle, ±π."""


@dataclass(frozen=True)
class ScriptedMotion:
    """Reaches for random points, with the elbow on either side."""

    kind: ClassVar[str] = "scripted"

    steps_per_target: int = 20
    """After so many steps there is a new target."""
    gain: float = 0.3
    """The share of the way to the target that a step makes, where max_turn allows it; above 0, at most 1."""
    noise: float = 0.1
    """Standard deviation of the noise in every action, as a share of the largest one."""
    arc: float = 1.5
    """Targets lie in directions up to so many radians to either side; at most 1.7, so that no angle wraps round."""

    def __post_init__(self) -> None:
        check_count("steps_per_target", self.steps_per_target)
        check_argument("gain", self.gain, 0 < self.gain <= 1, "above 0 and at most 1")
        check_argument("noise", self.noise, 0 <= self.noise < math.inf, "not negative and finite")
        check_argument("arc", self.arc, 0 < self.arc <= LARGEST_ARC, f"above 0 and at most {LARGEST_ARC}")

    def trajectory(self, world: Reacher, episodes: int, length: int, seed: int) -> np.ndarray:
        """Through the world's own steps; it begins at a posture drawn like those it reaches for."""
        check_trajectory(episodes, length)
        rng = numpy_generator(seed, "reacher-scripted")
        q = np.empty((episodes, length, 2))
        q[:, 0], aim = self._postures(episodes, rng), self._postures(episodes, rng)
        for step in range(1, length):
            if step % self.steps_per_target == 0:
                aim = self._postures(episodes, rng)
            noise = self.noise * rng.standard_normal((episodes, 2))
            action = self.gain * (aim - q[:, step - 1]) / world.max_turn + noise
            q[:, step] = world.step(q[:, step - 1], np.clip(action, -1, 1))
        return q

    def _postures(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return joint_angles(draw_targets(count, self.arc, rng), rng.choice([-1.0, 1.0], count))
