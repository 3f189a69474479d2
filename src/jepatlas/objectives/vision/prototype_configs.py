"""Configurations of objectives that assign crops or patches to prototypes: DINO, iBOT, SwAV and DINOv2."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from jepatlas.core.config import check_literals
from jepatlas.core.errors import check_count, check_not_negative, check_positive, check_share
from jepatlas.core.records import CropKind
from jepatlas.nn.network_configs import check_momentum, check_widths
from jepatlas.objectives.vision.masks import PatchMasks

if TYPE_CHECKING:
    from jepatlas.objectives.vision.crop_objective import VisionParts
    from jepatlas.objectives.vision.dino import DINO
    from jepatlas.objectives.vision.dinov2 import DINOv2
    from jepatlas.objectives.vision.ibot import IBOT
    from jepatlas.objectives.vision.self_distillation import DINOHead
    from jepatlas.objectives.vision.swav import SwAV

__all__ = ["DINOConfig", "DINOHeadConfig", "DINOv2Config", "IBOTConfig", "SwAVConfig", "TemperatureConfig"]


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
        check_share("held", self.held)

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
            check_positive(name, getattr(self, name))
        check_share("warmup", self.warmup)

    def teacher_at(self, step: int, steps: int) -> float:
        """
        >>> [TemperatureConfig().teacher_at(step, 100) for step in (0, 30, 100)]
        [0.04, 0.07, 0.07]
        """
        warmup_steps = self.warmup * steps
        progress = min(1.0, step / warmup_steps) if warmup_steps > 0 else 1.0
        return self.first * (1 - progress) + self.teacher * progress


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
        check_widths("projector", self.projector)
        check_positive("temperature", self.temperature)
        check_positive("smoothness", self.smoothness)
        check_share("held", self.held)

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
