"""Where states come from and how they are observed: latent laws, mixings, and the worlds made of both.

The truth z is known in each of them. Laws and mixings are frozen dataclasses: what a recipe file
says is the object itself, and equal objects have equal weights.
"""

from jepatlas.worlds.coupling import Coupling
from jepatlas.worlds.generalised_normal import AdditiveGeneralisedNormal, CopulaGeneralisedNormal
from jepatlas.worlds.invertible_mlp import InvertibleMLP
from jepatlas.worlds.lift import Lift
from jepatlas.worlds.ornstein_uhlenbeck import OrnsteinUhlenbeck
from jepatlas.worlds.shear import ParabolicShear, SinusoidalShear
from jepatlas.worlds.spiral import Spiral
from jepatlas.worlds.walks import BoundedWalk, UniformWalk
from jepatlas.worlds.world import AnyLaw, AnyMixing, LatentWorld

__all__ = [
    "AdditiveGeneralisedNormal",
    "AnyLaw",
    "AnyMixing",
    "BoundedWalk",
    "CopulaGeneralisedNormal",
    "Coupling",
    "InvertibleMLP",
    "LatentWorld",
    "Lift",
    "OrnsteinUhlenbeck",
    "ParabolicShear",
    "SinusoidalShear",
    "Spiral",
    "UniformWalk",
]
