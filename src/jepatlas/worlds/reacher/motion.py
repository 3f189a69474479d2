"""How the arm can move when nobody plans: trajectories of joint angles, each of a known law or policy."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from jepatlas.core.errors import check_count
from jepatlas.worlds.reacher.world import Reacher

__all__ = ["Motion", "check_trajectory"]


class Motion(Protocol):
    kind: ClassVar[str]

    def trajectory(self, world: Reacher, episodes: int, length: int, seed: int) -> np.ndarray:  # (e, t, 2)
        """Joint angles in radians; the same for the same seed."""
        ...


def check_trajectory(episodes: int, length: int) -> None:
    check_count("episodes", episodes)
    check_count("length", length)
