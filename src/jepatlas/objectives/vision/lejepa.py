"""LeJEPA on crops: each crop tells the mean of the large ones, and the embeddings are held to an isotropic Gaussian.

    L = (1 − λ) · mean_v mean (z_v − μ)² + λ · mean_v SIGReg(z_v),   μ = mean of z over the crops of full size

No gradient is stopped, and there is no teacher. With two crops of full size this is the loss of `objectives/lejepa.py`,
additive form included. Reference: "LeJEPA: Provable and Scalable Self-Supervised Learning Without the Heuristics".
"""

from __future__ import annotations

import torch
from torch import Tensor

from jepatlas.core.normality import epps_pulley_null
from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.objective_configs import SIGRegShaping
from jepatlas.objectives.vision.multicrop import embed_all
from jepatlas.objectives.vision.parts import CropObjective, VisionParts
from jepatlas.objectives.vision.projectors import projector
from jepatlas.objectives.vision.vision_configs import CropLeJEPAConfig

__all__ = ["CropLeJEPA", "crop_invariance"]


class CropLeJEPA(CropObjective):
    """For any encoder that takes images of as many sizes as there are."""

    def __init__(self, parts: VisionParts, config: CropLeJEPAConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or CropLeJEPAConfig()
        self.projector = projector(parts.dim, self.config.projector)
        self.gaussian = SIGRegShaping(sigreg=self.config.loss.sigreg)

    def forward(self, batch: Crops, step: int) -> Loss:
        z_bvd = torch.stack(embed_all(self, self.projector, batch.all), 1)
        large = [index for index, crop in enumerate(batch.all) if crop.shape == batch.x.shape]
        with torch.autocast(z_bvd.device.type, enabled=False):
            return self.loss(z_bvd, large, step)

    def loss(self, z_bvd: Tensor, large: list[int], step: int) -> Loss:
        c = self.config.loss
        align = crop_invariance(z_bvd, large)
        gauss = self.gaussian.term(z_bvd, step, self.seed)
        keep = 1 - c.weight if c.form == "convex" else 1
        floor = gauss.new_tensor(epps_pulley_null(c.sigreg.knots, c.sigreg.limit))
        terms = {"invariance": align.detach(), "sigreg": gauss.detach(), "sigreg_null": floor}
        return Loss(keep * align + c.weight * gauss, terms)


def crop_invariance(z_bvd: Tensor, large: list[int]) -> Tensor:
    """mean (z − μ)² over images, crops and dimensions; μ is the mean of an image's large crops."""
    return (z_bvd - z_bvd[:, large].mean(1, keepdim=True)).square().mean()
