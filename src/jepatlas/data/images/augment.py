"""Augmentation of images: uint8 (b, height, width, 3) → float32 (b, 3, height, width) in 0 … 1.

On the CPU one compiled pass per image (`augment_kernels.py`), on other devices kornia's functions; both agree up to
rounding. For 64 × 64 pixels, kornia's own classes take about 1.7 ms per image on one core, the compiled pass 0.03 ms.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from jepatlas.core.errors import require
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.images.decoding import rgb_bytes
from jepatlas.data.images.pipelines import Drawn, Pipeline, draw

__all__ = ["augment", "augment_with_kornia", "augmented", "blur_taps", "blur_weights"]


def augment(images: Tensor, drawn: Drawn, size: tuple[int, int], *, compiled: bool | None = None) -> Tensor:
    """Apply the drawn augmentations at `size` (height, width). `compiled` defaults to True on the CPU."""
    compiled = images.device.type == "cpu" if compiled is None else compiled
    if not compiled:
        return augment_with_kornia(images, drawn, size, blur_taps(size))
    from jepatlas.data.images.augment_kernels import augment_rows  # noqa: PLC0415  (numba takes a second to import)

    out = np.empty((len(images), 3, *size), np.float32)
    augment_rows(
        images.contiguous().numpy(),
        drawn.boxes,
        drawn.flips,
        drawn.orders,
        drawn.factors,
        drawn.greys,
        blur_weights(drawn.sigmas, blur_taps(size)),
        drawn.solarised,
        out,
    )
    return torch.from_numpy(out)


def augmented(
    images: np.ndarray, pipeline: Pipeline, size: tuple[int, int], numbers: np.ndarray, *, seed: int, name: str
) -> Tensor:
    """One augmented view of each image (b, h, w, 3) or (b, h, w).

    The augmentation depends only on (seed, name) and the number of the image in its data set, not on the other images
    of the call.
    """
    images = rgb_bytes(images)
    shape = (images.shape[1], images.shape[2])
    each = [vars(draw(pipeline, 1, shape, numpy_generator(seed, name, number))) for number in numbers.tolist()]
    drawn = Drawn(**{field: np.concatenate([one[field] for one in each]) for field in each[0]})
    return augment(torch.from_numpy(images), drawn, size)


def blur_taps(size: tuple[int, int]) -> int:
    """Width of the blur kernel: a tenth of the image, odd and at least 3, as in SimCLR.

    >>> [blur_taps((side, side)) for side in (24, 64, 224)]
    [3, 7, 23]
    """
    return max(3, min(size) // 10 | 1)


def blur_weights(sigmas: np.ndarray, taps: int) -> np.ndarray:
    """Normalised w_j ∝ exp(−j² / 2σ²) for each σ: (b, taps); zeros where σ = 0."""
    offsets = np.arange(taps) - taps // 2
    weights = np.exp(-np.square(offsets) / (2 * np.square(np.where(sigmas > 0, sigmas, 1.0))[:, None]))
    return np.where(sigmas[:, None] > 0, weights / weights.sum(1, keepdims=True), 0).astype(np.float32)


def augment_with_kornia(images: Tensor, drawn: Drawn, size: tuple[int, int], taps: int) -> Tensor:
    """The reference implementation on any device: uint8 (b, h, w, 3) → (b, 3, *size)."""
    kornia = require("kornia", "vision", "Augmenting images")
    crops = [_crop(image, box, size) for image, box in zip(images, drawn.boxes.tolist(), strict=True)]
    x = torch.stack(crops)
    flips, orders, factors, greys, sigmas, solarised = (
        torch.as_tensor(part, device=x.device)
        for part in (drawn.flips, drawn.orders, drawn.factors, drawn.greys, drawn.sigmas, drawn.solarised)
    )
    x = torch.where(flips[:, None, None, None], x.flip(3), x)
    # As in kornia's ColorJitter, which agrees with torchvision and PIL.
    adjustments = (
        kornia.enhance.adjust_brightness_accumulative,
        kornia.enhance.adjust_contrast_with_mean_subtraction,
        kornia.enhance.adjust_saturation_with_gray_subtraction,
        lambda part, turn: kornia.enhance.adjust_hue(part, 2 * math.pi * turn),
    )
    for position in range(4):
        for which, adjust in enumerate(adjustments):
            _apply_to(x, orders[:, position] == which, lambda part, rows, f=adjust, w=which: f(part, factors[rows, w]))
    _apply_to(x, greys, lambda part, _: kornia.color.rgb_to_grayscale(part).expand_as(part))
    _apply_to(
        x,
        sigmas > 0,
        lambda part, rows: kornia.filters.gaussian_blur2d(part, taps, sigmas[rows, None].expand(-1, 2)),
    )
    _apply_to(x, solarised, lambda part, _: kornia.enhance.solarize(part, 0.5))
    return x


def _crop(image: Tensor, box: list[int], size: tuple[int, int]) -> Tensor:
    top, left, height, width = box
    part = image[top : top + height, left : left + width].permute(2, 0, 1)[None].float() / 255
    return interpolate(part, size, mode="bilinear", align_corners=False)[0]


def _apply_to(x: Tensor, mask: Tensor, operation: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Apply an operation to the selected images in place."""
    rows = mask.nonzero()[:, 0]
    if len(rows):
        x[rows] = operation(x[rows], rows)
