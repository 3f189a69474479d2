"""dm_control's reacher in MuJoCo, and a clear word where one of the two is missing."""

from __future__ import annotations

from importlib import resources
from typing import Any

from jepatlas.core.errors import require
from jepatlas.worlds import mujoco_canvas

__all__ = ["load_mujoco", "reacher_spec"]

NEEDS = "The world 'reacher'"


def load_mujoco() -> Any:
    """The module, or an `InputError` that names what to install."""
    require("dm_control", "sim", NEEDS)
    return mujoco_canvas.load_mujoco(NEEDS)


def reacher_spec() -> Any:
    """The suite's own model, without its target: a goal is a state here, and is not in the picture.

    The file is read where it lies: importing dm_control's suite would load every domain of it, and OpenGL.
    """
    mujoco = load_mujoco()
    with resources.as_file(resources.files("dm_control") / "suite") as folder:
        spec = mujoco.MjSpec.from_file(str(folder / "reacher.xml"))
    spec.delete(spec.geom("target"))
    return spec
