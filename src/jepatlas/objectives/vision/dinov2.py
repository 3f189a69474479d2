"""DINOv2: the losses of DINO and iBOT with a head each, Sinkhorn's assignments, and KoLeo on the latents.

    L = image + patch + 0.1 · KoLeo(h of the first crop)

KoLeo's neighbours are those of the joint batch, so that the loss does not depend on the number of processes (published:
of each process alone). Reference: "DINOv2: Learning Robust Visual Features without Supervision".
"""

from __future__ import annotations

import torch

from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.vision.distillation import MovingCentre, Sinkhorn
from jepatlas.objectives.vision.koleo import koleo
from jepatlas.objectives.vision.masked_distillation import MaskedDistillation
from jepatlas.objectives.vision.parts import VisionParts
from jepatlas.objectives.vision.vision_configs import DINOv2Config

__all__ = ["DINOv2"]

CENTRE_MOMENTUM = 0.9


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
