"""Base class of BYOL and MoCo v3: predict the projection of the other crop by a momentum encoder.

    L = ℓ(q(g(f(x))), ḡ(f̄(x'))) + ℓ(q(g(f(x'))), ḡ(f̄(x)))

f̄ and ḡ are moving averages of the encoder f and the projector g; the predictor q has no average. Both crops form one
batch of each network, so batch statistics are pooled over them (published: per crop).
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from jepatlas.core.records import Crops, Loss
from jepatlas.nn.ema import EMANetwork, momentum_at
from jepatlas.objectives.pair_objective import at_least_float32
from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts, two_crops

__all__ = ["MomentumTarget"]


class MomentumTarget(CropObjective):
    """Subclasses define the comparison ℓ of predictions and targets."""

    def __init__(self, parts: VisionParts, projector: nn.Module, predictor: nn.Module, momentum: float) -> None:
        super().__init__(parts)
        self.projector, self.predictor, self.momentum = projector, predictor, momentum
        self.target = EMANetwork(nn.Sequential(self.encoder, projector))

    def forward(self, batch: Crops, step: int) -> Loss:
        del step
        crops = two_crops(batch)
        predicted = self.embed(nn.Sequential(self.projector, self.predictor), crops)
        targets = self.targets(crops)
        with torch.autocast(batch.x.device.type, enabled=False):
            total = self.compare(predicted[0], targets[1]) + self.compare(predicted[1], targets[0])
        return Loss(total, {"prediction": total.detach()})

    @abstractmethod
    def compare(self, predicted_bd: Tensor, target_bd: Tensor) -> Tensor:
        """ℓ over all rows: ()."""

    @torch.no_grad()
    def targets(self, crops: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        return at_least_float32(self.target.network(torch.cat(crops))).chunk(2)

    def after_step(self, step: int) -> None:
        online = nn.Sequential(self.encoder, self.projector)
        self.target.update(online, momentum_at(self.momentum, step, self.steps))
