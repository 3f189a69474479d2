"""Where states come from and how they are observed: latent laws, mixings, and the worlds made of both.

The truth z is known in each of them. Laws and mixings are frozen dataclasses: what a recipe file
says is the object itself, and equal objects have equal weights.
"""

from jepatlas.worlds.coupling import Coupling
from jepatlas.worlds.current_fields import AnyCurrent, ConstantCurrent, JetCurrent, ShearCurrent, VortexCurrent
from jepatlas.worlds.currents import CurrentWorld
from jepatlas.worlds.generalised_normal import AdditiveGeneralisedNormal, CopulaGeneralisedNormal
from jepatlas.worlds.grids import OneWayGrid
from jepatlas.worlds.gym_tables import GymTable
from jepatlas.worlds.invertible_mlp import InvertibleMLP
from jepatlas.worlds.lift import Lift
from jepatlas.worlds.ornstein_uhlenbeck import OrnsteinUhlenbeck
from jepatlas.worlds.shear import ParabolicShear, SinusoidalShear
from jepatlas.worlds.spiral import Spiral
from jepatlas.worlds.walks import BoundedWalk, UniformWalk
from jepatlas.worlds.world import AnyLaw, AnyMixing, LatentWorld

__all__ = [
    "AdditiveGeneralisedNormal",
    "AnyCurrent",
    "AnyLaw",
    "AnyMixing",
    "BoundedWalk",
    "ConstantCurrent",
    "CopulaGeneralisedNormal",
    "Coupling",
    "CurrentWorld",
    "GymTable",
    "InvertibleMLP",
    "JetCurrent",
    "LatentWorld",
    "Lift",
    "OneWayGrid",
    "OrnsteinUhlenbeck",
    "ParabolicShear",
    "ShearCurrent",
    "SinusoidalShear",
    "Spiral",
    "UniformWalk",
    "VortexCurrent",
]
