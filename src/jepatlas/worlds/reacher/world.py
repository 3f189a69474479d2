"""The planar arm of dm_control's reacher, drawn by MuJoCo, as a world with actions.

The state is what one picture shows: the two joint angles z = (shoulder, wrist). An action turns the joints,
z' = z + max_turn · u, as an arm with position-controlled motors does: the shoulder round the circle, the wrist up to
its limits. With torques for actions the state would also hold velocities, which no single picture shows; then neither
an encoder of single pictures could identify it, nor a planner in its latents know what comes next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError, check_argument
from jepatlas.worlds.action_world import draw_until
from jepatlas.worlds.drawn import DrawnWorld
from jepatlas.worlds.environment import ActionEnv
from jepatlas.worlds.reacher.kinematics import WRIST_LIMIT, wrap
from jepatlas.worlds.reacher.rendering import ArmRenderer, Viewpoint

__all__ = ["Reacher"]


@dataclass(frozen=True)
class Reacher(DrawnWorld[ArmRenderer]):
    """States (shoulder, wrist) in radians. Drawing opens an OpenGL context; `close`, or `with`, gives it back.

    >>> Reacher(max_turn=0.1).step(np.array([[0.0, 1.0]]), np.array([[1.0, -0.5]])).round(3).tolist()
    [[0.1, 0.95]]
    """

    kind: ClassVar[str] = "reacher"

    camera: Viewpoint = "top"
    """From where it is seen: from above, or from the side and above."""
    max_turn: float = 0.2
    """How far an action of 1 turns a joint, in radians."""
    tolerance: float = 0.15
    """A goal is reached where the joint angles are this near to it, in radians."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_argument("max_turn", self.max_turn, 0 < self.max_turn < math.pi, "above 0 and below π")
        check_argument("tolerance", self.tolerance, 0 < self.tolerance < math.pi, "above 0 and below π")

    @property
    def state_dim(self) -> int:
        return 2

    @property
    def action_dim(self) -> int:
        return 2

    def states(self, count: int, rng: np.random.Generator) -> np.ndarray:
        far = np.array([np.pi, WRIST_LIMIT])
        return rng.uniform(-far, far, (count, 2))

    def goals(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Any other posture: all of them can be reached."""
        return draw_until(
            lambda count: self.states(count, rng), lambda rows, goals: ~self.reached(states[rows], goals), len(states)
        )

    def admits(self, states: np.ndarray) -> np.ndarray:
        return np.abs(states[:, 1]) <= WRIST_LIMIT

    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        turned = states + self.max_turn * actions
        return np.stack([wrap(turned[:, 0]), np.clip(turned[:, 1], -WRIST_LIMIT, WRIST_LIMIT)], 1)

    def reached(self, states: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """The shoulder's angle is measured round the circle."""
        apart = states - goals
        return np.hypot(wrap(apart[:, 0]), apart[:, 1]) <= self.tolerance

    def observe(self, states: np.ndarray) -> np.ndarray:
        return self.render(states)

    def render(self, states: np.ndarray) -> np.ndarray:
        states = np.asarray(states, dtype=np.float64)
        if states.ndim != 2 or states.shape[1] != 2 or not np.isfinite(states).all():
            raise InputError(f"States have the shape {states.shape}, but rows of two finite joint angles are due.")
        return self._renderer.frames(states)

    def _open(self) -> ArmRenderer:
        return ArmRenderer(self.camera)

    def make(self, render_mode: str | None = "rgb_array") -> ActionEnv:
        return ActionEnv(self, render_mode)
