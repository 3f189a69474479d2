"""Frames that are seen together: with m of them, k rows apart, what moves can be told from what stands still.

    x̃_s = (x[s − (m − 1) k], …, x[s − k], x[s]),    where every row before an episode's first one is the first one

They lie one after the other along the channels of a picture, or along a vector, the oldest first. So an encoder of m
frames is one of a picture with m times as many channels, and m = 1 is a frame as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.data.episode_columns import Episodes

__all__ = ["rows_together", "stacked"]


def rows_together(given: Episodes, rows: np.ndarray, history: int, skip: int) -> np.ndarray:
    """The rows that are seen together with each of these: (…) → (…, m)."""
    if history == 1:
        return rows[..., None]
    offsets = np.sort(given.offsets)
    first = offsets[np.searchsorted(offsets, rows, side="right") - 1]
    past = rows[..., None] - skip * np.arange(history - 1, -1, -1)
    return np.maximum(past, first[..., None])


def stacked(frames: Sequence[np.ndarray], history: int) -> np.ndarray:
    """The last m of these frames, each (b, …, c), as one: (b, …, m c). Where there are fewer the first is repeated.

    >>> stacked([np.array([[1, 2]]), np.array([[3, 4]])], 3)
    array([[1, 2, 1, 2, 3, 4]])
    """
    kept = list(frames[-history:])
    kept = [kept[0]] * (history - len(kept)) + kept
    return kept[0] if history == 1 else np.concatenate(kept, axis=-1)
