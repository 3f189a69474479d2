"""Colours of an image, compiled: brightness, contrast, saturation and hue as kornia's ColorJitter has them; solarising.

Images are planes (3, pixels), from 0 to 1. Nothing branches within a loop, so that eight pixels are done at a time.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["FAST", "ZERO", "adjust", "saturate", "solarise"]

ONE, ZERO, SIX = np.float32(1), np.float32(0), np.float32(6)
RED, GREEN, BLUE = np.float32(0.299), np.float32(0.587), np.float32(0.114)  # what each adds to grey
FAST = {"contract", "reassoc", "nsz", "arcp"}  # sums in any order, so that they are taken eight at a time


@numba.njit(nogil=True, cache=True)
def adjust(planes: np.ndarray, which: int, factor: np.float32) -> None:
    if which == 0:
        _blend(planes, ZERO, factor)
    elif which == 1:
        _blend(planes, _mean_grey(planes), factor)
    elif which == 2:
        saturate(planes, factor)
    else:
        _hue(planes, factor)


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def _blend(planes: np.ndarray, other: np.float32, factor: np.float32) -> None:
    """Brightness is a blend with black, contrast one with the mean of grey."""
    rest = (ONE - factor) * other
    for channel in range(3):
        for place in range(planes.shape[1]):
            planes[channel, place] = _clamp(factor * planes[channel, place] + rest)


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def _mean_grey(planes: np.ndarray) -> np.float32:
    total = ZERO
    for place in range(planes.shape[1]):
        total += RED * planes[0, place] + GREEN * planes[1, place] + BLUE * planes[2, place]
    return total / np.float32(planes.shape[1])


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def saturate(planes: np.ndarray, factor: np.float32) -> None:
    """A blend with grey."""
    for place in range(planes.shape[1]):
        red, green, blue = planes[0, place], planes[1, place], planes[2, place]
        grey = (ONE - factor) * (RED * red + GREEN * green + BLUE * blue)
        planes[0, place] = _clamp(factor * red + grey)
        planes[1, place] = _clamp(factor * green + grey)
        planes[2, place] = _clamp(factor * blue + grey)


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def _hue(planes: np.ndarray, turn: np.float32) -> None:
    """Turn the hue by a share of the circle; value and saturation stay.

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


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def _ramp(k: np.float32) -> np.float32:
    k -= SIX * np.floor(k * np.float32(1 / 6))
    other = np.float32(4) - k
    return _clamp(k if k < other else other)


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def solarise(planes: np.ndarray) -> None:
    """Invert what is bright."""
    for channel in range(3):
        for place in range(planes.shape[1]):
            value = planes[channel, place]
            planes[channel, place] = value if value < np.float32(0.5) else ONE - value


@numba.njit(nogil=True, cache=True, fastmath=FAST)
def _clamp(value: np.float32) -> np.float32:
    value = value if value > ZERO else ZERO
    return value if value < ONE else ONE
