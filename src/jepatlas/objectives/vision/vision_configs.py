"""Settings of the objectives on images. Importing this module does not import torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError
from jepatlas.core.records import CropKind
from jepatlas.nn.network_configs import Rise, check_momentum, check_transformer
from jepatlas.objectives.objective_configs import LeJEPAConfig, SIGRegConfig, VICRegConfig
from jepatlas.objectives.vision.block_masks import AnyBlockMasks, BlockMasks
from jepatlas.objectives.vision.masks import PatchMasks

if TYPE_CHECKING:
    from jepatlas.objectives.vision.autoencoder import Autoencoder
    from jepatlas.objectives.vision.barlow_twins import BarlowTwins
    from jepatlas.objectives.vision.byol import BYOL
    from jepatlas.objectives.vision.dino import DINO
    from jepatlas.objectives.vision.dino_head import DINOHead
    from jepatlas.objectives.vision.dinov2 import DINOv2
    from jepatlas.objectives.vision.ibot import IBOT
    from jepatlas.objectives.vision.ijepa import IJEPA
    from jepatlas.objectives.vision.lejepa import CropLeJEPA
    from jepatlas.objectives.vision.mae import MAE
    from jepatlas.objectives.vision.moco_v3 import MoCoV3
    from jepatlas.objectives.vision.parts import VisionParts
    from jepatlas.objectives.vision.predictors import LinearPredictor, MLPPredictor, NarrowPredictor
    from jepatlas.objectives.vision.simclr import SimCLR
    from jepatlas.objectives.vision.swav import SwAV
    from jepatlas.objectives.vision.vicreg import CropVICReg

__all__ = [
    "AnyPredictor",
    "AnyVision",
    "AutoencoderConfig",
    "BYOLConfig",
    "BarlowTwinsConfig",
    "CropLeJEPAConfig",
    "CropVICRegConfig",
    "DINOConfig",
    "DINOHeadConfig",
    "DINOv2Config",
    "DecoderConfig",
    "IBOTConfig",
    "IJEPAConfig",
    "LinearPredictorConfig",
    "MAEConfig",
    "MLPPredictorConfig",
    "MoCoV3Config",
    "NarrowPredictorConfig",
    "SimCLRConfig",
    "SwAVConfig",
    "TemperatureConfig",
    "check_temperature",
    "check_widths",
]


def check_widths(name: str, widths: tuple[int, ...], *, fewest: int = 1) -> None:
    if len(widths) < fewest or min(widths, default=1) < 1:
        raise InputError(f"{name} needs at least {fewest} layer(s), each of at least 1 unit, but {widths} was given.")


def check_temperature(name: str, temperature: float) -> None:
    if not 0 < temperature < math.inf:
        raise InputError(f"{name} must be positive and finite, but {temperature} was given.")


@dataclass(frozen=True)
class DecoderConfig:
    width: int = 64
    """Of its tokens."""
    depth: int = 2
    """Transformer blocks."""
    heads: int = 4
    """Of the attention."""

    def __post_init__(self) -> None:
        check_transformer("A decoder", self.width, self.depth, self.heads)

    @classmethod
    def published(cls) -> Self:
        """That of the masked autoencoder."""
        return cls(512, 8, 16)


@dataclass(frozen=True)
class DINOHeadConfig:
    prototypes: int = 1024
    """K. Published: 65,536 for DINO and DINOv2, 8,192 for iBOT."""
    width: int = 256
    """Units of each of the two hidden layers. Published: 2,048."""
    bottleneck: int = 64
    """Width of z. Published: 256."""
    held: float = 0.01
    """Share of the steps in which the prototypes do not move yet: the first of a hundred epochs, as published."""

    def __post_init__(self) -> None:
        if min(self.prototypes, self.width, self.bottleneck) < 1 or not 0 <= self.held <= 1:
            raise InputError(
                f"A DINO head needs prototypes, width and bottleneck >= 1 and a share of held steps between 0 and 1, "
                f"but {self.prototypes}, {self.width}, {self.bottleneck} and {self.held} were given."
            )

    @classmethod
    def published(cls, prototypes: int = 65536) -> Self:
        return cls(prototypes, 2048, 256)

    def build(self, dim: int) -> DINOHead:
        from jepatlas.objectives.vision.dino_head import DINOHead

        return DINOHead(dim, self)


@dataclass(frozen=True)
class TemperatureConfig:
    student: float = 0.1
    """τ_s."""
    teacher: float = 0.07
    """τ_t after the warm-up."""
    first: float = 0.04
    """τ_t at the first step: sharper, until there is something to tell."""
    warmup: float = 0.3
    """Share of the steps in which τ_t rises, linearly: 30 of 100 epochs, as published."""

    def __post_init__(self) -> None:
        taus = (self.student, self.teacher, self.first)
        if not all(0 < tau < math.inf for tau in taus) or not 0 <= self.warmup <= 1:
            raise InputError(
                f"Temperatures are positive and the warm-up a share between 0 and 1, but {taus} and {self.warmup} were "
                "given."
            )

    def teacher_at(self, step: int, steps: int) -> float:
        """
        >>> [TemperatureConfig().teacher_at(step, 100) for step in (0, 30, 100)]
        [0.04, 0.07, 0.07]
        """
        risen = min(1.0, step / (self.warmup * steps)) if self.warmup * steps > 0 else 1.0
        return self.first * (1 - risen) + self.teacher * risen


@dataclass(frozen=True)
class NarrowPredictorConfig:
    kind: ClassVar[str] = "narrow"

    width: int = 48
    """Of its tokens: narrower than the encoder's. Published: 384."""
    depth: int = 2
    """Transformer blocks. Published: 6 for ViT-B, 12 for larger ones."""
    heads: int = 3
    """Of the attention. Published: as many as the encoder has."""

    def __post_init__(self) -> None:
        check_transformer("I-JEPA's predictor", self.width, self.depth, self.heads)

    @classmethod
    def published(cls, depth: int = 12, heads: int = 12) -> Self:
        return cls(384, depth, heads)

    def build(self, dim: int) -> NarrowPredictor:
        from jepatlas.objectives.vision.predictors import NarrowPredictor

        return NarrowPredictor(dim, self)


