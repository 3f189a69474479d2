"""dm_control's two-link arm: seen in pixels, moved by actions or along trajectories of known law."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.worlds.reacher.kinematics import fingertip, joint_angles
    from jepatlas.worlds.reacher.motion import Motion
    from jepatlas.worlds.reacher.ornstein_uhlenbeck import OrnsteinUhlenbeckMotion
    from jepatlas.worlds.reacher.sac import SACMotion
    from jepatlas.worlds.reacher.scripted import ScriptedMotion
    from jepatlas.worlds.reacher.world import Reacher
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
