"""Settings of the objectives on pairs and windows. Importing this module does not import torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from jepatlas.objectives.covariance import CovarianceWhitening
    from jepatlas.objectives.infonce import AnInfoNCE, InfoNCE
    from jepatlas.objectives.lejepa import LeJEPA
    from jepatlas.objectives.pairwise import Parts
    from jepatlas.objectives.vicreg import VICReg
    from jepatlas.objectives.whitening import ExactWhitening
    from jepatlas.objectives.world_model import WorldModel, WorldModelParts

__all__ = [
    "AnyShaping",
    "Contrastive",
    "CovarianceConfig",
    "Design",
    "InfoNCEConfig",
    "LeJEPAConfig",
    "Reach",
    "Regressive",
    "SIGRegConfig",
    "SIGRegShaping",
    "VCRegShaping",
    "VICRegConfig",
    "WhiteningConfig",
    "WorldModelConfig",
]

Design = Literal["random", "low-discrepancy"]


Reach = Literal["joint", "separate"]


def _check(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise InputError(f"{name} must be finite and not negative, but {value} was given.")


@dataclass(frozen=True)
class SIGRegConfig:
    """The choices on which implementations differ; each is named here."""

    slices: int = 32
    """Directions that the latents are projected on."""
    design: Design = "low-discrepancy"
    """Independent directions, or evenly spread ones: fewer are needed then, but only up to 16 dimensions. Above that
    the directions are independent in either case."""
    fresh: bool = True
    """Draw new slices at every step, or keep those of step 0."""
    knots: int = 17
    """Points of the characteristic function, from 0 to `limit`."""
    limit: float = 3.0
    """Largest frequency that is compared."""
    views: Literal["each", "pooled"] = "each"
    """Hold each view against the Gaussian and average, or both views pooled."""

    def __post_init__(self) -> None:
        check_literals(self)
        if not (self.slices >= 1 and self.knots >= 2 and 0 < self.limit < math.inf):
            raise InputError(
                "SIGReg needs slices >= 1, knots >= 2 and a finite limit > 0, "
                f"but {self.slices}, {self.knots} and {self.limit} were given."
            )


@dataclass(frozen=True)
class SIGRegShaping:
    """SIGReg at each time of the window."""

    kind: ClassVar[str] = "sigreg"

    weight: float = 0.05
    """Of this term beside the prediction error."""
    sigreg: SIGRegConfig = field(default_factory=SIGRegConfig)

    def __post_init__(self) -> None:
        _check("weight", self.weight)
        if self.sigreg.views != "each":
            raise InputError("The times of a window are held against the Gaussian one by one: leave views at 'each'.")

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        from jepatlas.objectives.shaping import sigreg_shaping

        return sigreg_shaping(h_btd, self.sigreg, step, seed)


@dataclass(frozen=True)
class VCRegShaping:
    """Variance hinge and decorrelation, as in VICReg."""

    kind: ClassVar[str] = "vcreg"

    weight: float = 1.0
    """Of the hinge on standard deviations."""
    covariance: float = 0.04
    """Of the squared covariances, beside the hinge."""
    target: float = 1.0
    """Standard deviation below which the hinge acts."""

    def __post_init__(self) -> None:
        for name in ("weight", "covariance", "target"):
            _check(name, getattr(self, name))

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        from jepatlas.objectives.shaping import vcreg_shaping

        return vcreg_shaping(h_btd, self.target, self.covariance)


@dataclass(frozen=True)
class Contrastive:
    """InfoNCE between the first two times of the window."""

    kind: ClassVar[str] = "contrastive"

    weight: float = 1.0
    """Of this term beside the prediction error."""
    width: float = 1.0
    """Of the Gaussian kernel that compares two latents."""

    def __post_init__(self) -> None:
        _check("weight", self.weight)
        _check("width", self.width)

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        from jepatlas.objectives.shaping import contrastive_shaping

        return contrastive_shaping(h_btd, self.width)


@dataclass(frozen=True)
class Regressive:
    """Distances between latents of a window should equal the time between them."""

    kind: ClassVar[str] = "regressive"

    weight: float = 1.0
    """Of this term beside the prediction error."""

    def __post_init__(self) -> None:
        _check("weight", self.weight)

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        from jepatlas.objectives.shaping import regressive_shaping

        return regressive_shaping(h_btd)


@dataclass(frozen=True)
class CovarianceConfig:
    kind: ClassVar[str] = "covariance"

    weight: float = 0.5
    """λ, the weight of the covariance term; 1 − λ goes to the invariance."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise InputError(f"λ must be in [0, 1], but {self.weight} was given.")

    def build(self, parts: Parts) -> CovarianceWhitening:
        from jepatlas.objectives.covariance import CovarianceWhitening

        return CovarianceWhitening(parts.encoder, self, parts.projector)


