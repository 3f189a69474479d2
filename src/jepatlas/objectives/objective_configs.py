"""Configurations of the objectives on pairs and windows. Importing this module does not import torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro

from jepatlas.core.config import check_literals
from jepatlas.core.errors import (
    InputError,
    check_argument,
    check_count,
    check_not_negative,
    check_positive,
    check_share,
)

if TYPE_CHECKING:
    from torch import Tensor

    from jepatlas.objectives.covariance_whitening import CovarianceWhitening
    from jepatlas.objectives.exact_whitening import ExactWhitening
    from jepatlas.objectives.infonce import AnInfoNCE, InfoNCE
    from jepatlas.objectives.lejepa import LeJEPA
    from jepatlas.objectives.pair_objective import Parts
    from jepatlas.objectives.vicreg import VICReg
    from jepatlas.objectives.world_model import WorldModel, WorldModelParts

__all__ = [
    "AnyShaping",
    "Contrastive",
    "CovarianceConfig",
    "Design",
    "Gradient",
    "InfoNCEConfig",
    "LeJEPAConfig",
    "Regressive",
    "SIGRegConfig",
    "SIGRegShaping",
    "VCRegShaping",
    "VICRegConfig",
    "WhiteningConfig",
    "WorldModelConfig",
]

Design = Literal["random", "low-discrepancy"]
Gradient = Literal["joint", "separate"]
"""Whether the gradient of a term reaches the encoder."""


@dataclass(frozen=True)
class SIGRegConfig:
    """Settings in which published implementations of SIGReg differ."""

    slices: int = 32
    """Number of projection directions."""
    design: Design = "low-discrepancy"
    """Independent directions, or evenly spread ones, of which fewer are needed. Above 16 dimensions the directions are
    always independent."""
    fresh: bool = True
    """Draw new slices at every step, or use those of step 0 throughout."""
    knots: int = 17
    """Number of frequencies of the characteristic function, from 0 to `limit`."""
    limit: float = 3.0
    """Largest frequency."""
    views: Literal["each", "pooled"] = "each"
    """Average the statistic over views, or compute it for the pooled views."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_count("slices", self.slices)
        check_count("knots", self.knots, minimum=2)
        check_positive("limit", self.limit)


@dataclass(frozen=True)
class SIGRegShaping:
    """SIGReg at each time of the window."""

    kind: ClassVar[str] = "sigreg"

    weight: float = 0.05
    """Weight relative to the prediction error."""
    sigreg: SIGRegConfig = field(default_factory=SIGRegConfig)

    def __post_init__(self) -> None:
        check_not_negative("weight", self.weight)
        views = self.sigreg.views
        check_argument("views", views, views == "each", "'each', because the times of a window are not independent")

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        from jepatlas.objectives.shaping import sigreg_shaping

        return sigreg_shaping(h_btd, self.sigreg, step, seed)


@dataclass(frozen=True)
class VCRegShaping:
    """Variance hinge and decorrelation, as in VICReg."""

    kind: ClassVar[str] = "vcreg"

    weight: float = 1.0
    """Weight of the hinge on standard deviations."""
    covariance: float = 0.04
    """Weight of the squared covariances relative to the hinge."""
    target: float = 1.0
    """Standard deviation below which the hinge is active."""

    def __post_init__(self) -> None:
        for name in ("weight", "covariance", "target"):
            check_not_negative(name, getattr(self, name))

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        from jepatlas.objectives.shaping import vcreg_shaping

        return vcreg_shaping(h_btd, self.target, self.covariance)


@dataclass(frozen=True)
class Contrastive:
    """InfoNCE between the first two times of the window."""

    kind: ClassVar[str] = "contrastive"

    weight: float = 1.0
    """Weight relative to the prediction error."""
    width: float = 1.0
    """Width of the Gaussian kernel."""

    def __post_init__(self) -> None:
        check_not_negative("weight", self.weight)
        check_not_negative("width", self.width)

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        from jepatlas.objectives.shaping import contrastive_shaping

        return contrastive_shaping(h_btd, self.width)


@dataclass(frozen=True)
class Regressive:
    """Distances between latents of a window equal the elapsed time."""

    kind: ClassVar[str] = "regressive"

    weight: float = 1.0
    """Weight relative to the prediction error."""

    def __post_init__(self) -> None:
        check_not_negative("weight", self.weight)

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        from jepatlas.objectives.shaping import regressive_shaping

        return regressive_shaping(h_btd)


@dataclass(frozen=True)
class CovarianceConfig:
    kind: ClassVar[str] = "covariance"

    weight: float = 0.5
    """Weight λ of the covariance term; the invariance has weight 1 − λ."""

    def __post_init__(self) -> None:
        check_share("weight", self.weight)

    def build(self, parts: Parts) -> CovarianceWhitening:
        from jepatlas.objectives.covariance_whitening import CovarianceWhitening

        return CovarianceWhitening(parts.encoder, self, parts.projector)


