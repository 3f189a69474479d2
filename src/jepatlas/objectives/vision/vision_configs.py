"""Configurations of the objectives on images. Importing this module does not import torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from jepatlas.core.config import check_literals
from jepatlas.core.errors import check_argument, check_count
from jepatlas.core.records import CropKind
from jepatlas.nn.network_configs import Rise, check_momentum, check_transformer
from jepatlas.objectives.objective_configs import LeJEPAConfig, SIGRegConfig, VICRegConfig, check_not_negative
from jepatlas.objectives.vision.masks import AnyBlockMasks, BlockMasks, PatchMasks

if TYPE_CHECKING:
    from jepatlas.objectives.vision.autoencoder import Autoencoder
    from jepatlas.objectives.vision.barlow_twins import BarlowTwins
    from jepatlas.objectives.vision.byol import BYOL
    from jepatlas.objectives.vision.crop_lejepa import CropLeJEPA
    from jepatlas.objectives.vision.crop_objective import VisionParts
    from jepatlas.objectives.vision.crop_vicreg import CropVICReg
    from jepatlas.objectives.vision.dino import DINO
    from jepatlas.objectives.vision.dinov2 import DINOv2
    from jepatlas.objectives.vision.ibot import IBOT
    from jepatlas.objectives.vision.ijepa import IJEPA, LinearPredictor, MLPPredictor, NarrowPredictor
    from jepatlas.objectives.vision.mae import MAE
    from jepatlas.objectives.vision.moco_v3 import MoCoV3
    from jepatlas.objectives.vision.self_distillation import DINOHead
    from jepatlas.objectives.vision.simclr import SimCLR
    from jepatlas.objectives.vision.swav import SwAV

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
]


def _check_widths(name: str, widths: tuple[int, ...], *, minimum: int = 1) -> None:
    valid = len(widths) >= minimum and min(widths, default=1) >= 1
    check_argument(name, widths, valid, f"at least {minimum} layer(s) of at least 1 unit")


def _check_positive(name: str, value: float) -> None:
    check_argument(name, value, 0 < value < math.inf, "positive and finite")


def _check_share(name: str, value: float) -> None:
    check_argument(name, value, 0 <= value <= 1, "between 0 and 1")


@dataclass(frozen=True)
class DecoderConfig:
    width: int = 64
    """Width of the tokens."""
    depth: int = 2
    """Transformer blocks."""
    heads: int = 4
    """Attention heads."""

    def __post_init__(self) -> None:
        check_transformer("A decoder", self.width, self.depth, self.heads)

    @classmethod
    def published(cls) -> Self:
        """The decoder of the published MAE."""
        return cls(512, 8, 16)


@dataclass(frozen=True)
class DINOHeadConfig:
    prototypes: int = 1024
    """Number of prototypes K. Published: 65,536 for DINO and DINOv2, 8,192 for iBOT."""
    width: int = 256
    """Units of each of the two hidden layers. Published: 2,048."""
    bottleneck: int = 64
    """Width of the normalised embedding z. Published: 256."""
    held: float = 0.01
    """Share of the steps in which the prototypes are frozen. Published: the first of a hundred epochs."""

    def __post_init__(self) -> None:
        for name in ("prototypes", "width", "bottleneck"):
            check_count(name, getattr(self, name))
        _check_share("held", self.held)

    @classmethod
    def published(cls, prototypes: int = 65536) -> Self:
        return cls(prototypes, 2048, 256)

    def build(self, dim: int) -> DINOHead:
        from jepatlas.objectives.vision.self_distillation import DINOHead

        return DINOHead(dim, self)


@dataclass(frozen=True)
class TemperatureConfig:
    student: float = 0.1
    """Student temperature τ_s."""
    teacher: float = 0.07
    """Teacher temperature τ_t after the warm-up."""
    first: float = 0.04
    """Initial teacher temperature."""
    warmup: float = 0.3
    """Share of the steps in which τ_t increases linearly. Published: 30 of 100 epochs."""

    def __post_init__(self) -> None:
        for name in ("student", "teacher", "first"):
            _check_positive(name, getattr(self, name))
        _check_share("warmup", self.warmup)

    def teacher_at(self, step: int, steps: int) -> float:
        """
        >>> [TemperatureConfig().teacher_at(step, 100) for step in (0, 30, 100)]
        [0.04, 0.07, 0.07]
        """
        warmup_steps = self.warmup * steps
        progress = min(1.0, step / warmup_steps) if warmup_steps > 0 else 1.0
        return self.first * (1 - progress) + self.teacher * progress


@dataclass(frozen=True)
class NarrowPredictorConfig:
    kind: ClassVar[str] = "narrow"

    width: int = 48
    """Width of the tokens, smaller than the encoder's. Published: 384."""
    depth: int = 2
    """Transformer blocks. Published: 6 for ViT-B, 12 for larger models."""
    heads: int = 3
    """Attention heads. Published: as many as the encoder has."""

    def __post_init__(self) -> None:
        check_transformer("I-JEPA's predictor", self.width, self.depth, self.heads)

    @classmethod
    def published(cls, depth: int = 12, heads: int = 12) -> Self:
        return cls(384, depth, heads)

    def build(self, dim: int) -> NarrowPredictor:
        from jepatlas.objectives.vision.ijepa import NarrowPredictor

        return NarrowPredictor(dim, self)


