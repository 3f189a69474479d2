"""Channel axis of images, and conversion between channels-last and channels-first layouts.

jepatlas and stable-worldmodel store images as (height, width, channels); other data may use (channels, height, width).
The channel axis is the shorter of the first and the last axis. The last axis is always taken if it has 1, 3 or 4
entries or if the first two axes have equal length, so stacks of many frames are recognised as well.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

__all__ = ["channels_first", "channels_last", "network_shape"]

IMAGE_AXES = 3
COLOUR_CHANNELS = (1, 3, 4)


def network_shape(row: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of one row as network input: images channels first, scalars as vectors of length 1.

    >>> network_shape((64, 48, 3)), network_shape((3, 64, 48)), network_shape((8, 8, 12))
    ((3, 64, 48), (3, 64, 48), (12, 8, 8))
    >>> network_shape((5,)), network_shape(())
    ((5,), (1,))
    """
    if len(row) == IMAGE_AXES and not _is_channels_first(row):
        return (row[2], *row[:2])
    return row or (1,)


def channels_last(rows: np.ndarray, row: tuple[int, ...]) -> np.ndarray:
    """Move the channel axis of images (…, *row) to the end; other rows are returned unchanged."""
    if len(row) == IMAGE_AXES and _is_channels_first(row):
        return np.moveaxis(rows, -3, -1)
    return rows


def channels_first(rows: Tensor, row: tuple[int, ...]) -> Tensor:
    """Move the channel axis of images (…, *row) before height and width; other rows are returned unchanged."""
    if len(row) != IMAGE_AXES or _is_channels_first(row):
        return rows
    return rows.movedim(-1, -3).contiguous()


def _is_channels_first(row: tuple[int, ...]) -> bool:
    first, second, last = row
    return last not in COLOUR_CHANNELS and first != second and first < last