@dataclass(frozen=True)
class InfoNCEConfig:
    kind: ClassVar[str] = "infonce"

    kernel: Literal["gaussian", "cosine", "anisotropic"] = "gaussian"
    """Similarity of two latents. Cosine ignores their length; anisotropic has a width per dimension."""
    width: float = 1.0
    """Kernel width σ, or temperature of the cosine; the initial value if adaptive."""
    adaptive: bool = False
    """Learn σ."""
    dose: float | None = None
    """Dose of anisotropy, from 0 (one width for all dimensions) to 1 (a width per dimension); default 1."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_positive("width", self.width)
        if self.dose is not None:
            if self.kernel != "anisotropic":
                raise InputError(f"dose applies to the anisotropic kernel only, but the kernel is '{self.kernel}'.")
            check_share("dose", self.dose)

    def build(self, parts: Parts) -> InfoNCE | AnInfoNCE:
        from jepatlas.objectives.infonce import AnInfoNCE, InfoNCE

        if self.kernel != "anisotropic":
            return InfoNCE(parts.encoder, self, parts.projector)
        if parts.projector is not None:
            raise InputError("The anisotropic kernel acts on the latents. Remove the projector.")
        return AnInfoNCE(parts.encoder, parts.dim, self)


@dataclass(frozen=True)
class LeJEPAConfig:
    kind: ClassVar[str] = "lejepa"

    weight: Annotated[float, tyro.conf.arg(aliases=["--objective.lambda"])] = 0.01
    """Weight λ of SIGReg: 0 is invariance only, 1 (convex form) is SIGReg only."""
    form: Literal["convex", "additive"] = "convex"
    """(1 − λ)·invariance + λ·SIGReg, or invariance + λ·SIGReg."""
    sigreg: SIGRegConfig = field(default_factory=SIGRegConfig)

    def __post_init__(self) -> None:
        check_literals(self)
        if self.form == "convex":
            check_argument("weight", self.weight, 0 <= self.weight <= 1, "in [0, 1] in the convex form")
        else:
            check_not_negative("weight", self.weight)

    def build(self, parts: Parts) -> LeJEPA:
        from jepatlas.objectives.lejepa import LeJEPA

        return LeJEPA(parts.encoder, self, parts.projector, parts.seed)


@dataclass(frozen=True)
class VICRegConfig:
    kind: ClassVar[str] = "vicreg"

    invariance: float = 25.0
    """Weight λ of the mean squared difference of the views."""
    variance: float = 25.0
    """Weight μ of the hinge on standard deviations."""
    covariance: float = 1.0
    """Weight ν of the squared off-diagonal covariances."""
    target: float = 1.0
    """Standard deviation γ below which the hinge is active."""
    epsilon: float = 1e-4
    """ε, added to the variance before the root."""

    def __post_init__(self) -> None:
        for name in ("invariance", "variance", "covariance", "target", "epsilon"):
            check_not_negative(name, getattr(self, name))

    def build(self, parts: Parts) -> VICReg:
        from jepatlas.objectives.vicreg import VICReg

        return VICReg(parts.encoder, self, parts.projector)


@dataclass(frozen=True)
class WhiteningConfig:
    kind: ClassVar[str] = "whitening"

    momentum: float = 0.99
    """Momentum of the running mean and covariance."""
    epsilon: float = 1e-6
    """Added to the diagonal of the covariance before inversion."""

    def __post_init__(self) -> None:
        check_argument("momentum", self.momentum, 0 <= self.momentum < 1, "in [0, 1)")
        check_not_negative("epsilon", self.epsilon)

    def build(self, parts: Parts) -> ExactWhitening:
        from jepatlas.objectives.exact_whitening import ExactWhitening

        if parts.projector is not None:
            raise InputError("Exact whitening acts on the latents. Remove the projector.")
        return ExactWhitening(parts.encoder, parts.dim, self)


@dataclass(frozen=True)
class WorldModelConfig:
    kind: ClassVar[str] = "world-model"

    shaping: AnyShaping | None = field(default_factory=SIGRegShaping)
    """Term that prevents collapse of the latents; none if an average or an energy does."""
    prediction: Gradient = "joint"
    """Whether the prediction error trains the encoder and the dynamics, or only the dynamics."""
    average: float | None = None
    """Decay of a moving average of the encoder that provides the targets; by default the encoder itself does."""
    inverse: float = 0.0
    """Weight of inverse dynamics, which predict the action between two latents."""
    energy: Gradient = "joint"
    """Whether the energy, if one is learned, trains the encoder."""
    energy_weight: float = 1.0
    """Weight of the loss of the energy."""

    def __post_init__(self) -> None:
        check_literals(self)
        if self.average is not None:
            check_argument("average", self.average, 0 <= self.average < 1, "in [0, 1)")
        check_not_negative("inverse", self.inverse)
        check_not_negative("energy_weight", self.energy_weight)

    def build(self, parts: WorldModelParts) -> WorldModel:
        from jepatlas.objectives.world_model import WorldModel

        return WorldModel(parts, self)


AnyShaping = SIGRegShaping | VCRegShaping | Contrastive | Regressive
