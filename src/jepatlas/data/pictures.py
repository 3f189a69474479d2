"""Where the channels of a picture are: the one rule by which rows of three axes are read.

Ours, and those of stable-worldmodel, are (height, width, channels); other people's may be (channels, height, width).
The shorter one of the first and the last axis has the channels; but the last one has them wherever it is as long as
colours are (1, 3 or 4), or the two before it are those of a square. So a stack of many frames is read, too.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

__all__ = ["channels_last", "for_networks", "seen_shape"]

PICTURE = 3  # axes
COLOURS = (1, 3, 4)


def seen_shape(row: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a row as a network sees it: of a picture channels first, of a single number a vector of one.

    >>> seen_shape((64, 48, 3)), seen_shape((3, 64, 48)), seen_shape((8, 8, 12)), seen_shape((5,)), seen_shape(())
    ((3, 64, 48), (3, 64, 48), (12, 8, 8), (5,), (1,))
    """
    if len(row) == PICTURE and not _begins_with_channels(row):
        return (row[2], *row[:2])
    return row or (1,)


def channels_last(rows: np.ndarray, row: tuple[int, ...]) -> np.ndarray:
    """Rows of this shape, (…, *row), as worlds give them: pictures with their channels last."""
    return np.moveaxis(rows, -3, -1) if len(row) == PICTURE and _begins_with_channels(row) else rows


def for_networks(rows: Tensor, row: tuple[int, ...]) -> Tensor:
    """Rows of this shape, (…, *row), as networks see them: pictures with their channels first."""
    return rows if len(row) != PICTURE or _begins_with_channels(row) else rows.movedim(-1, -3).contiguous()


def _begins_with_channels(row: tuple[int, ...]) -> bool:
    first, second, last = row
    return last not in COLOURS and first != second and first < last
