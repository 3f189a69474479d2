"""The autoencoder: draw the whole image from its latent alone, and compare pixels.

    L = ‖g(f(x)) − x‖² / pixels,   x brought to −1 … 1

f sees all patches, and g is MAE's decoder without any token but the pooled latent: so the latent is the bottleneck.
It is the pixel-level baseline of "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from jepatlas.core.patches import patch_grid, patches, unit_pixels
from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.pairwise import at_least_float32
from jepatlas.objectives.vision.decoder import Decoder
from jepatlas.objectives.vision.parts import CropObjective, VisionParts
from jepatlas.objectives.vision.vision_configs import AutoencoderConfig

__all__ = ["Autoencoder"]


class Autoencoder(CropObjective):
    """For any encoder, with patches or without."""

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
            truth = patches(unit_pixels(batch.x, drawn.dtype) * 2 - 1, self.config.patch)
            loss = F.mse_loss(drawn, truth)
        return Loss(loss, {"reconstruction": loss.detach()})