@dataclass(frozen=True)
class MLPPredictorConfig:
    kind: ClassVar[str] = "mlp"

    width: int = 2048
    """Units of the hidden layer."""

    def __post_init__(self) -> None:
        check_count("width", self.width)

    def build(self, dim: int) -> MLPPredictor:
        from jepatlas.objectives.vision.ijepa import MLPPredictor

        return MLPPredictor(dim, self)


@dataclass(frozen=True)
class LinearPredictorConfig:
    kind: ClassVar[str] = "linear"

    def build(self, dim: int) -> LinearPredictor:
        from jepatlas.objectives.vision.ijepa import LinearPredictor

        return LinearPredictor(dim)


AnyPredictor = NarrowPredictorConfig | MLPPredictorConfig | LinearPredictorConfig


@dataclass(frozen=True)
class IJEPAConfig:
    kind: ClassVar[str] = "ijepa"
    crops: ClassVar[CropKind] = "one"

    predictor: AnyPredictor = field(default_factory=NarrowPredictorConfig)
    distance: Literal["squared", "smooth-l1"] = "squared"
    """Distance of prediction and target: squared, as in the papers, or smooth L1, as in published code."""
    masks: AnyBlockMasks = field(default_factory=BlockMasks)
    momentum: float = 0.996
    """Initial momentum of the target encoder; it rises to 1."""
    rise: Rise = "cosine"
    """Schedule of the momentum: cosine, or a line as published for I-JEPA."""

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
    """Weight λ, form of the sum, and settings of SIGReg. Published for images: 0.05 and 1,024 slices."""
    projector: tuple[int, ...] = (512, 512, 64)
    """Units of each layer; empty to regularise the latents themselves. Published: 2,048, 2,048, 128."""

    def __post_init__(self) -> None:
        _check_widths("projector", self.projector, minimum=0)
        views = self.loss.sigreg.views
        check_argument("views", views, views == "each", "'each', because crops of one image are not independent")

    def build(self, parts: VisionParts) -> CropLeJEPA:
        from jepatlas.objectives.vision.crop_lejepa import CropLeJEPA

        return CropLeJEPA(parts, self)


@dataclass(frozen=True)
class MAEConfig:
    kind: ClassVar[str] = "mae"
    crops: ClassVar[CropKind] = "one"

    hidden: float = 0.75
    """Share of masked patches."""
    normal: bool = True
    """Standardise the pixels of each target patch."""
    decoder: DecoderConfig = field(default_factory=DecoderConfig)

    def __post_init__(self) -> None:
        check_argument("hidden", self.hidden, 0 < self.hidden < 1, "between 0 and 1")

    def build(self, parts: VisionParts) -> MAE:
        from jepatlas.objectives.vision.mae import MAE

        return MAE(parts, self)


