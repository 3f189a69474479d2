"""Pictures of the arm: one OpenGL context without a screen (EGL), opened once and used for every frame.

Most of a frame's cost at 64 px is drawing what cannot be seen: shadows, reflections, samples of each pixel and the
facets of round bodies. They are left out; `benchmarks/reacher.py` has the figures.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any, Literal

import numpy as np

from jepatlas.worlds.reacher.simulator import load_mujoco, reacher_spec, rendering_error

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
        self.scene = self.mujoco.MjvScene(self.model, maxgeom=100)
        flags = self.mujoco.mjtRndFlag
        for left_out in (flags.mjRND_SHADOW, flags.mjRND_REFLECTION, flags.mjRND_SKYBOX):
            self.scene.flags[left_out] = False
        self._open()

    def _open(self) -> None:
        try:
            self.context: Any = _context_class(self.mujoco)(SIZE, SIZE)
            self.context.make_current()
            self.target = self.mujoco.MjrContext(self.model, self.mujoco.mjtFontScale.mjFONTSCALE_50.value)
        except Exception as error:  # OpenGL's bindings raise almost anything, down to AttributeError
            raise rendering_error(error) from error
        self.mujoco.mjr_setBuffer(self.mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self.target)
        # MuJoCo ends EGL when Python exits. Whatever is registered later runs earlier, so the context goes first.
        atexit.register(self.close)

    def frames(self, angles: np.ndarray) -> np.ndarray:  # (b, 2) → (b, 64, 64, 3) uint8
        mujoco, rows = self.mujoco, np.empty((len(angles), SIZE, SIZE, 3), np.uint8)
        everything, area, options = (
            mujoco.mjtCatBit.mjCAT_ALL.value,
            mujoco.MjrRect(0, 0, SIZE, SIZE),
            mujoco.MjvOption(),
        )
        self.context.make_current()
        for row, angle in zip(rows, angles, strict=True):
            self.data.qpos[:] = angle
            mujoco.mj_kinematics(self.model, self.data)
            mujoco.mj_camlight(self.model, self.data)
            mujoco.mjv_updateScene(self.model, self.data, options, None, self.camera, everything, self.scene)
            mujoco.mjr_render(area, self.scene, self.target)
            mujoco.mjr_readPixels(row, None, area, self.target)
        return np.ascontiguousarray(rows[:, ::-1])  # OpenGL counts rows from below

    def close(self) -> None:
        atexit.unregister(self.close)
        if self.context is not None:
            self.context.make_current()  # what it holds can only be freed while it is the current one
            self.target.free()
            self.context.free()
            self.context = None


def _plain_model() -> Any:
    spec = reacher_spec()
    view, quality = spec.visual.global_, spec.visual.quality
    view.offwidth = view.offheight = SIZE
    quality.offsamples = 0
    quality.numslices, quality.numstacks, quality.numquads = 8, 4, 1  # links are two pixels wide
    return spec.compile()


def _view(mujoco: Any, camera: Viewpoint) -> Any:
    """The suite's own camera above the arm, or one that looks at its shoulder from the side."""
    view = mujoco.MjvCamera()
    if camera == "top":
        view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
    else:
        view.lookat[:], view.distance, view.azimuth, view.elevation = 0.0, 0.7, 60.0, -45.0
    return view


def _context_class(mujoco: Any) -> Any:
    """EGL needs no screen; a way to draw that the user has chosen by MUJOCO_GL is left to MuJoCo."""
    if sys.platform == "linux" and not os.environ.get("MUJOCO_GL"):
        from mujoco.egl import GLContext  # noqa: PLC0415  (loads OpenGL)

        return GLContext
    return mujoco.GLContext
