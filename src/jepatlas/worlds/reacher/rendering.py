"""Pictures of the arm, of its own camera or from the side."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from jepatlas.worlds.mujoco_canvas import Canvas, keep_plain
from jepatlas.worlds.reacher.simulator import load_mujoco, reacher_spec

__all__ = ["SIZE", "ArmRenderer", "Viewpoint"]

SIZE = 64
Viewpoint = Literal["top", "tilted"]


class ArmRenderer:
    """Draws joint angles. It belongs to one process and one thread, and `close` gives its context back."""

    def __init__(self, camera: Viewpoint) -> None:
        self.mujoco = load_mujoco()
        self.model = _plain_model()
        self.data = self.mujoco.MjData(self.model)
        self.camera = _view(self.mujoco, camera)
        self.canvas = Canvas(self.mujoco, self.model, SIZE)
        self.scene = self.canvas.scene(self.model, most=100)

    def frames(self, angles: np.ndarray) -> np.ndarray:  # (b, 2) → (b, 64, 64, 3) uint8
        mujoco, rows = self.mujoco, np.empty((len(angles), SIZE, SIZE, 3), np.uint8)
        everything, options = mujoco.mjtCatBit.mjCAT_ALL.value, mujoco.MjvOption()
        self.canvas.begin()
        for row, angle in zip(rows, angles, strict=True):
            self.data.qpos[:] = angle
            mujoco.mj_kinematics(self.model, self.data)
            mujoco.mj_camlight(self.model, self.data)
            mujoco.mjv_updateScene(self.model, self.data, options, None, self.camera, everything, self.scene)
            self.canvas.draw(self.scene, row)
        return np.ascontiguousarray(rows[:, ::-1])

    def close(self) -> None:
        self.canvas.close()


def _plain_model() -> Any:
    spec = reacher_spec()
    keep_plain(spec, SIZE, slices=8)  # links are two pixels wide
    return spec.compile()


def _view(mujoco: Any, camera: Viewpoint) -> Any:
    """The suite's own camera above the arm, or one that looks at its shoulder from the side."""
    view = mujoco.MjvCamera()
    if camera == "top":
        view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
    else:
        view.lookat[:], view.distance, view.azimuth, view.elevation = 0.0, 0.7, 60.0, -45.0
    return view
