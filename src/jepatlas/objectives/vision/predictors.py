"""What I-JEPA tells of a block it has not seen, from the tokens of the context and the places asked for.

- narrow: a transformer over the context's tokens and one mask token for each place, as published for I-JEPA;
- mlp:    W₂ GELU(LayerNorm(W₁ [h, s])), from the pooled context h and a place's position s, as published for
          Social-JEPA;
- linear: W [h, s]: the weakest there is, to compare with. What it tells of a place is the same for all images but for
          an offset that all places share.

All read what the encoder's latent is made of: the transformer attends to the class token and to all patches, the
others are given the pooled latent. So the loss reaches the latent, whether it is the class token or a mean.

References: "Self-Supervised Learning from Images with a Joint-Embedding Predictive Architecture"; "Social-JEPA:
Emergent Geometric Isomorphism in Independently Trained World Models".
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jepatlas.core.patches import take_rows
from jepatlas.nn.transformer import Transformer, sincos_positions
from jepatlas.objectives.vision.vision_configs import MLPPredictorConfig, NarrowPredictorConfig

__all__ = [
    "LinearPredictor",
    "MLPPredictor",
    "NarrowPredictor",
]

Grid = tuple[int, int]


class NarrowPredictor(nn.Module):
    def __init__(self, dim: int, config: NarrowPredictorConfig) -> None:
        super().__init__()
        self.width = config.width
        self.enter, self.leave = nn.Linear(dim, config.width), nn.Linear(config.width, dim)
        self.mask_token = nn.Parameter(torch.empty(config.width).normal_(std=0.02))
        self.body = Transformer(config.width, config.depth, config.heads)

    def forward(self, latent: Tensor, tokens: Tensor, seen: Tensor, asked: Tensor, grid: Grid) -> Tensor:
        """Each block is told for itself: (b, 1 + k, d), (b, k), (b, blocks, m) → (b, blocks, m, d)."""
        del latent  # of which the tokens say more
        b, blocks, _ = asked.shape
        places = sincos_positions(grid, self.width).to(tokens).expand(b, -1, -1)
        context = self.enter(tokens)  # the class token lies nowhere
        context = torch.cat([context[:, :1], context[:, 1:] + take_rows(places, seen)], 1)
        masks = self.mask_token + take_rows(places, asked.flatten(1)).unflatten(1, (blocks, -1))
        sequence = torch.cat([context[:, None].expand(-1, blocks, -1, -1), masks.to(context.dtype)], 2)
        told = self.body(sequence.flatten(0, 1))[:, tokens.shape[1] :]
        return self.leave(told).unflatten(0, (b, blocks))


class MLPPredictor(nn.Module):
    def __init__(self, dim: int, config: MLPPredictorConfig) -> None:
        super().__init__()
        # Two halves of one layer on [h, s]: h is multiplied once for an image, not once for each place.
        self.from_latent, self.from_place = nn.Linear(dim, config.width), nn.Linear(dim, config.width, bias=False)
        self.out = nn.Sequential(nn.LayerNorm(config.width), nn.GELU(), nn.Linear(config.width, dim))

    def forward(self, latent: Tensor, tokens: Tensor, seen: Tensor, asked: Tensor, grid: Grid) -> Tensor:
        """(b, d), (b, blocks, m) → (b, blocks, m, d)"""
        del tokens, seen  # what they hold must have gone into the latent
        places = self.from_place(sincos_positions(grid, latent.shape[-1]).to(latent))  # (n, width)
        return self.out(self.from_latent(latent)[:, None, None] + places[asked])


class LinearPredictor(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.from_latent, self.from_place = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)

    def forward(self, latent: Tensor, tokens: Tensor, seen: Tensor, asked: Tensor, grid: Grid) -> Tensor:
        """(b, d), (b, blocks, m) → (b, blocks, m, d)"""
        del tokens, seen
        places = self.from_place(sincos_positions(grid, latent.shape[-1]).to(latent))  # (n, d)
        return self.from_latent(latent)[:, None, None] + places[asked]
