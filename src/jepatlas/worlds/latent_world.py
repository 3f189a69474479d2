"""Latent worlds: states z that follow a law, observed through a mixing as x = g(z)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from jepatlas.worlds.coupling_mixing import Coupling
from jepatlas.worlds.generalised_normal import AdditiveGeneralisedNormal, CopulaGeneralisedNormal
from jepatlas.worlds.invertible_mlp import InvertibleMLP
from jepatlas.worlds.langevin import LangevinGeneralisedNormal
from jepatlas.worlds.lift import Lift
from jepatlas.worlds.ornstein_uhlenbeck import OrnsteinUhlenbeck
from jepatlas.worlds.planar_mixings import ParabolicShear, SinusoidalShear, Spiral
from jepatlas.worlds.walks import BoundedWalk, UniformWalk

if TYPE_CHECKING:
    from torch import Generator, Tensor

__all__ = ["AnyLaw", "AnyMixing", "LatentWorld"]

# The choices of recipe files and the command line. Register a new law or mixing here.
AnyLaw = (
    OrnsteinUhlenbeck
    | AdditiveGeneralisedNormal
    | CopulaGeneralisedNormal
    | LangevinGeneralisedNormal
    | UniformWalk
    | BoundedWalk
)
AnyMixing = Spiral | SinusoidalShear | ParabolicShear | Coupling | InvertibleMLP | Lift


@dataclass(frozen=True)
class LatentWorld:
    """States z of a law, observed as x = g(z).

    >>> LatentWorld(OrnsteinUhlenbeck(dim=2), Lift(observed=5)).observed_dim
    5
    """

    kind: ClassVar[str] = "latent"

    law: AnyLaw = field(default_factory=OrnsteinUhlenbeck)
    """Distribution and transitions of the states."""
    mixing: AnyMixing = field(default_factory=Spiral)
    """Map from states to observations."""

    def __post_init__(self) -> None:
        self.mixing.observed_dim(self.law.dim)

    @property
    def dim(self) -> int:
        return self.law.dim

    @property
    def observed_dim(self) -> int:
        return self.mixing.observed_dim(self.law.dim)

    @property
    def gaussian(self) -> bool:
        return self.law.gaussian

    @property
    def correlation(self) -> tuple[float, ...] | None:
        return self.law.correlation

    def correlation_after(self, steps: int) -> tuple[float, ...] | None:
        """Corr(z_i(0), z_i(steps)) for each dimension, if it has a closed form."""
        return self.law.correlation_after(steps)

    def states(self, count: int, generator: Generator) -> Tensor:
        return self.law.states(count, generator)

    def transition(self, z: Tensor, generator: Generator) -> Tensor:
        return self.law.transition(z, generator)

    def observe(self, z: Tensor) -> Tensor:
        return self.mixing(z)
