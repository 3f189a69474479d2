"""LeJEPA on crops: each crop predicts the mean of the large crops, and embeddings follow an isotropic Gaussian.

    L = (1 − λ) · mean_v mean (z_v − μ)² + λ · mean_v SIGReg(z_v),   μ = mean of z over the crops of full size

There is no stop-gradient and no teacher. With two crops of full size this equals the loss of `objectives/lejepa.py`,
including the additive form. Reference: "LeJEPA: Provable and Scalable Self-Supervised Learning Without the Heuristics".
"""

from __future__ import annotations

import torch
from torch import Tensor

from jepatlas.core.normality import epps_pulley_null
from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.shaping import sigreg_shaping
from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts, embed_crops
from jepatlas.objectives.vision.heads import projector
from jepatlas.objectives.vision.joint_embedding_configs import CropLeJEPAConfig

__all__ = ["CropLeJEPA", "crop_invariance"]


class CropLeJEPA(CropObjective):
    """For encoders that accept images of all crop sizes."""

    def __init__(self, parts: VisionParts, config: CropLeJEPAConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or CropLeJEPAConfig()
        self.projector = projector(parts.dim, self.config.projector)

    def forward(self, batch: Crops, step: int) -> Loss:
        z_bvd = torch.stack(embed_crops(self, self.projector, batch.all), 1)
        large = [index for index, crop in enumerate(batch.all) if crop.shape == batch.x.shape]
        with torch.autocast(z_bvd.device.type, enabled=False):
            return self.loss(z_bvd, large, step)

    def loss(self, z_bvd: Tensor, large: list[int], step: int) -> Loss:
        c = self.config.loss
        invariance = crop_invariance(z_bvd, large)
        gauss = sigreg_shaping(z_bvd, c.sigreg, step, self.seed)
        invariance_weight = 1 - c.weight if c.form == "convex" else 1
        floor = gauss.new_tensor(epps_pulley_null(c.sigreg.knots, c.sigreg.limit))
        terms = {"invariance": invariance.detach(), "sigreg": gauss.detach(), "sigreg_null": floor}
        return Loss(invariance_weight * invariance + c.weight * gauss, terms)


def crop_invariance(z_bvd: Tensor, large: list[int]) -> Tensor:
    """mean (z − μ)² over images, crops and dimensions; μ is the mean over an image's large crops."""
    return (z_bvd - z_bvd[:, large].mean(1, keepdim=True)).square().mean()
