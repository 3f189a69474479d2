"""Convolutional encoder for pixels: strided convolutions, then two linear layers.

The first convolution (7×7) reduces the resolution by 4, each further one (3×3) by 2. Networks that start at a finer
resolution spend most of their time in the first layer (two thirds on a CPU). The last feature map is flattened rather
than pooled, because a world model needs positions.

The choice of `norm` matters: without batch normalisation, a published 36% of the runs on Reacher collapse ("When Does
LeJEPA Learn a World Model?").
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.nn.network_configs import GROUP, ConvConfig, Norm

__all__ = ["ConvEncoder"]

STEM = 4  # stride of the first convolution


class ConvEncoder(nn.Module):
    """(b, 3, height, width) → (b, d); uint8 images are scaled to −½ … ½."""

    def __init__(self, in_shape: Sequence[int], out_dim: int, config: ConvConfig | None = None) -> None:
        super().__init__()
        config = config or ConvConfig()
        if len(in_shape) != 3:
            raise InputError(f"in_shape must be (channels, height, width), but is {tuple(in_shape)}.")
        first, height, width = in_shape
        widths, strides = (first, *config.channels), (STEM, *(2 for _ in config.channels[1:]))
        for stride in strides:
            height, width = -(-height // stride), -(-width // stride)
        pairs = zip(itertools.pairwise(widths), strides, strict=True)
        blocks = [_block(*pair, stride, config.norm) for pair, stride in pairs]
        self.features = nn.Sequential(*blocks, nn.Flatten())
        flat = widths[-1] * height * width
        middle = nn.BatchNorm1d(config.hidden) if config.norm == "batch" else nn.Identity()
        self.head = nn.Sequential(nn.Linear(flat, config.hidden), middle, nn.ReLU(), nn.Linear(config.hidden, out_dim))

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype == torch.uint8:
            x = x.float() / 255 - 0.5
        return self.head(self.features(x))


def _block(in_channels: int, out_channels: int, stride: int, norm: Norm) -> nn.Module:
    normalise = {
        "batch": lambda: nn.BatchNorm2d(out_channels),
        "group": lambda: nn.GroupNorm(out_channels // GROUP, out_channels),
        "none": nn.Identity,
    }[norm]()
    size = 2 * stride - 1
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, size, stride, padding=stride - 1), normalise, nn.ReLU(inplace=True)
    )
