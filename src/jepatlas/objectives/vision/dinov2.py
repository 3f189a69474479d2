"""DINOv2: the losses of DINO and iBOT with a head each, Sinkhorn's assignments, and KoLeo on the latents.

    L = image + patch + 0.1 · KoLeo(h of the first crop)

KoLeo's neighbours are those of the joint batch, so that the loss does not depend on the number of processes (published:
of each process alone). Reference: "DINOv2: Learning Robust Visual Features without Supervision".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError
from jepatlas.core.records import CropKind, Crops, Loss
from jepatlas.nn.network_configs import check_momentum
from jepatlas.objectives.vision.dino_head import DINOHeadConfig
from jepatlas.objectives.vision.distillation import MovingCentre, Sinkhorn, TemperatureConfig
from jepatlas.objectives.vision.koleo import koleo
from jepatlas.objectives.vision.masked_distillation import MaskedDistillation
from jepatlas.objectives.vision.masks import PatchMasks
from jepatlas.objectives.vision.parts import VisionParts

__all__ = ["DINOv2", "DINOv2Config"]

CENTRE_MOMENTUM = 0.9


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
        return DINOv2(parts, self)


class DINOv2(MaskedDistillation):
    def __init__(self, parts: VisionParts, config: DINOv2Config | None = None) -> None:
        self.config = config = config or DINOv2Config()
        heads = config.head.build(parts.dim), config.head.build(parts.dim)
        centrings = _centring(config, parts), _centring(config, parts)
        super().__init__(parts, heads, centrings, config.masks, config.temperature)

    def forward(self, batch: Crops, step: int) -> Loss:
        told = self.distil(batch, step, held=self.optimiser_step(step) < self.config.head.held * self.steps)
        with torch.autocast(batch.x.device.type, enabled=False):
            spread = koleo(told.latents.chunk(2)[0])
        total = told.image + told.patch + self.config.koleo * spread
        terms = {"image": told.image, "patch": told.patch, "koleo": spread, "teacher_entropy": told.entropy}
        return Loss(total, {name: term.detach() for name, term in terms.items()})

    def after_step(self, step: int) -> None:
        self.follow(self.config.momentum, step)


def _centring(config: DINOv2Config, parts: VisionParts) -> MovingCentre | Sinkhorn:
    if config.centring == "sinkhorn":
        return Sinkhorn()
    return MovingCentre(config.head.prototypes, CENTRE_MOMENTUM, parts.accumulate)
