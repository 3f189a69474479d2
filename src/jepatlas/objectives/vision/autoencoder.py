"""Autoencoder: reconstruct the whole image from its latent.

    L = ‖g(f(x)) − x‖² / pixels,   x scaled to −1 … 1

f receives all patches. g is MAE's decoder with the pooled latent as its only input, so the latent is the bottleneck.
This is the pixel-level baseline of "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from jepatlas.core.patches import patch_grid, patches, unit_pixels
from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.pair_objective import at_least_float32
from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts
from jepatlas.objectives.vision.mae import Decoder
from jepatlas.objectives.vision.prediction_configs import AutoencoderConfig

__all__ = ["Autoencoder"]


class Autoencoder(CropObjective):
    """For any encoder, with or without patches."""

    def __init__(self, parts: VisionParts, config: AutoencoderConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or AutoencoderConfig()
        self.decoder = Decoder(parts.dim, 3 * self.config.patch**2, self.config.decoder)

    def forward(self, batch: Crops, step: int) -> Loss:
        del step
        grid = patch_grid((batch.x.shape[-2], batch.x.shape[-1]), self.config.patch)
        drawn = self.decoder(self.encode(batch.x)[:, None], grid)
        with torch.autocast(drawn.device.type, enabled=False):
            drawn = at_least_float32(drawn)
            target = patches(unit_pixels(batch.x, drawn.dtype) * 2 - 1, self.config.patch)
            loss = F.mse_loss(drawn, target)
        return Loss(loss, {"reconstruction": loss.detach()})
