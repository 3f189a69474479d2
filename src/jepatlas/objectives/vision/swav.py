"""SwAV: predict from one crop the prototype assignment of another crop of the same image.

    L = mean over large crops i and crops v ≠ i of −Σ_k q_i[k] log softmax(c_k · z_v / τ),   q = Sinkhorn(c · z / ε)

z and the prototypes c are normalised. Sinkhorn iterations over the joint batch of all processes make all prototypes
equally frequent, which prevents a collapse to one assignment. The queue of earlier embeddings, used by published runs
with small batches, is not implemented: use at most as many prototypes as rows.

Reference: "Unsupervised Learning of Visual Features by Contrasting Cluster Assignments".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts, embed_crops, two_crops
from jepatlas.objectives.vision.heads import projector
from jepatlas.objectives.vision.prototype_configs import SwAVConfig
from jepatlas.objectives.vision.self_distillation import across_views, entropy, sinkhorn

__all__ = ["SwAV"]


class SwAV(CropObjective):
    """For encoders that accept images of all crop sizes."""

    def __init__(self, parts: VisionParts, config: SwAVConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or SwAVConfig()
        self.projector = projector(parts.dim, self.config.projector)
        self.prototypes = nn.Parameter(torch.randn(self.config.prototypes, self.config.projector[-1]))
        self._normalise_prototypes()

    def forward(self, batch: Crops, step: int) -> Loss:
        two_crops(batch)  # the first two crops are assigned, so they must exist
        embedded = embed_crops(self, self.projector, batch.all)
        c = self.config
        with torch.autocast(batch.x.device.type, enabled=False):
            logits = self.logits(torch.cat(embedded), step).chunk(len(embedded))
            codes = [sinkhorn(crop.detach(), c.smoothness, c.rounds) for crop in logits[:2]]
            total = across_views(codes, logits, c.temperature)
        return Loss(total, {"swapped": total.detach(), "code_entropy": entropy(torch.cat(codes))})

    def logits(self, z_md: Tensor, step: int) -> Tensor:
        """Cosines with the prototypes, (m, K). Prototypes have zero gradient while they are held."""
        weights = self.prototypes
        if self.optimiser_step(step) < self.config.held * self.steps:
            weights = weights.detach() + 0 * weights
        return F.normalize(z_md, dim=1) @ weights.to(z_md.dtype).T

    def after_step(self, step: int) -> None:
        del step
        self._normalise_prototypes()

    @torch.no_grad()
    def _normalise_prototypes(self) -> None:
        self.prototypes.copy_(F.normalize(self.prototypes, dim=1))
