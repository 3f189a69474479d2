"""MAE: draw the hidden three quarters of an image's patches from the visible quarter.

    L = mean over hidden patches i of ‖g(f(x_V))_i − n(x_i)‖² / pixels,   n: each patch normalised by itself

The decoder g attends to the class token, so its last output is trained, too.
Reference: "Masked Autoencoders Are Scalable Vision Learners".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from jepatlas.core.patches import patch_grid, patches, take_rows, unit_pixels
from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.pairwise import at_least_float32
from jepatlas.objectives.vision.decoder import Decoder, normal_patches
from jepatlas.objectives.vision.masks import random_split, uniforms
from jepatlas.objectives.vision.parts import CropObjective, VisionParts, with_tokens
from jepatlas.objectives.vision.vision_configs import MAEConfig

__all__ = ["MAE"]


class MAE(CropObjective):
    def __init__(self, parts: VisionParts, config: MAEConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or MAEConfig()
        patch = with_tokens(parts.encoder, "MAE").patch
        self.decoder = Decoder(parts.dim, 3 * patch**2, self.config.decoder)

    def forward(self, batch: Crops, step: int) -> Loss:
        encoder = with_tokens(self.encoder, "MAE")
        grid = patch_grid((batch.x.shape[-2], batch.x.shape[-1]), encoder.patch)
        count = grid[0] * grid[1]
        kept = min(max(1, count - round(self.config.hidden * count)), count - 1)
        numbers = uniforms((len(batch.x), count), self.seed, "masks", step)
        keep, hidden = (index.to(batch.x.device) for index in random_split(numbers, kept))
        tokens = encoder.tokens(batch.x, keep=keep)
        drawn = take_rows(self.decoder(tokens[:, :1], grid, tokens[:, 1:], keep), hidden)
        with torch.autocast(drawn.device.type, enabled=False):
            drawn = at_least_float32(drawn)
            truth = take_rows(patches(unit_pixels(batch.x, drawn.dtype), encoder.patch), hidden)
            loss = F.mse_loss(drawn, normal_patches(truth) if self.config.normal else truth)
        return Loss(loss, {"reconstruction": loss.detach()})