@dataclass(frozen=True)
class MLPPredictorConfig:
    kind: ClassVar[str] = "mlp"

    width: int = 2048
    """Units of its hidden layer."""

    def __post_init__(self) -> None:
        if self.width < 1:
            raise InputError(f"I-JEPA's predictor needs at least 1 hidden unit, but {self.width} were given.")

    def build(self, dim: int) -> MLPPredictor:
        from jepatlas.objectives.vision.predictors import MLPPredictor

        return MLPPredictor(dim, self)


@dataclass(frozen=True)
class LinearPredictorConfig:
    kind: ClassVar[str] = "linear"

    def build(self, dim: int) -> LinearPredictor:
        from jepatlas.objectives.vision.predictors import LinearPredictor

        return LinearPredictor(dim)


AnyPredictor = NarrowPredictorConfig | MLPPredictorConfig | LinearPredictorConfig


@dataclass(frozen=True)
class IJEPAConfig:
    kind: ClassVar[str] = "ijepa"
    crops: ClassVar[CropKind] = "one"

    predictor: AnyPredictor = field(default_factory=NarrowPredictorConfig)
    distance: Literal["squared", "smooth-l1"] = "squared"
    """Between a told latent and its target: squared, as in the papers, or smooth L1, as in published code."""
    masks: AnyBlockMasks = field(default_factory=BlockMasks)
    momentum: float = 0.996
    """Of the target encoder at the first step; 1 at the last."""
    rise: Rise = "cosine"
    """How it goes there: by a cosine, or by a line, as published for I-JEPA."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_momentum("I-JEPA", self.momentum)

    def build(self, parts: VisionParts) -> IJEPA:
        from jepatlas.objectives.vision.ijepa import IJEPA

        return IJEPA(parts, self)


@dataclass(frozen=True)
class CropLeJEPAConfig:
    kind: ClassVar[str] = "lejepa"
    crops: ClassVar[CropKind] = "multi"

    loss: LeJEPAConfig = field(default_factory=lambda: LeJEPAConfig(0.05, sigreg=SIGRegConfig(slices=256)))
    """λ, the form of the sum, and SIGReg's choices. Published for images: 0.05 and 1,024 slices."""
    projector: tuple[int, ...] = (512, 512, 64)
    """Units of each layer; none, and the latents themselves are held to the Gaussian. Published: 2,048, 2,048, 128."""

    def __post_init__(self) -> None:
        check_widths("LeJEPA's projector", self.projector, fewest=0)
        if self.loss.sigreg.views != "each":
            raise InputError(
                "Crops of one image are alike, so each is held against the Gaussian for itself: leave "
                "SIGReg's views at 'each'."
            )

    def build(self, parts: VisionParts) -> CropLeJEPA:
        from jepatlas.objectives.vision.lejepa import CropLeJEPA

        return CropLeJEPA(parts, self)


