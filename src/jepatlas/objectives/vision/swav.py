"""SwAV: tell from one crop which prototypes another crop of the image was assigned to.

    L = mean over large crops i and crops v ≠ i of −Σ_k q_i[k] log softmax(c_k · z_v / τ),   q = Sinkhorn(c · z / ε)

z and the prototypes c have length 1. Sinkhorn's rounds over the joint batch of all processes make all prototypes
as frequent, so not all crops can be assigned to one. There is no queue of earlier rows, which published runs with small
batches add: take no more prototypes than rows.

Reference: "Unsupervised Learning of Visual Features by Contrasting Cluster Assignments".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.vision.distillation import across_views, entropy, sinkhorn
from jepatlas.objectives.vision.multicrop import embed_all
from jepatlas.objectives.vision.parts import CropObjective, VisionParts, two_crops
from jepatlas.objectives.vision.projectors import projector
from jepatlas.objectives.vision.vision_configs import SwAVConfig

__all__ = ["SwAV"]


class SwAV(CropObjective):
    """For any encoder that takes images of as many sizes as there are."""

    def __init__(self, parts: VisionParts, config: SwAVConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or SwAVConfig()
        self.projector = projector(parts.dim, self.config.projector)
        self.prototypes = nn.Parameter(torch.randn(self.config.prototypes, self.config.projector[-1]))
        self._to_length_one()

    def forward(self, batch: Crops, step: int) -> Loss:
        two_crops(batch)  # refused where there are none: the first two are assigned
        embedded = embed_all(self, self.projector, batch.all)
        c = self.config
        with torch.autocast(batch.x.device.type, enabled=False):
            logits = self.logits(torch.cat(embedded), step).chunk(len(embedded))
            codes = [sinkhorn(crop.detach(), c.smoothness, c.rounds) for crop in logits[:2]]
            total = across_views(codes, logits, c.temperature)
        return Loss(total, {"swapped": total.detach(), "code_entropy": entropy(torch.cat(codes))})

    def logits(self, z_md: Tensor, step: int) -> Tensor:
        """Cosines with the prototypes, (m, K). Prototypes that are held have gradient zero."""
        weights = self.prototypes
        if self.optimiser_step(step) < self.config.held * self.steps:
            weights = weights.detach() + 0 * weights
        return F.normalize(z_md, dim=1) @ weights.to(z_md.dtype).T

    def after_step(self, step: int) -> None:
        del step
        self._to_length_one()

    @torch.no_grad()
    def _to_length_one(self) -> None:
        self.prototypes.copy_(F.normalize(self.prototypes, dim=1))
