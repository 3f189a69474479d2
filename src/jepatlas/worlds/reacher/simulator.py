"""dm_control's reacher in MuJoCo, and a clear word where one of the two is missing."""

from __future__ import annotations

from importlib import resources
from typing import Any

from jepatlas.base.errors import InputError, require

__all__ = ["load_mujoco", "reacher_spec", "rendering_error"]

NEEDS = "The world 'reacher'"
SYSTEM_PACKAGES = "libegl1 libgl1 libopengl0 libgl1-mesa-dri"


def load_mujoco() -> Any:
    """The module, or an `InputError` that names what to install."""
    require("dm_control", "sim", NEEDS)
    try:
        return require("mujoco", "sim", NEEDS)
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


def reacher_spec() -> Any:
    """The suite's own model, without its target: a goal is a state here, and is not in the picture.

    The file is read where it lies: importing dm_control's suite would load every domain of it, and OpenGL.
    """
    mujoco = load_mujoco()
    with resources.as_file(resources.files("dm_control") / "suite") as folder:
        spec = mujoco.MjSpec.from_file(str(folder / "reacher.xml"))
    spec.delete(spec.geom("target"))
    return spec
