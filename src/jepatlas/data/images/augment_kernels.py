"""Compiled augmentation for the CPU: each image passes through the whole pipeline while it is in the cache.

Images are float32 planes (3, height, width) in 0 … 1, and every operation works in place. The reference implementation
with kornia's functions is `augment_with_kornia`; tests compare the two. Colour operations follow kornia's ColorJitter
and have no branches in their loops, so that they vectorise.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.kernels import compiled

__all__ = ["augment_rows"]

ONE, ZERO, SIX = np.float32(1), np.float32(0), np.float32(6)
RED, GREEN, BLUE = np.float32(0.299), np.float32(0.587), np.float32(0.114)  # weights of the channels in grey
FAST = {"contract", "reassoc", "nsz", "arcp"}  # reordered sums can be vectorised


@compiled(nogil=True, fastmath=FAST)
def augment_rows(  # noqa: PLR0917  (compiled functions take no keywords)
    images: np.ndarray,  # (b, height, width, 3) bytes
    boxes: np.ndarray,  # (b, 4) top, left, height and width of the crop
    flips: np.ndarray,  # (b,)
    orders: np.ndarray,  # (b, 4) brightness, contrast, saturation or hue at each position; −1 for none
    factors: np.ndarray,  # (b, 4) of these operations
    greys: np.ndarray,  # (b,)
    blurs: np.ndarray,  # (b, taps) blur weights; the first is 0 for no blur
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


@compiled(nogil=True, fastmath=FAST)
def _crop(image: np.ndarray, box: np.ndarray, flip: bool, out: np.ndarray) -> None:
    """Bilinear interpolation between pixel centres, constant beyond the outermost centres."""
    top, left, height, width = box[0], box[1], box[2], box[3]
    rows, columns = out.shape[1:]
    across = np.empty((3, height, columns), np.float32)
    for column in range(columns):
        target = columns - 1 - column if flip else column
        first, second, weight = _neighbours(column, width, columns)
        for row in range(height):
            for channel in range(3):
                a = np.float32(image[top + row, left + first, channel])
                b = np.float32(image[top + row, left + second, channel])
                across[channel, row, target] = a + weight * (b - a)
    scale = np.float32(1 / 255)
    for row in range(rows):
        first, second, weight = _neighbours(row, height, rows)
        for channel in range(3):
            for column in range(columns):
                a, b = across[channel, first, column], across[channel, second, column]
                out[channel, row, column] = scale * (a + weight * (b - a))


@compiled(nogil=True, fastmath=FAST)
def _neighbours(place: int, given: int, wanted: int) -> tuple[int, int, np.float32]:
    """The two neighbours of an output pixel among `given` input pixels, and the weight of the second."""
    centre = max(0.0, (place + 0.5) * given / wanted - 0.5)
    first = min(int(centre), given - 1)
    return first, min(first + 1, given - 1), np.float32(centre - first)


@compiled(nogil=True, fastmath=FAST)
def _blur(image: np.ndarray, weights: np.ndarray) -> None:
    """Separable blur with reflected borders.

    Padded planes are treated as one long line, so that each tap is one long vectorised sum.
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
        down = _convolve(padded, weights, stride, rows * stride)
        across = _convolve(down, weights, 1, rows * stride - 2 * half)
        for row in range(rows):
            image[channel, row] = across[row * stride : row * stride + columns]


@compiled(nogil=True, fastmath=FAST)
def _convolve(line: np.ndarray, weights: np.ndarray, step: int, count: int) -> np.ndarray:
    total = np.zeros(count, np.float32)
    for tap in range(len(weights)):
        weight, shifted = weights[tap], line[tap * step : tap * step + count]
        for place in range(count):
            total[place] += weight * shifted[place]
    return total


@compiled(nogil=True, fastmath=FAST)
def _reflected(place: int, size: int) -> int:
    place = abs(place)
    return place if place < size else 2 * (size - 1) - place


@compiled(nogil=True)
def adjust(planes: np.ndarray, which: int, factor: np.float32) -> None:
    if which == 0:
        _blend(planes, ZERO, factor)
    elif which == 1:
        _blend(planes, _mean_grey(planes), factor)
    elif which == 2:
        saturate(planes, factor)
    else:
        _hue(planes, factor)


@compiled(nogil=True, fastmath=FAST)
def _blend(planes: np.ndarray, other: np.float32, factor: np.float32) -> None:
    """Blend with a constant: black for brightness, the mean grey value for contrast."""
    rest = (ONE - factor) * other
    for channel in range(3):
        for place in range(planes.shape[1]):
            planes[channel, place] = _clamp(factor * planes[channel, place] + rest)


@compiled(nogil=True, fastmath=FAST)
def _mean_grey(planes: np.ndarray) -> np.float32:
    total = ZERO
    for place in range(planes.shape[1]):
        total += RED * planes[0, place] + GREEN * planes[1, place] + BLUE * planes[2, place]
    return total / np.float32(planes.shape[1])


@compiled(nogil=True, fastmath=FAST)
def saturate(planes: np.ndarray, factor: np.float32) -> None:
    """Blend with the grey value of each pixel."""
    for place in range(planes.shape[1]):
        red, green, blue = planes[0, place], planes[1, place], planes[2, place]
        grey = (ONE - factor) * (RED * red + GREEN * green + BLUE * blue)
        planes[0, place] = _clamp(factor * red + grey)
        planes[1, place] = _clamp(factor * green + grey)
        planes[2, place] = _clamp(factor * blue + grey)


@compiled(nogil=True, fastmath=FAST)
def _hue(planes: np.ndarray, turn: np.float32) -> None:
    """Rotate the hue by a share of the circle, keeping value and saturation.

    With value v, range d = max − min and hue h in sixths of the circle, each channel is v − d·min(max(0, k, 4 − k), 1)
    where k = h + 5, 3, 1 modulo 6 for red, green, blue.
    """
    for place in range(planes.shape[1]):
        red, green, blue = planes[0, place], planes[1, place], planes[2, place]
        value = red if red > green else green
        value = value if value > blue else blue
        least = red if red < green else green
        least = least if least < blue else blue
        spread = value - least
        inverse = ONE / (spread if spread > ZERO else ONE)
        last = np.float32(2) + (blue - red) * inverse if green >= blue else np.float32(4) + (red - green) * inverse
        hue = (green - blue) * inverse if (red >= green) & (red >= blue) else last
        hue += SIX * turn
        planes[0, place] = value - spread * _ramp(hue + np.float32(5))
        planes[1, place] = value - spread * _ramp(hue + np.float32(3))
        planes[2, place] = value - spread * _ramp(hue + ONE)


@compiled(nogil=True, fastmath=FAST)
def _ramp(k: np.float32) -> np.float32:
    k -= SIX * np.floor(k * np.float32(1 / 6))
    other = np.float32(4) - k
    return _clamp(k if k < other else other)


@compiled(nogil=True, fastmath=FAST)
def solarise(planes: np.ndarray) -> None:
    """Invert pixels above one half."""
    for channel in range(3):
        for place in range(planes.shape[1]):
            value = planes[channel, place]
            planes[channel, place] = value if value < np.float32(0.5) else ONE - value


@compiled(nogil=True, fastmath=FAST)
def _clamp(value: np.float32) -> np.float32:
    value = value if value > ZERO else ZERO
    return value if value < ONE else ONE
