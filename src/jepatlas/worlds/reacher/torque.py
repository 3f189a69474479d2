"""Arms driven by torque through MuJoCo's own integration: what a policy learns on, and is rolled out in.

A policy sees the sines and cosines of the joint angles, their velocities, the target and the way that is left to it.
"""

from __future__ import annotations

import numpy as np

from jepatlas.worlds.reacher.kinematics import LINKS, WRIST_LIMIT, fingertip
from jepatlas.worlds.reacher.simulator import load_mujoco, reacher_spec

__all__ = ["OBSERVED", "STEPS_PER_ACTION", "TorqueArms"]

OBSERVED = 10
STEPS_PER_ACTION = 2  # of 0.02 s each
REACH = sum(LINKS)
FAST = 10.0  # rad/s; brings velocities to the size of the other observations


class TorqueArms:
    """Several arms with a target each."""

    def __init__(self, count: int) -> None:
        self.mujoco = load_mujoco()
        self.model = reacher_spec().compile()
        self.data = [self.mujoco.MjData(self.model) for _ in range(count)]
        self.targets = np.zeros((count, 2))

    def begin(self, rng: np.random.Generator) -> None:
        """At rest, in any posture."""
        for data in self.data:
            self.mujoco.mj_resetData(self.model, data)
            data.qpos[:] = rng.uniform([-np.pi, -WRIST_LIMIT], [np.pi, WRIST_LIMIT])

    @property
    def angles(self) -> np.ndarray:  # (count, 2)
        return np.array([data.qpos for data in self.data])

    @property
    def velocities(self) -> np.ndarray:
        return np.array([data.qvel for data in self.data])

    @property
    def distances(self) -> np.ndarray:
        """From fingertip to target, in units of the arm's reach."""
        return np.linalg.norm(self.targets - fingertip(self.angles), axis=1) / REACH

    def observe(self) -> np.ndarray:  # (count, 10) float32
        q = self.angles
        left = self.targets - fingertip(q)
        seen = [np.cos(q), np.sin(q), self.velocities / FAST, self.targets / REACH, left / REACH]
        return np.concatenate(seen, 1).astype(np.float32)

    def step(self, torques: np.ndarray) -> None:  # (count, 2) in [−1, 1]
        for data, torque in zip(self.data, torques, strict=True):
            data.ctrl[:] = torque
            self.mujoco.mj_step(self.model, data, STEPS_PER_ACTION)
