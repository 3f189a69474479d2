"""Images for reports: conversion to bytes, reduction to the size of a page, and choice of rows.

    (b, h, w)                   grey
    (b, h, w, 3), (b, 3, h, w)  colour; a single channel is grey

Numbers between 0 and 1, or between 0 and 255, are brightness in that range; others are scaled from their minimum to
their maximum.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.linear import subsample

__all__ = ["LARGEST", "as_pictures", "picture_range", "shrunk", "spread_rows"]

LARGEST = 96  # largest height and width of a reduced picture
LEAST = 4  # narrower arrays are tables of numbers, not images


def as_pictures(images: np.ndarray, limits: tuple[float, float] | None = None) -> np.ndarray | None:
    """Images as (b, h, w, 3) bytes; None for arrays of other shapes, or with values that are not finite.

    `limits` are the values of black and white, by default those of `picture_range`.

    >>> as_pictures(np.ones((2, 8, 8))).shape, as_pictures(np.ones((2, 3, 8, 6))).shape, as_pictures(np.ones((2, 8)))
    ((2, 8, 8, 3), (2, 8, 6, 3), None)
    """
    channels_last = _channels_last(images)
    if channels_last is None or not channels_last.size or not np.isfinite(channels_last).all():
        return None
    low, high = picture_range(channels_last) if limits is None else limits
    levels = (channels_last.astype(np.float64) - low) / ((high - low) or 1.0)
    return np.repeat((255 * levels).round().astype(np.uint8), 3 // channels_last.shape[3], axis=3)


def _channels_last(images: np.ndarray) -> np.ndarray | None:
    if images.dtype.kind not in "fiub" or images.ndim not in (3, 4):
        return None
    if images.ndim == 3:
        images = images[..., None]
    elif images.shape[3] not in (1, 3):
        images = np.moveaxis(images, 1, 3)
    return images if images.shape[3] in (1, 3) and min(images.shape[1:3]) >= LEAST else None


def picture_range(images: np.ndarray) -> tuple[float, float]:
    """The values that are shown as black and as white.

    >>> picture_range(np.array([0.0, 0.7])), picture_range(np.array([0, 200])), picture_range(np.array([-1.0, 2.0]))
    ((0.0, 1.0), (0.0, 255.0), (-1.0, 2.0))
    """
    low, high = float(images.min()), float(images.max())
    if low >= 0 and high <= 255:
        return 0.0, 1.0 if images.dtype.kind == "b" or (images.dtype.kind == "f" and high <= 1) else 255.0
    return low, high


def shrunk(images: np.ndarray) -> np.ndarray:
    """Images (b, h, w, 3) in bytes, reduced by means over squares of pixels to at most `LARGEST` pixels."""
    factor = -(-max(images.shape[1:3]) // LARGEST)
    if factor == 1:
        return images
    count, height, width, channels = images.shape
    rows, columns = height // factor, width // factor
    squares = images[:, : rows * factor, : columns * factor].reshape(count, rows, factor, columns, factor, channels)
    return squares.mean((2, 4)).round().astype(np.uint8)


def spread_rows(count: int, most: int, labels: np.ndarray | None = None) -> np.ndarray:
    """At most `most` of `count` rows, spread evenly, and over the labels if given.

    >>> spread_rows(5, 2, np.array(["mug", "car", "car", "car", "mug"]))
    array([1, 4])
    """
    order = np.arange(count) if labels is None else np.argsort(labels, kind="stable")
    return subsample(order, most)
