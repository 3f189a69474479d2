"""dm_control's two-link arm: observed in pixels, moved by actions or along trajectories of a known law."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.worlds.reacher.arm import Reacher
    from jepatlas.worlds.reacher.kinematics import fingertip, joint_angles
    from jepatlas.worlds.reacher.motions import Motion, OrnsteinUhlenbeckMotion, ScriptedMotion
    from jepatlas.worlds.reacher.sac import SACMotion
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "Motion",
    "OrnsteinUhlenbeckMotion",
    "Reacher",
    "SACMotion",
    "ScriptedMotion",
    "fingertip",
    "joint_angles",
]
