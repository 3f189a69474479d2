"""The planar arm of dm_control's reacher, rendered by MuJoCo, as a world with actions.

The state is what one image shows: the two joint angles z = (shoulder, wrist). An action turns the joints,
z' = z + max_turn · u, like an arm with position-controlled motors: the shoulder without limit, the wrist up to its
limits. With torques as actions the state would include velocities, which a single image does not show. Then an encoder
of single images could not identify the state, and a planner in its latents could not predict the next one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError, check_argument, require
from jepatlas.worlds.action_world import rejection_sample
from jepatlas.worlds.mujoco_canvas import Canvas, RenderedWorld, load_mujoco, simplify_rendering
from jepatlas.worlds.reacher.kinematics import WRIST_LIMIT, wrap

if TYPE_CHECKING:
    from jepatlas.worlds.environment import ActionEnv

__all__ = ["SIZE", "ArmRenderer", "Reacher", "Viewpoint", "load_reacher_mujoco", "reacher_spec"]

SIZE = 64
Viewpoint = Literal["top", "tilted"]


def load_reacher_mujoco() -> Any:
    """The mujoco module; raises InputError with installation instructions if it or dm_control is missing."""
    require("dm_control", "sim", "The world 'reacher'")
    return load_mujoco("The world 'reacher'")


def reacher_spec() -> Any:
    """dm_control's own model without its target, because a goal is a state here and not part of the image.

    The file is read directly: importing dm_control's suite would load all of its domains, and OpenGL.
    """
    mujoco = load_reacher_mujoco()
    with resources.as_file(resources.files("dm_control") / "suite") as folder:
        spec = mujoco.MjSpec.from_file(str(folder / "reacher.xml"))
    spec.delete(spec.geom("target"))
    return spec


class ArmRenderer:
    """Images of joint angles. It belongs to one process and thread; `close` releases its OpenGL context."""

    def __init__(self, viewpoint: Viewpoint) -> None:
        self.mujoco = load_reacher_mujoco()
        spec = reacher_spec()
        simplify_rendering(spec, SIZE, slices=8)  # links are two pixels wide
        self.model = spec.compile()
        self.data = self.mujoco.MjData(self.model)
        self.camera = self.mujoco.MjvCamera()
        if viewpoint == "top":
            self.camera.type, self.camera.fixedcamid = self.mujoco.mjtCamera.mjCAMERA_FIXED, 0
        else:
            self.camera.lookat[:], self.camera.distance = 0.0, 0.7
            self.camera.azimuth, self.camera.elevation = 60.0, -45.0
        self.canvas = Canvas(self.mujoco, self.model, SIZE)
        self.scene = self.canvas.scene(self.model, max_geoms=100)

    def frames(self, angles: np.ndarray) -> np.ndarray:  # (b, 2) → (b, 64, 64, 3) uint8
        mujoco = self.mujoco
        images = np.empty((len(angles), SIZE, SIZE, 3), np.uint8)
        everything, options = mujoco.mjtCatBit.mjCAT_ALL.value, mujoco.MjvOption()
        self.canvas.make_current()
        for image, angle in zip(images, angles, strict=True):
            self.data.qpos[:] = angle
            mujoco.mj_kinematics(self.model, self.data)
            mujoco.mj_camlight(self.model, self.data)
            mujoco.mjv_updateScene(self.model, self.data, options, None, self.camera, everything, self.scene)
            self.canvas.draw(self.scene, image)
        return np.ascontiguousarray(images[:, ::-1])

    def close(self) -> None:
        self.canvas.close()


@dataclass(frozen=True)
class Reacher(RenderedWorld[ArmRenderer]):
    """States (shoulder, wrist) in radians. Rendering opens an OpenGL context; `close` or `with` releases it.

    >>> Reacher(max_turn=0.1).step(np.array([[0.0, 1.0]]), np.array([[1.0, -0.5]])).round(3).tolist()
    [[0.1, 0.95]]
    """

    kind: ClassVar[str] = "reacher"

    camera: Viewpoint = "top"
    """Viewpoint of the images: from above, or tilted from the side."""
    max_turn: float = 0.2
    """Angle by which an action of 1 turns a joint, in radians."""
    tolerance: float = 0.15
    """Distance of the joint angles from the goal at which it counts as reached, in radians."""

    def __post_init__(self) -> None:
        check_literals(self)
        for name in ("max_turn", "tolerance"):
            value = getattr(self, name)
            check_argument(name, value, 0 < value < math.pi, "above 0 and below π")

    @property
    def state_dim(self) -> int:
        return 2

    @property
    def action_dim(self) -> int:
        return 2

    def states(self, count: int, rng: np.random.Generator) -> np.ndarray:
        limits = np.array([np.pi, WRIST_LIMIT])
        return rng.uniform(-limits, limits, (count, 2))

    def goals(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Random postures; all of them can be reached."""

        def accept(rows: np.ndarray, goals: np.ndarray) -> np.ndarray:
            return ~self.reached(states[rows], goals)

        return rejection_sample(lambda count: self.states(count, rng), accept, len(states))

    def admits(self, states: np.ndarray) -> np.ndarray:
        return np.abs(states[:, 1]) <= WRIST_LIMIT

    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        turned = states + self.max_turn * actions
        return np.stack([wrap(turned[:, 0]), np.clip(turned[:, 1], -WRIST_LIMIT, WRIST_LIMIT)], 1)

    def reached(self, states: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Euclidean distance of the joint angles, with the shoulder's difference taken modulo 2π."""
        difference = states - goals
        return np.hypot(wrap(difference[:, 0]), difference[:, 1]) <= self.tolerance

    def observe(self, states: np.ndarray) -> np.ndarray:
        return self.render(states)

    def render(self, states: np.ndarray) -> np.ndarray:
        states = np.asarray(states, dtype=np.float64)
        if states.ndim != 2 or states.shape[1] != 2 or not np.isfinite(states).all():
            raise InputError(f"states must be rows of two finite joint angles, but their shape is {states.shape}.")
        return self._renderer.frames(states)

    def open_renderer(self) -> ArmRenderer:
        return ArmRenderer(self.camera)

    def make(self, render_mode: str | None = "rgb_array") -> ActionEnv:
        """The gymnasium environment."""
        from jepatlas.worlds.environment import ActionEnv  # noqa: PLC0415  (gymnasium is slow to import)

        return ActionEnv(self, render_mode)
