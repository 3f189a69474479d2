"""The mean and the deviation of pixels, channel by channel: what networks have them standardised by."""

from __future__ import annotations

import numpy as np

from jepatlas.core.linear import subsample
from jepatlas.data.images.augment import colour

__all__ = ["pixel_scale"]

MOST = 1000  # images: the deviation of millions of pixels is known to a thousandth
FLAT = 1 / 255  # images without contrast are not blown up to more than a byte's step


def pixel_scale(images: np.ndarray, rows: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each of three channels, in units 0 … 1, over an even choice of these rows.

    >>> pixel_scale(np.full((3, 2, 2, 3), 51, np.uint8), np.arange(3))[0]
    (0.2, 0.2, 0.2)
    """
    chosen = subsample(rows, MOST)
    counts = np.zeros((3, 256), np.int64)
    for row in chosen.tolist():  # one by one: a thousand large images need not lie in memory
        pixels = colour(np.asarray(images[row : row + 1])).reshape(-1, 3)
        counts += np.stack([np.bincount(channel, minlength=256) for channel in pixels.T])
    value, share = np.arange(256) / 255, counts / counts.sum(1, keepdims=True)
    mean = share @ value
    std = np.maximum(np.sqrt(np.maximum(share @ value**2 - mean**2, 0)), FLAT)
    return tuple(mean.round(6).tolist()), tuple(std.round(6).tolist())