@dataclass(frozen=True)
class MAEConfig:
    kind: ClassVar[str] = "mae"
    crops: ClassVar[CropKind] = "one"

    hidden: float = 0.75
    """Share of the patches that the encoder does not see."""
    normal: bool = True
    """Whether the pixels of each patch are normalised before they are compared."""
    decoder: DecoderConfig = field(default_factory=DecoderConfig)

    def __post_init__(self) -> None:
        if not 0 < self.hidden < 1:
            raise InputError(f"MAE hides a share of the patches between 0 and 1, but {self.hidden} was given.")

    def build(self, parts: VisionParts) -> MAE:
        from jepatlas.objectives.vision.mae import MAE

        return MAE(parts, self)


@dataclass(frozen=True)
class AutoencoderConfig:
    kind: ClassVar[str] = "autoencoder"
    crops: ClassVar[CropKind] = "one"

    patch: int = 8
    """Height and width of the patches that are drawn, in pixels; they need not be the encoder's."""
    decoder: DecoderConfig = field(default_factory=DecoderConfig)

    def __post_init__(self) -> None:
        if self.patch < 1:
            raise InputError(f"The patches that are drawn need at least 1 pixel, but {self.patch} was given.")

    def build(self, parts: VisionParts) -> Autoencoder:
        from jepatlas.objectives.vision.autoencoder import Autoencoder

        return Autoencoder(parts, self)


@dataclass(frozen=True)
class SimCLRConfig:
    kind: ClassVar[str] = "simclr"
    crops: ClassVar[CropKind] = "two"

    temperature: float = 0.1
    """τ. Published: 0.1 for large batches and long runs, 0.5 for small images."""
    projector: tuple[int, ...] = (512, 128)
    """Units of each layer; none, and the latents themselves are compared. Published: 2,048, 128."""

    def __post_init__(self) -> None:
        check_temperature("SimCLR's temperature", self.temperature)
        check_widths("SimCLR's projector", self.projector, fewest=0)

    def build(self, parts: VisionParts) -> SimCLR:
        from jepatlas.objectives.vision.simclr import SimCLR

        return SimCLR(parts, self)


@dataclass(frozen=True)
class BarlowTwinsConfig:
    kind: ClassVar[str] = "barlow-twins"
    crops: ClassVar[CropKind] = "two"

    weight: float = 0.005
    """λ, of the correlations between different dimensions."""
    projector: tuple[int, ...] = (512, 512, 512)
    """Units of each layer. Published: three of 8,192."""

    def __post_init__(self) -> None:
        check_widths("Barlow Twins' projector", self.projector)
        if not 0 <= self.weight < math.inf:
            raise InputError(f"Barlow Twins' weight must be finite and not negative, but {self.weight} was given.")

    def build(self, parts: VisionParts) -> BarlowTwins:
        from jepatlas.objectives.vision.barlow_twins import BarlowTwins

        return BarlowTwins(parts, self)


