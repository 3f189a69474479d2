"""Configurations of objectives that compare embeddings of crops: LeJEPA, SimCLR, VICReg, BYOL and others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.errors import check_argument, check_count, check_not_negative, check_positive
from jepatlas.core.records import CropKind
from jepatlas.nn.network_configs import check_momentum, check_widths
from jepatlas.objectives.objective_configs import LeJEPAConfig, SIGRegConfig, VICRegConfig

if TYPE_CHECKING:
    from jepatlas.objectives.vision.barlow_twins import BarlowTwins
    from jepatlas.objectives.vision.byol import BYOL
    from jepatlas.objectives.vision.crop_lejepa import CropLeJEPA
    from jepatlas.objectives.vision.crop_objective import VisionParts
    from jepatlas.objectives.vision.crop_vicreg import CropVICReg
    from jepatlas.objectives.vision.moco_v3 import MoCoV3
    from jepatlas.objectives.vision.simclr import SimCLR

__all__ = ["BYOLConfig", "BarlowTwinsConfig", "CropLeJEPAConfig", "CropVICRegConfig", "MoCoV3Config", "SimCLRConfig"]


@dataclass(frozen=True)
class CropLeJEPAConfig:
    kind: ClassVar[str] = "lejepa"
    crops: ClassVar[CropKind] = "multi"

    loss: LeJEPAConfig = field(default_factory=lambda: LeJEPAConfig(0.05, sigreg=SIGRegConfig(slices=256)))
    """Weight λ, form of the sum, and settings of SIGReg. Published for images: 0.05 and 1,024 slices."""
    projector: tuple[int, ...] = (512, 512, 64)
    """Units of each layer; empty to regularise the latents themselves. Published: 2,048, 2,048, 128."""

    def __post_init__(self) -> None:
        check_widths("projector", self.projector, minimum=0)
        views = self.loss.sigreg.views
        check_argument("views", views, views == "each", "'each', because crops of one image are not independent")

    def build(self, parts: VisionParts) -> CropLeJEPA:
        from jepatlas.objectives.vision.crop_lejepa import CropLeJEPA

        return CropLeJEPA(parts, self)


@dataclass(frozen=True)
class SimCLRConfig:
    kind: ClassVar[str] = "simclr"
    crops: ClassVar[CropKind] = "two"

    temperature: float = 0.1
    """Temperature τ. Published: 0.1 for large batches and long runs, 0.5 for small images."""
    projector: tuple[int, ...] = (512, 128)
    """Units of each layer; empty to compare the latents themselves. Published: 2,048, 128."""

    def __post_init__(self) -> None:
        check_positive("temperature", self.temperature)
        check_widths("projector", self.projector, minimum=0)

    def build(self, parts: VisionParts) -> SimCLR:
        from jepatlas.objectives.vision.simclr import SimCLR

        return SimCLR(parts, self)


@dataclass(frozen=True)
class BarlowTwinsConfig:
    kind: ClassVar[str] = "barlow-twins"
    crops: ClassVar[CropKind] = "two"

    weight: float = 0.005
    """Weight λ of the off-diagonal correlations."""
    projector: tuple[int, ...] = (512, 512, 512)
    """Units of each layer. Published: three of 8,192."""

    def __post_init__(self) -> None:
        check_widths("projector", self.projector)
        check_not_negative("weight", self.weight)

    def build(self, parts: VisionParts) -> BarlowTwins:
        from jepatlas.objectives.vision.barlow_twins import BarlowTwins

        return BarlowTwins(parts, self)


@dataclass(frozen=True)
class CropVICRegConfig:
    kind: ClassVar[str] = "vicreg"
    crops: ClassVar[CropKind] = "two"

    loss: VICRegConfig = field(default_factory=VICRegConfig)
    """Weights of the three terms, and the target standard deviation."""
    expander: tuple[int, ...] = (512, 512, 512)
    """Units of each layer. Published: three of 8,192."""

    def __post_init__(self) -> None:
        check_widths("expander", self.expander)

    def build(self, parts: VisionParts) -> CropVICReg:
        from jepatlas.objectives.vision.crop_vicreg import CropVICReg

        return CropVICReg(parts, self)


@dataclass(frozen=True)
class BYOLConfig:
    kind: ClassVar[str] = "byol"
    crops: ClassVar[CropKind] = "two"

    projector: tuple[int, ...] = (512, 128)
    """Units of each layer. Published: 4,096, 256."""
    predictor: int = 512
    """Hidden units of the predictor, whose output has the width of the projector's. Published: 4,096."""
    momentum: float = 0.996
    """Initial momentum of the target network; it rises to 1."""

    def __post_init__(self) -> None:
        check_widths("projector", self.projector)
        check_count("predictor", self.predictor)
        check_momentum("BYOL", self.momentum)

    def build(self, parts: VisionParts) -> BYOL:
        from jepatlas.objectives.vision.byol import BYOL

        return BYOL(parts, self)


@dataclass(frozen=True)
class MoCoV3Config:
    kind: ClassVar[str] = "moco-v3"
    crops: ClassVar[CropKind] = "two"

    temperature: float = 0.2
    """Temperature τ, as published for ViTs."""
    projector: tuple[int, ...] = (512, 512, 128)
    """Units of each layer. Published: 4,096, 4,096, 256."""
    predictor: int = 512
    """Hidden units of the predictor, whose output has the width of the projector's. Published: 4,096."""
    momentum: float = 0.99
    """Initial momentum of the target network; it rises to 1."""
    frozen_patches: bool = False
    """Freeze the ViT's random patch embedding; published to stabilise large ViTs at large batches."""

    def __post_init__(self) -> None:
        check_positive("temperature", self.temperature)
        check_widths("projector", self.projector)
        check_count("predictor", self.predictor)
        check_momentum("MoCo", self.momentum)

    def build(self, parts: VisionParts) -> MoCoV3:
        from jepatlas.objectives.vision.moco_v3 import MoCoV3

        return MoCoV3(parts, self)
