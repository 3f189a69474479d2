"""Transformer with pre-norm blocks and a final norm, for image encoders, predictors and decoders.

    x ← x + Attention(LayerNorm(x)),   x ← x + MLP(LayerNorm(x))

References: "Attention Is All You Need"; "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["Block", "Transformer", "sincos_positions"]


class Transformer(nn.Module):
    """(b, n, width) → (b, n, width)"""

    def __init__(self, width: int, depth: int, heads: int, mlp_ratio: float = 4.0) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, heads, mlp_ratio) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def each(self, x: Tensor) -> Iterator[Tensor]:
        """The output of each block; the last one is normalised, as in `forward`."""
        for block in self.blocks[:-1]:
            x = block(x)
            yield x
        yield self.norm(self.blocks[-1](x))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, mlp_ratio: float = 4.0) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-6) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        hidden = int(width * mlp_ratio)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        for layer in self.modules():
            if isinstance(
                layer, nn.Linear
            ):  # depends on the width; a fixed standard deviation is too small for narrow layers
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self._attend(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))

    def _attend(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # each (b, heads, n, c)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).flatten(2))


def sincos_positions(grid: tuple[int, int], width: int, native: tuple[int, int] | None = None) -> Tensor:
    """Sine-cosine position embeddings of the patches of a grid, row by row: (rows · columns, width).

    A quarter of the width each is sin(y ω), cos(y ω), sin(x ω), cos(x ω), with ω = 10000^(−i / (width / 4)).
    Positions are measured in patches of the `native` grid, which every grid covers completely, as if the embeddings of
    the native grid were interpolated.
    """
    native = grid if native is None else native
    omega = 10000 ** (-torch.arange(width // 4, dtype=torch.float64) / (width // 4))
    y, x = ((torch.arange(n, dtype=torch.float64) + 0.5) * m / n - 0.5 for n, m in zip(grid, native, strict=True))
    parts = [
        turn(place[:, None] * omega).unsqueeze(axis).expand(*grid, -1)
        for place, axis in ((y, 1), (x, 0))
        for turn in (torch.sin, torch.cos)
    ]
    return cast(Tensor, torch.cat(parts, -1).flatten(0, 1).float())