@dataclass(frozen=True)
class CropVICRegConfig:
    kind: ClassVar[str] = "vicreg"
    crops: ClassVar[CropKind] = "two"

    loss: VICRegConfig = field(default_factory=VICRegConfig)
    """Weights of the three terms, and the hinge."""
    expander: tuple[int, ...] = (512, 512, 512)
    """Units of each layer. Published: three of 8,192."""

    def __post_init__(self) -> None:
        check_widths("VICReg's expander", self.expander)

    def build(self, parts: VisionParts) -> CropVICReg:
        from jepatlas.objectives.vision.vicreg import CropVICReg

        return CropVICReg(parts, self)


@dataclass(frozen=True)
class BYOLConfig:
    kind: ClassVar[str] = "byol"
    crops: ClassVar[CropKind] = "two"

    projector: tuple[int, ...] = (512, 128)
    """Units of each layer. Published: 4,096, 256."""
    predictor: int = 512
    """Hidden units of the predictor, whose output is as wide as the projector's. Published: 4,096."""
    momentum: float = 0.996
    """Of the twin at the first step; 1 at the last."""

    def __post_init__(self) -> None:
        check_widths("BYOL's projector", self.projector)
        check_widths("BYOL's predictor", (self.predictor,))
        check_momentum("BYOL", self.momentum)

    def build(self, parts: VisionParts) -> BYOL:
        from jepatlas.objectives.vision.byol import BYOL

        return BYOL(parts, self)


@dataclass(frozen=True)
class DINOConfig:
    kind: ClassVar[str] = "dino"
    crops: ClassVar[CropKind] = "multi"

    head: DINOHeadConfig = field(default_factory=DINOHeadConfig)
    temperature: TemperatureConfig = field(default_factory=TemperatureConfig)
    centre_momentum: float = 0.9
    """m of the centre."""
    momentum: float = 0.996
    """Of the teacher at the first step; 1 at the last."""

    def __post_init__(self) -> None:
        check_momentum("DINO's centre", self.centre_momentum)
        check_momentum("DINO", self.momentum)

    def build(self, parts: VisionParts) -> DINO:
        from jepatlas.objectives.vision.dino import DINO

        return DINO(parts, self)


@dataclass(frozen=True)
class MoCoV3Config:
    kind: ClassVar[str] = "moco-v3"
    crops: ClassVar[CropKind] = "two"

    temperature: float = 0.2
    """τ, as published for ViTs."""
    projector: tuple[int, ...] = (512, 512, 128)
    """Units of each layer. Published: 4,096, 4,096, 256."""
    predictor: int = 512
    """Hidden units of the predictor, whose output is as wide as the projector's. Published: 4,096."""
    momentum: float = 0.99
    """Of the twin at the first step; 1 at the last."""
    frozen_patches: bool = False
    """Leave the ViT's patch embedding as it was drawn: published as what keeps large ViTs stable at large batches."""

    def __post_init__(self) -> None:
        check_temperature("MoCo's temperature", self.temperature)
        check_widths("MoCo's projector", self.projector)
        check_widths("MoCo's predictor", (self.predictor,))
        check_momentum("MoCo", self.momentum)

    def build(self, parts: VisionParts) -> MoCoV3:
        from jepatlas.objectives.vision.moco_v3 import MoCoV3

        return MoCoV3(parts, self)