@dataclass(frozen=True)
class InfoNCEConfig:
    kind: ClassVar[str] = "infonce"

    kernel: Literal["gaussian", "cosine", "anisotropic"] = "gaussian"
    """How two latents are compared. Cosine leaves their length free, anisotropic gives each dimension a width."""
    width: float = 1.0
    """σ: the kernel's width, or the temperature of the cosine; its first value where it is learned."""
    adaptive: bool = False
    """Learn σ with the rest."""
    dose: float | None = None
    """Of the anisotropic kernel: from 0, one width for all dimensions, to 1, each its own; 1 where not given."""

    def __post_init__(self) -> None:
        check_literals(self)
        if not 0 < self.width < math.inf:
            raise InputError(f"The kernel width must be positive and finite, but {self.width} was given.")
        if self.dose is not None and self.kernel != "anisotropic":
            raise InputError(f"A dose belongs to the anisotropic kernel; the {self.kernel} one has a single width.")
        if self.dose is not None and not 0 <= self.dose <= 1:
            raise InputError(f"The dose of anisotropy lies between 0 and 1, but {self.dose} was given.")

    def build(self, parts: Parts) -> InfoNCE | AnInfoNCE:
        from jepatlas.objectives.infonce import AnInfoNCE, InfoNCE

        if self.kernel != "anisotropic":
            return InfoNCE(parts.encoder, self, parts.projector)
        if parts.projector is not None:
            raise InputError("The anisotropic kernel gives widths to the latents themselves: leave the projector out.")
        return AnInfoNCE(parts.encoder, parts.dim, self)


@dataclass(frozen=True)
class LeJEPAConfig:
    kind: ClassVar[str] = "lejepa"

    weight: float = 0.01
    """λ, the weight of SIGReg. 0 is alignment alone, 1 (convex) is SIGReg alone."""
    form: Literal["convex", "additive"] = "convex"
    """(1 − λ)·invariance + λ·SIGReg, or invariance + λ·SIGReg."""
    sigreg: SIGRegConfig = field(default_factory=SIGRegConfig)

    def __post_init__(self) -> None:
        check_literals(self)
        if not 0 <= self.weight < math.inf or (self.form == "convex" and self.weight > 1):
            allowed = "in [0, 1]" if self.form == "convex" else "finite and not negative"
            raise InputError(f"λ must be {allowed} in the {self.form} form, but {self.weight} was given.")

    def build(self, parts: Parts) -> LeJEPA:
        from jepatlas.objectives.lejepa import LeJEPA

        return LeJEPA(parts.encoder, self, parts.projector, parts.seed)


@dataclass(frozen=True)
class VICRegConfig:
    kind: ClassVar[str] = "vicreg"

    invariance: float = 25.0
    """λ, the weight of the mean squared difference of the views."""
    variance: float = 25.0
    """μ, the weight of the hinge on standard deviations."""
    covariance: float = 1.0
    """ν, the weight of the squared off-diagonal covariances."""
    target: float = 1.0
    """γ, the standard deviation below which the hinge acts."""
    epsilon: float = 1e-4
    """ε, under the root of the variance."""

    def __post_init__(self) -> None:
        for name in ("invariance", "variance", "covariance", "target", "epsilon"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise InputError(f"VICReg's {name} must be finite and not negative, but {value} was given.")

    def build(self, parts: Parts) -> VICReg:
        from jepatlas.objectives.vicreg import VICReg

        return VICReg(parts.encoder, self, parts.projector)


@dataclass(frozen=True)
class WhiteningConfig:
    kind: ClassVar[str] = "whitening"

    momentum: float = 0.99
    """How slowly the running mean and covariance follow those of the batches."""
    epsilon: float = 1e-6
    """Added to the diagonal of the covariance before it is inverted."""

    def __post_init__(self) -> None:
        if not (0 <= self.momentum < 1 and 0 <= self.epsilon < math.inf):
            raise InputError(
                "Whitening needs a momentum in [0, 1) and a finite epsilon >= 0, "
                f"but {self.momentum} and {self.epsilon} were given."
            )

    def build(self, parts: Parts) -> ExactWhitening:
        from jepatlas.objectives.whitening import ExactWhitening

        if parts.projector is not None:
            raise InputError("Exact whitening acts on the latents themselves: leave the projector out.")
        return ExactWhitening(parts.encoder, parts.dim, self)


@dataclass(frozen=True)
class WorldModelConfig:
    kind: ClassVar[str] = "world-model"

    shaping: AnyShaping | None = field(default_factory=SIGRegShaping)
    """What gives the latents their shape; none where an average or an energy is to."""
    prediction: Reach = "joint"
    """Whether the prediction error shapes the encoder, or only trains the dynamics."""
    average: float | None = None
    """Decay of a moving average of the encoder that is predicted; the encoder itself where not given."""
    inverse: float = 0.0
    """Weight of inverse dynamics: the action between two latents is to be read off them."""
    energy: Reach = "joint"
    """Whether an energy, where one is learned, shapes the encoder."""
    energy_weight: float = 1.0
    """Weight of the energy's own loss."""

    def __post_init__(self) -> None:
        check_literals(self)
        if self.average is not None and not 0 <= self.average < 1:
            raise InputError(f"average is a decay, at least 0 and below 1, but {self.average} was given.")
        for name in ("inverse", "energy_weight"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise InputError(f"{name} must be finite and not negative, but {value} was given.")

    def build(self, parts: WorldModelParts) -> WorldModel:
        from jepatlas.objectives.world_model import WorldModel

        return WorldModel(parts, self)


AnyShaping = SIGRegShaping | VCRegShaping | Contrastive | Regressive
