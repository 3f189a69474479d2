"""Off-screen MuJoCo rendering shared by the rendered worlds: module loading, an EGL context, renderer lifetime.

Most of the cost of a small image is invisible detail: shadows, reflections, multisampling and the facets of round
bodies. These are switched off; `benchmarks/reacher.py` has the measurements.
"""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from jepatlas.core.errors import InputError, require

__all__ = ["Canvas", "RenderedWorld", "load_mujoco", "rendering_error", "simplify_rendering"]

SYSTEM_PACKAGES = "libegl1 libgl1 libopengl0 libgl1-mesa-dri"


def load_mujoco(purpose: str) -> Any:
    """The mujoco module; raises InputError with installation instructions if it cannot be used."""
    try:
        return require("mujoco", "sim", purpose)
    except (AttributeError, OSError, RuntimeError) as error:  # importing mujoco loads the backend set by MUJOCO_GL
        raise rendering_error(error) from error


def rendering_error(error: Exception) -> InputError:
    try:
        reason = f"{type(error).__name__}: {error}"
    except Exception:  # some errors of PyOpenGL cannot be converted to text
        reason = type(error).__name__
    return InputError(
        f"MuJoCo cannot render off-screen here ({reason}). On Debian or Ubuntu run: apt-get install {SYSTEM_PACKAGES}. "
        "Unset MUJOCO_GL, or set it to egl. Check that the Python packages are installed: pip install 'jepatlas[sim]'"
    )


def simplify_rendering(spec: Any, size: int, slices: int) -> None:
    """Images of `size` pixels, one sample per pixel, and round bodies of `slices` facets around their axis."""
    view, quality = spec.visual.global_, spec.visual.quality
    view.offwidth = view.offheight = size
    quality.offsamples = 0
    quality.numslices, quality.numstacks, quality.numquads = slices, slices // 2, 1


class Canvas:
    """A square render target for scenes of a model. It belongs to one process and thread; `close` releases it."""

    def __init__(self, mujoco: Any, model: Any, size: int) -> None:
        self.mujoco, self.size = mujoco, size
        self.area = mujoco.MjrRect(0, 0, size, size)
        try:
            self.context: Any = _context_class(mujoco)(size, size)
            self.context.make_current()
            self.target = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50.value)
        except Exception as error:  # OpenGL bindings raise almost any type, even AttributeError
            raise rendering_error(error) from error
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self.target)
        # MuJoCo terminates EGL at exit. Handlers registered later run earlier, so the context is freed first.
        atexit.register(self.close)

    def scene(self, model: Any, max_geoms: int) -> Any:
        """An empty scene for at most `max_geoms` bodies."""
        scene, flags = self.mujoco.MjvScene(model, maxgeom=max_geoms), self.mujoco.mjtRndFlag
        for flag in (flags.mjRND_SHADOW, flags.mjRND_REFLECTION, flags.mjRND_SKYBOX):
            scene.flags[flag] = False
        return scene

    def make_current(self) -> None:
        """Call before drawing: another canvas may have been used in between."""
        self.context.make_current()

    def draw(self, scene: Any, row: np.ndarray) -> None:
        """Render into `row`, (size, size, 3) bytes; OpenGL stores lines from bottom to top."""
        self.mujoco.mjr_render(self.area, scene, self.target)
        self.mujoco.mjr_readPixels(row, None, self.area, self.target)

    def close(self) -> None:
        atexit.unregister(self.close)
        if self.context is not None:
            self.context.make_current()  # resources can only be freed while their context is current
            self.target.free()
            self.context.free()
            self.context = None


def _context_class(mujoco: Any) -> Any:
    """EGL, which needs no display, unless the user chose a backend with MUJOCO_GL."""
    if sys.platform == "linux" and not os.environ.get("MUJOCO_GL"):
        from mujoco.egl import GLContext  # noqa: PLC0415  (loads OpenGL)

        return GLContext
    return mujoco.GLContext


class Renderer(Protocol):
    def close(self) -> None: ...


R = TypeVar("R", bound=Renderer)


class RenderedWorld(ABC, Generic[R]):
    """Lifetime of a renderer: opened for the first image, closed by `close` or `with`, never pickled."""

    @abstractmethod
    def open_renderer(self) -> R: ...

    @cached_property
    def _renderer(self) -> R:
        renderer = self.open_renderer()
        weakref.finalize(self, renderer.close).atexit = False  # the canvas handles the exit itself
        return renderer

    def close(self) -> None:
        """Release the OpenGL context; the next image opens a new one."""
        renderer = vars(self).pop("_renderer", None)
        if renderer is not None:
            renderer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Without the renderer, which another process cannot use."""
        return {name: value for name, value in vars(self).items() if name != "_renderer"}
