"""VICReg on crops: the loss of `objectives/vicreg.py` on expanded embeddings.

Covariances are those of the joint batch of all processes. Both crops are one batch of the expander, so its batch
statistics are pooled (published: per crop).
Reference: "VICReg: Variance-Invariance-Covariance Regularization for Self-Supervised Learning".
"""

from __future__ import annotations

import torch
from torch import nn

from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.vicreg import VICReg
from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts, two_crops
from jepatlas.objectives.vision.heads import expander
from jepatlas.objectives.vision.joint_embedding_configs import CropVICRegConfig

__all__ = ["CropVICReg"]


class CropVICReg(CropObjective):
    def __init__(self, parts: VisionParts, config: CropVICRegConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or CropVICRegConfig()
        self.expander = expander(parts.dim, self.config.expander)
        self.vicreg = VICReg(nn.Identity(), self.config.loss)  # applied to embeddings

    def forward(self, batch: Crops, step: int) -> Loss:
        first, second = self.embed(self.expander, two_crops(batch))
        with torch.autocast(first.device.type, enabled=False):
            return self.vicreg.loss(first, second, step)
