"""iBOT: DINO on images, and the same for masked patches, with one head for both (see `masked_distillation.py`).

    L = image + patch

Reference: "iBOT: Image BERT Pre-Training with Online Tokenizer".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from jepatlas.core.records import CropKind, Crops, Loss
from jepatlas.nn.network_configs import check_momentum
from jepatlas.objectives.vision.dino_head import DINOHeadConfig
from jepatlas.objectives.vision.distillation import MovingCentre, TemperatureConfig
from jepatlas.objectives.vision.masked_distillation import MaskedDistillation
from jepatlas.objectives.vision.masks import PatchMasks
from jepatlas.objectives.vision.parts import VisionParts

__all__ = ["IBOT", "IBOTConfig"]


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
        return IBOT(parts, self)


class IBOT(MaskedDistillation):
    def __init__(self, parts: VisionParts, config: IBOTConfig | None = None) -> None:
        self.config = config = config or IBOTConfig()
        prototypes = config.head.prototypes
        image, patch = (MovingCentre(prototypes, config.centre_momentum, parts.accumulate) for _ in range(2))
        super().__init__(parts, (config.head.build(parts.dim),), (image, patch), config.masks, config.temperature)

    def forward(self, batch: Crops, step: int) -> Loss:
        told = self.distil(batch, step, held=self.optimiser_step(step) < self.config.head.held * self.steps)
        terms = {"image": told.image, "patch": told.patch, "teacher_entropy": told.entropy}
        return Loss(told.image + told.patch, {name: term.detach() for name, term in terms.items()})

    def after_step(self, step: int) -> None:
        self.follow(self.config.momentum, step)
