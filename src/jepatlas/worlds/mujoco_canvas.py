"""What every world that MuJoCo draws shares: the module or a clear word, and one OpenGL context without a screen (EGL).

Most of a small picture's cost is drawing what cannot be seen: shadows, reflections, samples of each pixel and the
facets of round bodies. They are left out; `benchmarks/reacher.py` has the figures.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, require

__all__ = ["Canvas", "keep_plain", "load_mujoco", "rendering_error"]

SYSTEM_PACKAGES = "libegl1 libgl1 libopengl0 libgl1-mesa-dri"


def load_mujoco(purpose: str) -> Any:
    """The module, or an `InputError` that names what to install for `purpose`."""
    try:
        return require("mujoco", "sim", purpose)
    except (AttributeError, OSError, RuntimeError) as error:  # it loads what MUJOCO_GL names when it is imported
        raise rendering_error(error) from error


def rendering_error(error: Exception) -> InputError:
    return InputError(
        f"MuJoCo cannot draw without a screen here ({_words(error)}). On Debian or Ubuntu run: apt-get install "
        f"{SYSTEM_PACKAGES}; unset MUJOCO_GL, or set it to egl; and see that the Python packages are there: "
        "pip install 'jepatlas[sim]'"
    )


def _words(error: Exception) -> str:
    """What an error says; those of PyOpenGL cannot always be put into words."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def keep_plain(spec: Any, size: int, slices: int) -> None:
    """Pictures of `size` pixels, one sample for each of them, and round bodies of `slices` facets round their axis."""
    view, quality = spec.visual.global_, spec.visual.quality
    view.offwidth = view.offheight = size
    quality.offsamples = 0
    quality.numslices, quality.numstacks, quality.numquads = slices, slices // 2, 1


class Canvas:
    """A square to draw scenes of a model on. It belongs to one process and one thread; `close` gives it back."""

    def __init__(self, mujoco: Any, model: Any, size: int) -> None:
        self.mujoco, self.size = mujoco, size
        self.area = mujoco.MjrRect(0, 0, size, size)
        try:
            self.context: Any = _context_class(mujoco)(size, size)
            self.context.make_current()
            self.target = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value)
        except Exception as error:  # OpenGL's bindings raise almost anything, down to AttributeError
            raise rendering_error(error) from error
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self.target)
        # MuJoCo ends EGL when Python exits. Whatever is registered later runs earlier, so the context goes first.
        atexit.register(self.close)

    def scene(self, model: Any, most: int) -> Any:
        """An empty scene of at most so many bodies."""
        scene, flags = self.mujoco.MjvScene(model, maxgeom=most), self.mujoco.mjtRndFlag
        for left_out in (flags.mjRND_SHADOW, flags.mjRND_REFLECTION, flags.mjRND_SKYBOX):
            scene.flags[left_out] = False
        return scene

    def begin(self) -> None:
        """Another canvas may have drawn since."""
        self.context.make_current()

    def draw(self, scene: Any, row: np.ndarray) -> None:
        """Fill `row`, (size, size, 3) bytes; OpenGL counts lines from below."""
        self.mujoco.mjr_render(self.area, scene, self.target)
        self.mujoco.mjr_readPixels(row, None, self.area, self.target)

    def close(self) -> None:
        atexit.unregister(self.close)
        if self.context is not None:
            self.context.make_current()  # what it holds can only be freed while it is the current one
            self.target.free()
            self.context.free()
            self.context = None


def _context_class(mujoco: Any) -> Any:
    """EGL needs no screen; a way to draw that the user has chosen by MUJOCO_GL is left to MuJoCo."""
    if sys.platform == "linux" and not os.environ.get("MUJOCO_GL"):
        from mujoco.egl import GLContext  # noqa: PLC0415  (loads OpenGL)

        return GLContext
    return mujoco.GLContext
