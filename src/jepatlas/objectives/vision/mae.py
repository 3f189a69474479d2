"""MAE: reconstruct the masked patches of an image (75%) from the visible ones.

    L = mean over masked patches i of ‖g(f(x_V))_i − n(x_i)‖² / pixels,   n: each patch standardised

The decoder g also attends to the class token, so that its output is trained as well.
Reference: "Masked Autoencoders Are Scalable Vision Learners".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.patches import patch_grid, patches, take_rows, unit_pixels
from jepatlas.core.records import Crops, Loss
from jepatlas.nn.transformer import Transformer, sincos_positions
from jepatlas.objectives.pair_objective import at_least_float32
from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts, token_encoder
from jepatlas.objectives.vision.masks import Grid, random_split, uniforms
from jepatlas.objectives.vision.prediction_configs import DecoderConfig, MAEConfig

__all__ = ["MAE", "Decoder"]


class MAE(CropObjective):
    def __init__(self, parts: VisionParts, config: MAEConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or MAEConfig()
        patch = token_encoder(parts.encoder, "MAE").patch
        self.decoder = Decoder(parts.dim, 3 * patch**2, self.config.decoder)

    def forward(self, batch: Crops, step: int) -> Loss:
        encoder = token_encoder(self.encoder, "MAE")
        grid = patch_grid((batch.x.shape[-2], batch.x.shape[-1]), encoder.patch)
        count = grid[0] * grid[1]
        kept = min(max(1, count - round(self.config.hidden * count)), count - 1)
        numbers = uniforms((len(batch.x), count), self.seed, "masks", step)
        visible, hidden = (index.to(batch.x.device) for index in random_split(numbers, kept))
        tokens = encoder.tokens(batch.x, keep=visible)
        drawn = take_rows(self.decoder(tokens[:, :1], grid, tokens[:, 1:], visible), hidden)
        with torch.autocast(drawn.device.type, enabled=False):
            drawn = at_least_float32(drawn)
            target = take_rows(patches(unit_pixels(batch.x, drawn.dtype), encoder.patch), hidden)
            loss = F.mse_loss(drawn, _standardise_patches(target) if self.config.normal else target)
        return Loss(loss, {"reconstruction": loss.detach()})


class Decoder(nn.Module):
    """Transformer that reconstructs all patches from one latent token and, optionally, visible patch tokens."""

    def __init__(self, dim: int, pixels: int, config: DecoderConfig) -> None:
        super().__init__()
        self.width = config.width
        self.enter, self.leave = nn.Linear(dim, config.width), nn.Linear(config.width, pixels)
        self.mask_token = nn.Parameter(torch.empty(config.width).normal_(std=0.02))
        self.body = Transformer(config.width, config.depth, config.heads)

    def forward(self, first: Tensor, grid: Grid, visible: Tensor | None = None, index: Tensor | None = None) -> Tensor:
        """(b, 1, d) → (b, n, pixels), with visible tokens (b, k, d) at the positions `index` (b, k)."""
        positions = sincos_positions(grid, self.width).to(first)
        tokens = self.mask_token.to(first.dtype).expand(len(first), len(positions), -1)
        if visible is not None and index is not None:
            known = self.enter(visible)
            tokens = tokens.to(known.dtype).scatter(1, index[..., None].expand_as(known), known)
        sequence = torch.cat([self.enter(first), (tokens + positions).to(tokens.dtype)], 1)
        return self.leave(self.body(sequence)[:, 1:])


def _standardise_patches(cut: Tensor) -> Tensor:
    """Standardise each patch by its own mean and standard deviation."""
    return (cut - cut.mean(-1, keepdim=True)) / (cut.var(-1, keepdim=True) + 1e-6).sqrt()
