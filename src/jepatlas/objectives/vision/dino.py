"""DINO: crops of all sizes predict the teacher's assignments of the two large crops.

    L = mean over teacher crops i and student crops j ≠ i of H(P_t(x_i), P_s(x_j))

The teacher is a moving average of encoder and head, with centred logits (see `self_distillation.py`).
Reference: "Emerging Properties in Self-Supervised Vision Transformers".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from jepatlas.core.records import Crops, Loss
from jepatlas.nn.ema import EMANetwork, momentum_at
from jepatlas.objectives.pair_objective import at_least_float32
from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts, group_by_size, two_crops
from jepatlas.objectives.vision.prototype_configs import DINOConfig
from jepatlas.objectives.vision.self_distillation import MovingCentre, across_views, entropy

__all__ = ["DINO"]


class DINO(CropObjective):
    """For encoders that accept images of several sizes."""

    def __init__(self, parts: VisionParts, config: DINOConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or DINOConfig()
        self.head = self.config.head.build(parts.dim)
        self.teacher = EMANetwork(nn.ModuleList([self.encoder, self.head]))
        self.centre = MovingCentre(self.config.head.prototypes, self.config.centre_momentum, parts.accumulate)

    def forward(self, batch: Crops, step: int) -> Loss:
        temperature, now = self.config.temperature, self.optimiser_step(step)
        teachers = self._assign(torch.cat(two_crops(batch)), temperature.teacher_at(now, self.steps))
        held = now < self.config.head.held * self.steps
        students: list[Tensor] = []
        for group in group_by_size(batch.all):
            logits = at_least_float32(self.head(self.encode(torch.cat(group)), held=held))
            students += logits.chunk(len(group))
        with torch.autocast(batch.x.device.type, enabled=False):
            loss = across_views(teachers.chunk(2), students, temperature.student)
        return Loss(loss, {"image": loss.detach(), "teacher_entropy": entropy(teachers)})

    @torch.no_grad()
    def _assign(self, x: Tensor, temperature: float) -> Tensor:
        network: Any = self.teacher.network
        encoder, head = network
        logits = at_least_float32(head(encoder(x)))
        return self.centre(logits, temperature, logits.mean(0))

    def after_step(self, step: int) -> None:
        student = nn.ModuleList([self.encoder, self.head])
        self.teacher.update(student, momentum_at(self.config.momentum, step, self.steps))
        self.centre.after_step()
