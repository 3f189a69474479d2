"""SimCLR: identify the other crop of the same image among all crops of all images (NT-Xent).

    L = −(1/2b) Σ_i log [ e^{cos(z_i, z_i')/τ} / Σ_{k≠i} e^{cos(z_i, z_k)/τ} ]

The 2b rows are both crops of the joint batch of all processes, so each image has 2(b − 1) negatives.
Reference: "A Simple Framework for Contrastive Learning of Visual Representations".
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from jepatlas.core.distributed import gather_rows, rank
from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.infonce import cosine_similarity
from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts, two_crops
from jepatlas.objectives.vision.heads import projector
from jepatlas.objectives.vision.joint_embedding_configs import SimCLRConfig

__all__ = ["SimCLR", "nt_xent"]


class SimCLR(CropObjective):
    def __init__(self, parts: VisionParts, config: SimCLRConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or SimCLRConfig()
        self.projector = projector(parts.dim, self.config.projector)

    def forward(self, batch: Crops, step: int) -> Loss:
        del step
        first, second = self.embed(self.projector, two_crops(batch))
        with torch.autocast(first.device.type, enabled=False):
            total = nt_xent(first, second, self.config.temperature)
        return Loss(total, {"nt_xent": total.detach()})


def nt_xent(first_bd: Tensor, second_bd: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of this process's rows over the rows of all processes."""
    rows = torch.cat([first_bd, second_bd])
    similarity = cosine_similarity(rows, gather_rows(rows), rows.new_tensor(temperature))
    own = torch.arange(len(rows), device=rows.device)
    start = rank() * len(rows)
    similarity = similarity.index_put((own, start + own), similarity.new_tensor(-math.inf))
    return F.cross_entropy(similarity, start + own.roll(len(first_bd)))
