"""What BYOL and MoCo v3 share: what a predictor tells from one crop is held against a slow twin's view of the other.

    L = ℓ(q(g(f(x))), ḡ(f̄(x'))) + ℓ(q(g(f(x'))), ḡ(f̄(x)))

Encoder f and projector g have a twin that follows them, the predictor q has none. Both crops are one batch of each
network, so batch statistics are pooled over them (published: each crop for itself).
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from jepatlas.core.records import Crops, Loss
from jepatlas.nn.ema import EMANetwork, momentum_at
from jepatlas.objectives.pairwise import at_least_float32
from jepatlas.objectives.vision.parts import CropObjective, VisionParts, two_crops

__all__ = ["SlowTarget"]


class SlowTarget(CropObjective):
    """Subclasses say how a prediction and its target are compared."""

    def __init__(self, parts: VisionParts, projector: nn.Module, predictor: nn.Module, momentum: float) -> None:
        super().__init__(parts)
        self.projector, self.predictor, self.momentum = projector, predictor, momentum
        self.target = EMANetwork(nn.Sequential(self.encoder, projector))

    def forward(self, batch: Crops, step: int) -> Loss:
        del step
        crops = two_crops(batch)
        told = self.embed(nn.Sequential(self.projector, self.predictor), crops)
        targets = self.targets(crops)
        with torch.autocast(batch.x.device.type, enabled=False):
            total = self.compare(told[0], targets[1]) + self.compare(told[1], targets[0])
        return Loss(total, {"prediction": total.detach()})

    @abstractmethod
    def compare(self, told_bd: Tensor, target_bd: Tensor) -> Tensor:
        """ℓ of all rows: ()."""

    @torch.no_grad()
    def targets(self, crops: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        return at_least_float32(self.target.network(torch.cat(crops))).chunk(2)

    def after_step(self, step: int) -> None:
        online = nn.Sequential(self.encoder, self.projector)
        self.target.update(online, momentum_at(self.momentum, step, self.steps))
