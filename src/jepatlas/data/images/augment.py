"""Augmentation of images: bytes (b, height, width, 3) and what a pipeline drew become (b, 3, height, width) in 0 … 1.

On a CPU by one compiled pass for each image, elsewhere by kornia's functions; both give the same but for rounding.
For an image of 64 × 64 pixels kornia's own classes take about 1.7 ms of one core, and the compiled pass 0.03 ms.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.images.augment_plain import augment_plain
from jepatlas.data.images.pipelines import Drawn, Pipeline, draw

__all__ = ["augment", "augmented", "blur_taps", "blur_weights", "colour"]


def augment(images: Tensor, drawn: Drawn, size: tuple[int, int], *, compiled: bool | None = None) -> Tensor:
    """Images as drawn, at `size` (height, width). `compiled` is for CPUs, and what they do where it is not given."""
    compiled = images.device.type == "cpu" if compiled is None else compiled
    if not compiled:
        return augment_plain(images, drawn, size, blur_taps(size))
    from jepatlas.data.images.augment_kernel import augment_rows  # noqa: PLC0415  (numba takes a second to import)

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
    """Images (b, h, w, 3) or (b, h, w), each augmented once: the view of them that a pipeline gives.

    What is drawn depends on (seed, name) and the image's number in its data set alone; so two pipelines show the same
    images, and an image looks the same in whatever part of the data set it is asked for.
    """
    images = colour(images)
    shape = (images.shape[1], images.shape[2])
    each = [draw(pipeline, 1, shape, numpy_generator(seed, name, number)) for number in numbers.tolist()]
    drawn = Drawn(*(np.concatenate(parts) for parts in zip(*(vars(one).values() for one in each), strict=True)))
    return augment(torch.from_numpy(images), drawn, size)


def colour(images: np.ndarray) -> np.ndarray:
    """Bytes (b, h, w, 3) in memory, one's own to write to; grey images (b, h, w) have their value in every channel."""
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise InputError(
            f"Images are bytes (n, height, width, 3) or, in grey, (n, height, width), but these are {images.dtype} of "
            f"shape {images.shape}."
        )
    return np.require(images, requirements=["C", "W"]) if images.ndim == 4 else np.repeat(images[..., None], 3, axis=3)


def blur_taps(size: tuple[int, int]) -> int:
    """A tenth of the image, odd, and at least three pixels, as in SimCLR.

    >>> [blur_taps((side, side)) for side in (24, 64, 224)]
    [3, 7, 23]
    """
    return max(3, min(size) // 10 | 1)


def blur_weights(sigmas: np.ndarray, taps: int) -> np.ndarray:
    """w_j ∝ exp(−j² / 2σ²), which sum to 1, for each σ: (b, taps), all 0 where σ is."""
    places = np.arange(taps) - taps // 2
    weights = np.exp(-np.square(places) / (2 * np.square(np.where(sigmas > 0, sigmas, 1.0))[:, None]))
    return np.where(sigmas[:, None] > 0, weights / weights.sum(1, keepdims=True), 0).astype(np.float32)