@dataclass(frozen=True)
class AutoencoderConfig:
    kind: ClassVar[str] = "autoencoder"
    crops: ClassVar[CropKind] = "one"

    patch: int = 8
    """Height and width of the reconstructed patches in pixels; may differ from the encoder's."""
    decoder: DecoderConfig = field(default_factory=DecoderConfig)

    def __post_init__(self) -> None:
        check_count("patch", self.patch)

    def build(self, parts: VisionParts) -> Autoencoder:
        from jepatlas.objectives.vision.autoencoder import Autoencoder

        return Autoencoder(parts, self)


@dataclass(frozen=True)
class SimCLRConfig:
    kind: ClassVar[str] = "simclr"
    crops: ClassVar[CropKind] = "two"

    temperature: float = 0.1
    """Temperature τ. Published: 0.1 for large batches and long runs, 0.5 for small images."""
    projector: tuple[int, ...] = (512, 128)
    """Units of each layer; empty to compare the latents themselves. Published: 2,048, 128."""

    def __post_init__(self) -> None:
        _check_positive("temperature", self.temperature)
        _check_widths("projector", self.projector, minimum=0)

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
        _check_widths("projector", self.projector)
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
        _check_widths("expander", self.expander)

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
        _check_widths("projector", self.projector)
        check_count("predictor", self.predictor)
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
    """Momentum of the centre of the teacher's logits."""
    momentum: float = 0.996
    """Initial momentum of the teacher; it rises to 1."""

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
        _check_positive("temperature", self.temperature)
        _check_widths("projector", self.projector)
        check_count("predictor", self.predictor)
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
    """Momentum of both centres, for images and for patches."""
    momentum: float = 0.996
    """Initial momentum of the teacher; it rises to 1."""

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
    """Number of prototypes K, at most the rows of a joint batch. Published: 3,000 for batches of 4,096."""
    projector: tuple[int, ...] = (512, 64)
    """Units of each layer. Published: 2,048, 128."""
    temperature: float = 0.1
    """Temperature τ of the predictions."""
    smoothness: float = 0.02
    """Entropy regularisation ε of the assignments; smaller values give sharper codes. Published: 0.05, for batches of
    4,096. With batches of 64 codes then stay nearly uniform: on rendered objects after 300 steps their entropy is 3.84
    of ln 64 = 4.16 and the latents have 1.3 effective dimensions, against 1.47 and 5.4 with 0.02."""
    rounds: int = 3
    """Sinkhorn iterations."""
    held: float = 0.01
    """Share of the steps in which the prototypes are frozen. Published: the first of a hundred epochs."""

    def __post_init__(self) -> None:
        check_count("prototypes", self.prototypes)
        check_count("rounds", self.rounds)
        _check_widths("projector", self.projector)
        _check_positive("temperature", self.temperature)
        _check_positive("smoothness", self.smoothness)
        _check_share("held", self.held)

    def build(self, parts: VisionParts) -> SwAV:
        from jepatlas.objectives.vision.swav import SwAV

        return SwAV(parts, self)


@dataclass(frozen=True)
class DINOv2Config:
    kind: ClassVar[str] = "dinov2"
    crops: ClassVar[CropKind] = "multi"

    head: DINOHeadConfig = field(default_factory=DINOHeadConfig)
    """Configuration of both heads."""
    temperature: TemperatureConfig = field(default_factory=TemperatureConfig)
    masks: PatchMasks = field(default_factory=PatchMasks)
    centring: Literal["sinkhorn", "centre"] = "sinkhorn"
    """Balancing of the teacher's assignments: three Sinkhorn iterations, as published, or DINO's moving centre."""
    koleo: float = 0.1
    """Weight of the KoLeo regulariser."""
    momentum: float = 0.992
    """Initial momentum of the teacher; it rises to 1."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_momentum("DINOv2", self.momentum)
        check_not_negative("koleo", self.koleo)

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
"""All objectives on images."""
