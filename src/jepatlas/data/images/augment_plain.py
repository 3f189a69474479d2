"""Augmentation step by step with kornia's functions, on any device: the plain twin of `augment_kernel`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from jepatlas.core.errors import require
from jepatlas.data.images.pipelines import Drawn

__all__ = ["augment_plain"]


def augment_plain(images: Tensor, drawn: Drawn, size: tuple[int, int], taps: int) -> Tensor:
    """Bytes (b, h, w, 3) → (b, 3, *size); every step is done to the rows that drew it, and to no others."""
    kornia: Any = require("kornia", "vision", "Augmenting images")
    x = torch.stack([_crop(image, box, size) for image, box in zip(images, drawn.boxes.tolist(), strict=True)])
    device = x.device
    flips, orders, factors, greys, sigmas, solarised = (
        torch.as_tensor(part, device=device)
        for part in (drawn.flips, drawn.orders, drawn.factors, drawn.greys, drawn.sigmas, drawn.solarised)
    )
    x = torch.where(flips[:, None, None, None], x.flip(3), x)
    for turn in range(4):
        for which, adjust in enumerate(_adjustments(kornia)):
            _on(x, orders[:, turn] == which, lambda part, rows, f=adjust, w=which: f(part, factors[rows, w]))
    _on(x, greys, lambda part, _: kornia.color.rgb_to_grayscale(part).expand_as(part))
    _on(x, sigmas > 0, lambda part, rows: kornia.filters.gaussian_blur2d(part, taps, sigmas[rows, None].expand(-1, 2)))
    _on(x, solarised, lambda part, _: kornia.enhance.solarize(part, 0.5))
    return x


def _crop(image: Tensor, box: list[int], size: tuple[int, int]) -> Tensor:
    top, left, height, width = box
    part = image[top : top + height, left : left + width].permute(2, 0, 1)[None].float() / 255
    return interpolate(part, size, mode="bilinear", align_corners=False)[0]


def _adjustments(kornia: Any) -> tuple[Callable[[Tensor, Tensor], Tensor], ...]:
    """Brightness, contrast, saturation and hue as kornia's ColorJitter has them, which are torchvision's and PIL's."""
    enhance = kornia.enhance
    return (
        enhance.adjust_brightness_accumulative,
        enhance.adjust_contrast_with_mean_subtraction,
        enhance.adjust_saturation_with_gray_subtraction,
        lambda x, turn: enhance.adjust_hue(x, 2 * math.pi * turn),
    )


def _on(x: Tensor, chosen: Tensor, step: Callable[[Tensor, Tensor], Tensor]) -> None:
    rows = chosen.nonzero()[:, 0]
    if len(rows):
        x[rows] = step(x[rows], rows)
