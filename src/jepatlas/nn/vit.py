"""Vision transformer: an image as a sequence of patches and one class token, with position embeddings.

    h = pool(Transformer([c, E p₁ + s₁, …, E pₙ + sₙ])),   pool: the class token, or the mean of the patches

Pixels are standardised per channel before they are embedded. Otherwise dark or low-contrast images would hardly change
the tokens relative to their positions, and objectives on tokens would start near a collapse. The positions sᵢ are fixed
sines and cosines, so a network accepts images of any size that its patches divide. Patches that an objective drops are
not embedded: a share r of the tokens costs about a share r of the computation.

Reference: "An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale".
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.patches import patch_grid, patches, take_rows, unit_pixels
from jepatlas.nn.network_configs import ViTConfig
from jepatlas.nn.transformer import Transformer, sincos_positions

__all__ = ["ViT"]


class ViT(nn.Module):
    """(b, 3, height, width) → (b, width)

    uint8 images or values in 0 … 1 are standardised to (x − mean) / std; by default to −1 … 1.
    """

    positions: Tensor
    mean: Tensor
    std: Tensor
    constant_buffers = ("positions", "mean", "std")

    def __init__(
        self,
        in_shape: Sequence[int],
        config: ViTConfig | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        config = config or ViTConfig()
        if len(in_shape) != 3:
            raise InputError(f"in_shape must be (channels, height, width), but is {tuple(in_shape)}.")
        self.channels, self.width, self.patch, self.pool = in_shape[0], config.width, config.patch, config.pool
        self.grid = patch_grid((in_shape[1], in_shape[2]), config.patch)
        self.embed = nn.Linear(in_shape[0] * config.patch**2, config.width)
        self.class_token = nn.Parameter(torch.empty(config.width))
        self.body = Transformer(config.width, config.depth, config.heads, config.mlp_ratio)
        self.register_buffer("positions", sincos_positions(self.grid, config.width), persistent=False)
        for name, given in (("mean", mean), ("std", std)):  # saved with the weights, which depend on them
            self.register_buffer(name, self._channel_values(name, given))
        nn.init.xavier_uniform_(self.embed.weight)
        nn.init.zeros_(self.embed.bias)
        nn.init.normal_(self.class_token, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        return self.pooled(self.tokens(x))

    def tokens(
        self, x: Tensor, keep: Tensor | None = None, masked: Tensor | None = None, mask_token: Tensor | None = None
    ) -> Tensor:
        """All tokens after the last norm, the class token first: (b, 1 + k, width).

        keep: (b, k) indices of the patches to encode. masked: (b, n), true where `mask_token` (width,) replaces a
        patch.
        """
        return self.body(self._sequence(x, keep, masked, mask_token))

    def layers(self, x: Tensor) -> list[Tensor]:
        """The pooled latent after each block; the last one is that of `forward`."""
        return [self.pooled(tokens) for tokens in self.body.each(self._sequence(x))]

    def pooled(self, tokens: Tensor) -> Tensor:
        """(b, 1 + k, width) → (b, width)"""
        return tokens[:, 0] if self.pool == "cls" else tokens[:, 1:].mean(1)

    def _sequence(
        self, x: Tensor, keep: Tensor | None = None, masked: Tensor | None = None, mask_token: Tensor | None = None
    ) -> Tensor:
        if x.ndim != 4 or x.shape[1] != self.channels:
            raise InputError(
                f"Images must have the shape (n, {self.channels}, height, width), but have {tuple(x.shape)}."
            )
        cut, positions = patches(x, self.patch), self._positions_of(x)
        if keep is not None:
            cut, positions = take_rows(cut, keep), positions[keep]
        tokens = self.embed(self._standardise(cut))
        if masked is not None and mask_token is not None:
            hidden = masked if keep is None else masked.gather(1, keep)
            tokens = torch.where(hidden[..., None], mask_token.to(tokens.dtype), tokens)
        first = self.class_token.to(tokens.dtype).expand(x.shape[0], 1, -1)  # len(x) cannot be exported
        return torch.cat([first, tokens + positions.to(tokens.dtype)], 1)

    def _standardise(self, cut: Tensor) -> Tensor:
        """Standardise the pixels of patches: (b, k, channels · patch²)."""
        mean, std = (one.repeat_interleave(self.patch**2) for one in (self.mean, self.std))
        return (unit_pixels(cut, self.embed.weight.dtype) - mean) / std

    def _channel_values(self, name: str, given: Sequence[float] | None) -> Tensor:
        values = [0.5] * self.channels if given is None else list(given)
        if len(values) != self.channels or (name == "std" and min(values) <= 0):
            raise InputError(
                f"{name} must have {self.channels} values, one per channel, and std must be positive, but is {given}."
            )
        return torch.tensor(values, dtype=torch.float32)

    def _positions_of(self, x: Tensor) -> Tensor:
        grid = patch_grid((x.shape[-2], x.shape[-1]), self.patch)
        if grid == self.grid:
            return self.positions
        return sincos_positions(grid, self.width, self.grid).to(self.positions)
