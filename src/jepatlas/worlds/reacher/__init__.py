"""dm_control's two-link arm: seen in pixels, moved by actions or along trajectories of known law."""

from jepatlas.worlds.reacher.kinematics import fingertip, joint_angles
from jepatlas.worlds.reacher.motion import Motion
from jepatlas.worlds.reacher.ornstein_uhlenbeck import OrnsteinUhlenbeckMotion
from jepatlas.worlds.reacher.sac import SACMotion
from jepatlas.worlds.reacher.scripted import ScriptedMotion
from jepatlas.worlds.reacher.world import Reacher

__all__ = [
    "Motion",
    "OrnsteinUhlenbeckMotion",
    "Reacher",
    "SACMotion",
    "ScriptedMotion",
    "fingertip",
    "joint_angles",
]
