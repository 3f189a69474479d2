"""A transformer that draws patches from latents: what the masked and the plain autoencoder share."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jepatlas.nn.transformer import Transformer, sincos_positions
from jepatlas.objectives.vision.vision_configs import DecoderConfig

__all__ = ["Decoder", "normal_patches"]

Grid = tuple[int, int]


class Decoder(nn.Module):
    def __init__(self, dim: int, pixels: int, config: DecoderConfig) -> None:
        super().__init__()
        self.width = config.width
        self.enter, self.leave = nn.Linear(dim, config.width), nn.Linear(config.width, pixels)
        self.mask_token = nn.Parameter(torch.empty(config.width).normal_(std=0.02))
        self.body = Transformer(config.width, config.depth, config.heads)

    def forward(self, first: Tensor, grid: Grid, seen: Tensor | None = None, index: Tensor | None = None) -> Tensor:
        """(b, 1, d) → (b, n, pixels): from the first token, and those seen (b, k, d) at the places `index` (b, k)."""
        places = sincos_positions(grid, self.width).to(first)
        patches = self.mask_token.to(first.dtype).expand(len(first), len(places), -1)
        if seen is not None and index is not None:
            known = self.enter(seen)
            patches = patches.to(known.dtype).scatter(1, index[..., None].expand_as(known), known)
        sequence = torch.cat([self.enter(first), (patches + places).to(patches.dtype)], 1)
        return self.leave(self.body(sequence)[:, 1:])


def normal_patches(cut: Tensor) -> Tensor:
    """Each patch less its mean, over its standard deviation: structure counts, not brightness and contrast."""
    return (cut - cut.mean(-1, keepdim=True)) / (cut.var(-1, keepdim=True) + 1e-6).sqrt()
