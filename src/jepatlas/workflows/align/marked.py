"""Rows that files mark as held out (`held`): of states that a model has not learned from. The others fit, these score.

A state that either model has learned from scores nothing, whatever the other one says of it.
"""

from __future__ import annotations

import numpy as np

from jepatlas.alignment.paired import PairedLatents
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split

__all__ = ["HALF", "marked_split"]

HALF = 0.5
"""The share that is held out where nothing is marked, and no other is asked for."""


def marked_split(matched: PairedLatents, share: float | None, blocks: int | None) -> Split | None:
    """Rows to fit on and rows to score on, as the files mark them; None where neither does, or where another split is
    asked for by a share or by time blocks."""
    held = matched.held
    if held is None or share is not None or blocks is not None:
        return None
    if held.all() or not held.any():
        raise InputError(
            f"{held.sum() or 'None'} of {len(held)} rows are marked as held out by both files: some must "
            "be, to score on, and others not, to fit on. Give --share to split them anew."
        )
    if matched.groups is not None and len(both := np.intersect1d(matched.groups[held], matched.groups[~held])):
        raise InputError(
            f"Rows of the group '{both[0]}' are held out and not, as the files mark them ({len(both)} "
            "such groups): rows of one group are nearly copies of each other. Hold out whole "
            "groups, or give --share to split them anew."
        )
    return Split(np.flatnonzero(~held), np.flatnonzero(held))