@dataclass(frozen=True)
class IBOTConfig:
    kind: ClassVar[str] = "ibot"
    crops: ClassVar[CropKind] = "multi"

    head: DINOHeadConfig = field(default_factory=DINOHeadConfig)
    temperature: TemperatureConfig = field(default_factory=TemperatureConfig)
    masks: PatchMasks = field(default_factory=PatchMasks)
    centre_momentum: float = 0.9
    """Of the two centres, that of images and that of patches."""
    momentum: float = 0.996
    """Of the teacher at the first step; 1 at the last."""

    def __post_init__(self) -> None:
        check_momentum("iBOT's centre", self.centre_momentum)
        check_momentum("iBOT", self.momentum)

    def build(self, parts: VisionParts) -> IBOT:
        from jepatlas.objectives.vision.ibot import IBOT

        return IBOT(parts, self)


@dataclass(frozen=True)
class SwAVConfig:
    kind: ClassVar[str] = "swav"
    crops: ClassVar[CropKind] = "multi"

    prototypes: int = 64
    """K, no more than the rows of a joint batch. Published: 3,000 for batches of 4,096."""
    projector: tuple[int, ...] = (512, 64)
    """Units of each layer. Published: 2,048, 128."""
    temperature: float = 0.1
    """τ of what is told."""
    smoothness: float = 0.02
    """ε of what is assigned: the smaller, the more it is one prototype for each crop. Published: 0.05, for batches of
    4,096. In those of 64 codes then stay nearly uniform, and there is nothing to tell: on rendered objects, after 300
    steps, entropy 3.84 of ln 64 = 4.16 and latents along 1.3 directions, where 0.02 leads to 1.47 and 5.4."""
    rounds: int = 3
    """Of Sinkhorn."""
    held: float = 0.01
    """Share of the steps in which the prototypes do not move yet: the first of a hundred epochs, as published."""

    def __post_init__(self) -> None:
        check_widths("SwAV's projector", self.projector)
        check_temperature("SwAV's temperature", self.temperature)
        check_temperature("SwAV's smoothness", self.smoothness)
        if min(self.prototypes, self.rounds) < 1 or not 0 <= self.held <= 1:
            raise InputError(
                f"SwAV needs prototypes and rounds >= 1 and a share of held steps between 0 and 1, but "
                f"{self.prototypes}, {self.rounds} and {self.held} were given."
            )

    def build(self, parts: VisionParts) -> SwAV:
        from jepatlas.objectives.vision.swav import SwAV

        return SwAV(parts, self)


@dataclass(frozen=True)
class DINOv2Config:
    kind: ClassVar[str] = "dinov2"
    crops: ClassVar[CropKind] = "multi"

    head: DINOHeadConfig = field(default_factory=DINOHeadConfig)
    """Of both heads."""
    temperature: TemperatureConfig = field(default_factory=TemperatureConfig)
    masks: PatchMasks = field(default_factory=PatchMasks)
    centring: Literal["sinkhorn", "centre"] = "sinkhorn"
    """What balances the teacher's assignments: three rounds of Sinkhorn, as published, or DINO's moving centre."""
    koleo: float = 0.1
    """Weight of KoLeo."""
    momentum: float = 0.992
    """Of the teacher at the first step; 1 at the last."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_momentum("DINOv2", self.momentum)
        if not 0 <= self.koleo < math.inf:
            raise InputError(f"KoLeo's weight must be finite and not negative, but {self.koleo} was given.")

    def build(self, parts: VisionParts) -> DINOv2:
        from jepatlas.objectives.vision.dinov2 import DINOv2

        return DINOv2(parts, self)


AnyVision = (
    IJEPAConfig
    | CropLeJEPAConfig
    | MAEConfig
    | AutoencoderConfig
    | SimCLRConfig
    | BarlowTwinsConfig
    | CropVICRegConfig
    | BYOLConfig
    | DINOConfig
    | MoCoV3Config
    | IBOTConfig
    | SwAVConfig
    | DINOv2Config
)
"""Whatever an agent on images can learn by."""
