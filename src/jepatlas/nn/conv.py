"""A small convolutional network for pixels: strided convolutions, then two linear layers.

The first convolution (7×7) makes the picture four times smaller, each further one (3×3) twice; most of the time of a
network that begins more finely goes into its first layer, on a CPU two thirds. The last map is flattened, not pooled,
because *where* something is is what a world model must know.

`norm` is a choice and not a detail: without batch normalisation, a published share of 36% of the runs on Reacher
collapses ("When Does LeJEPA Learn a World Model?").
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError

__all__ = ["ConvConfig", "ConvEncoder"]

Norm = Literal["batch", "group", "none"]
STEM = 4  # how many times smaller the first convolution makes a picture
GROUP = 8  # channels that are normalised together


@dataclass(frozen=True)
class ConvConfig:
    kind: ClassVar[str] = "conv"

    channels: tuple[int, ...] = (32, 64, 64)
    """Of each convolution; the first makes height and width four times smaller, every other one twice."""
    hidden: int = 256
    """Units between the last convolution and the latents."""
    norm: Norm = "batch"
    """What normalises the channels: batch statistics, groups of channels within an image, or nothing."""

    def __post_init__(self) -> None:
        check_literals(self)
        if not self.channels or min(self.channels) < 1 or self.hidden < 1:
            raise InputError(
                f"A convolutional encoder needs positive channels and hidden units, but {self.channels} and "
                f"{self.hidden} were given."
            )
        if self.norm == "group" and any(width % GROUP for width in self.channels):
            raise InputError(
                f"Groups of {GROUP} channels are normalised together, but the channels are "
                f"{self.channels}. Give multiples of {GROUP}, or --norm batch."
            )

    def build(self, in_shape: Sequence[int], out_dim: int) -> ConvEncoder:
        return ConvEncoder(in_shape, out_dim, self)


class ConvEncoder(nn.Module):
    """(b, 3, height, width) → (b, d); bytes are taken as they are stored, and brought to −½ … ½ here."""

    def __init__(self, in_shape: Sequence[int], out_dim: int, config: ConvConfig | None = None) -> None:
        super().__init__()
        config = config or ConvConfig()
        if len(in_shape) != 3:
            raise InputError(f"Pixels have the shape (channels, height, width), but {tuple(in_shape)} was given.")
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
