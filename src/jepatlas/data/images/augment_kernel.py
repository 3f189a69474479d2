"""Augmentation on a CPU, compiled: every image goes through its whole pipeline while it lies in the cache.

The plain twin, step by step with kornia's functions, is in `augment_plain`; tests hold them equal. Images are planar,
(3, height, width), from 0 to 1, and every step writes over what the last one left.
"""

from __future__ import annotations

import numba
import numpy as np

from jepatlas.data.images.colour_kernel import FAST, ZERO, adjust, saturate, solarise

__all__ = ["augment_rows"]


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def augment_rows(  # noqa: PLR0917  (compiled functions take no keywords)
    images: np.ndarray,  # (b, height, width, 3) bytes
    boxes: np.ndarray,  # (b, 4) top, left, height and width of the crop
    flips: np.ndarray,  # (b,)
    orders: np.ndarray,  # (b, 4) which of brightness, contrast, saturation and hue comes when; −1 for none
    factors: np.ndarray,  # (b, 4) of these four
    greys: np.ndarray,  # (b,)
    blurs: np.ndarray,  # (b, taps) the blur's weights; the first is 0 where there is none
    solarised: np.ndarray,  # (b,)
    out: np.ndarray,  # (b, 3, height, width)
) -> None:
    for row in range(len(images)):
        _crop(images[row], boxes[row], flips[row], out[row])
        planes = out[row].reshape(3, -1)
        for order in orders[row]:
            if order >= 0:
                adjust(planes, order, factors[row, order])
        if greys[row]:
            saturate(planes, ZERO)
        if blurs[row, 0] > 0:
            _blur(out[row], blurs[row])
        if solarised[row]:
            solarise(planes)


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def _crop(image: np.ndarray, box: np.ndarray, flip: bool, out: np.ndarray) -> None:
    """Bilinear, between the centres of pixels; beyond the outermost centres of the crop their value."""
    top, left, height, width = box[0], box[1], box[2], box[3]
    rows, columns = out.shape[1:]
    across = np.empty((3, height, columns), np.float32)
    for column in range(columns):
        target = columns - 1 - column if flip else column
        first, second, weight = _between(column, width, columns)
        for row in range(height):
            for channel in range(3):
                a = np.float32(image[top + row, left + first, channel])
                b = np.float32(image[top + row, left + second, channel])
                across[channel, row, target] = a + weight * (b - a)
    scale = np.float32(1 / 255)
    for row in range(rows):
        first, second, weight = _between(row, height, rows)
        for channel in range(3):
            for column in range(columns):
                a, b = across[channel, first, column], across[channel, second, column]
                out[channel, row, column] = scale * (a + weight * (b - a))


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def _between(place: int, given: int, wanted: int) -> tuple[int, int, np.float32]:
    """The two of `given` pixels that one of `wanted` lies between, and the second one's weight."""
    centre = max(0.0, (place + 0.5) * given / wanted - 0.5)
    first = min(int(centre), given - 1)
    return first, min(first + 1, given - 1), np.float32(centre - first)


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def _blur(image: np.ndarray, weights: np.ndarray) -> None:
    """Along columns, then along rows; at the border the image is reflected.

    Planes are padded and then taken as one long line, so that each tap is one long sum of two lines.
    """
    rows, columns = image.shape[1:]
    half = len(weights) // 2
    stride = columns + 2 * half
    padded = np.empty((rows + 2 * half) * stride, np.float32)
    for channel in range(3):
        for row in range(rows + 2 * half):
            source = image[channel, _reflected(row - half, rows)]
            line = padded[row * stride : (row + 1) * stride]
            line[half : half + columns] = source
            for place in range(half):
                line[place] = source[_reflected(place - half, columns)]
                line[half + columns + place] = source[_reflected(columns + place, columns)]
        down = _taps(padded, weights, stride, rows * stride)
        across = _taps(down, weights, 1, rows * stride - 2 * half)
        for row in range(rows):
            image[channel, row] = across[row * stride : row * stride + columns]


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def _taps(line: np.ndarray, weights: np.ndarray, step: int, count: int) -> np.ndarray:
    total = np.zeros(count, np.float32)
    for tap in range(len(weights)):
        weight, shifted = weights[tap], line[tap * step : tap * step + count]
        for place in range(count):
            total[place] += weight * shifted[place]
    return total


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def _reflected(place: int, size: int) -> int:
    place = abs(place)
    return place if place < size else 2 * (size - 1) - place
