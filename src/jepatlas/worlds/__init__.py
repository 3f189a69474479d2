"""Worlds with known states: latent laws observed through mixings, and worlds with actions.

Laws, mixings and worlds are frozen dataclasses, which recipe files describe directly. Equal objects have equal random
weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.worlds.action_world import ActionWorld
    from jepatlas.worlds.cameras import Camera
    from jepatlas.worlds.coupling_mixing import Coupling
    from jepatlas.worlds.current_world import CurrentWorld
    from jepatlas.worlds.currents import AnyCurrent, ConstantCurrent, JetCurrent, ShearCurrent, VortexCurrent
    from jepatlas.worlds.environment import ActionEnv
    from jepatlas.worlds.flat import FlatWorld
    from jepatlas.worlds.generalised_normal import AdditiveGeneralisedNormal, CopulaGeneralisedNormal
    from jepatlas.worlds.grids import OneWayGrid
    from jepatlas.worlds.gym_tables import GymTable
    from jepatlas.worlds.invertible_mlp import InvertibleMLP
    from jepatlas.worlds.langevin import LangevinGeneralisedNormal
    from jepatlas.worlds.latent_world import AnyLaw, AnyMixing, LatentWorld
    from jepatlas.worlds.lift import Lift
    from jepatlas.worlds.linear_quadratic import LinearQuadratic
    from jepatlas.worlds.maze import Maze
    from jepatlas.worlds.objects import RenderedObjects
    from jepatlas.worlds.ornstein_uhlenbeck import OrnsteinUhlenbeck
    from jepatlas.worlds.planar_mixings import ParabolicShear, SinusoidalShear, Spiral
    from jepatlas.worlds.reacher import OrnsteinUhlenbeckMotion, Reacher, SACMotion, ScriptedMotion
    from jepatlas.worlds.rooms import Rooms
    from jepatlas.worlds.walks import BoundedWalk, UniformWalk
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "ActionEnv",
    "ActionWorld",
    "AdditiveGeneralisedNormal",
    "AnyCurrent",
    "AnyLaw",
    "AnyMixing",
    "BoundedWalk",
    "Camera",
    "ConstantCurrent",
    "CopulaGeneralisedNormal",
    "Coupling",
    "CurrentWorld",
    "FlatWorld",
    "GymTable",
    "InvertibleMLP",
    "JetCurrent",
    "LangevinGeneralisedNormal",
    "LatentWorld",
    "Lift",
    "LinearQuadratic",
    "Maze",
    "OneWayGrid",
    "OrnsteinUhlenbeck",
    "OrnsteinUhlenbeckMotion",
    "ParabolicShear",
    "Reacher",
    "RenderedObjects",
    "Rooms",
    "SACMotion",
    "ScriptedMotion",
    "ShearCurrent",
    "SinusoidalShear",
    "Spiral",
    "UniformWalk",
    "VortexCurrent",
]
