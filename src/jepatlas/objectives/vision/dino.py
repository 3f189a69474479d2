"""DINO: crops of all sizes tell what a slow teacher assigns to the two large ones.

    L = mean over teacher crops i and student crops j ≠ i of H(P_t(x_i), P_s(x_j))

The teacher is encoder and head, followed slowly; its logits are centred by a moving mean.
Reference: "Emerging Properties in Self-Supervised Vision Transformers".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from jepatlas.core.records import Crops, Loss
from jepatlas.nn.ema import EMANetwork, momentum_at
from jepatlas.objectives.pairwise import at_least_float32
from jepatlas.objectives.vision.distillation import MovingCentre, across_views, by_size, entropy
from jepatlas.objectives.vision.parts import CropObjective, VisionParts, two_crops
from jepatlas.objectives.vision.vision_configs import DINOConfig

__all__ = ["DINO"]


class DINO(CropObjective):
    """For any encoder that takes images of several sizes."""

    def __init__(self, parts: VisionParts, config: DINOConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or DINOConfig()
        self.head = self.config.head.build(parts.dim)
        self.teacher = EMANetwork(nn.ModuleList([self.encoder, self.head]))
        self.centre = MovingCentre(self.config.head.prototypes, self.config.centre_momentum, parts.accumulate)

    def forward(self, batch: Crops, step: int) -> Loss:
        temperature, now = self.config.temperature, self.optimiser_step(step)
        teachers = self._assigned(torch.cat(two_crops(batch)), temperature.teacher_at(now, self.steps))
        held = now < self.config.head.held * self.steps
        students = [s for group in by_size(batch.all) for s in self._logits(group, held)]
        with torch.autocast(batch.x.device.type, enabled=False):
            loss = across_views(teachers.chunk(2), students, temperature.student)
        return Loss(loss, {"image": loss.detach(), "teacher_entropy": entropy(teachers)})

    def _logits(self, crops: tuple[Tensor, ...], held: bool) -> tuple[Tensor, ...]:
        return at_least_float32(self.head(self.encode(torch.cat(crops)), held=held)).chunk(len(crops))

    @torch.no_grad()
    def _assigned(self, x: Tensor, temperature: float) -> Tensor:
        network: Any = self.teacher.network
        encoder, head = network
        logits = at_least_float32(head(encoder(x)))
        return self.centre(logits, temperature, logits.mean(0))

    def after_step(self, step: int) -> None:
        self.teacher.update(
            nn.ModuleList([self.encoder, self.head]), momentum_at(self.config.momentum, step, self.steps)
        )
        self.centre.after_step()
