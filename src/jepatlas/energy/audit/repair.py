"""Quasimetric repair: the closure of a violating matrix, and how far it moved.

The closure is the largest quasimetric that is nowhere above the given energies: no other repair that only shortens ways
moves less, in any entry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.energy.audit.closure import closure
from jepatlas.energy.audit.given import energy_matrix, precision_of
from jepatlas.energy.audit.sample import ROUNDINGS

__all__ = ["Repair", "repair"]


@dataclass(frozen=True)
class Repair:
    """Repaired energies, and how far they are from those that were given."""

    energies: np.ndarray  # (n, n)
    mean: float  # of |given − repaired| over entries that were finite
    largest: float
    share: float  # of entries that moved by more than rounding
    opened: int  # pairs that were at +∞ though there is a way through others


def repair(energies: np.ndarray) -> Repair:
    """The closure; what was negative is zero before it, and so is the diagonal.

    >>> repair(np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])).largest
    2.0
    """
    given = energy_matrix(np.asarray(energies))
    assert given is not None
    before = given.astype(np.float64)
    after = closure(before)
    finite, opened = np.isfinite(before), np.isposinf(before) & np.isfinite(after)
    moved = np.abs(np.where(finite, before, 0.0) - np.where(finite, after, 0.0))
    beyond = moved > ROUNDINGS * precision_of(given) * np.where(finite, np.abs(before), 0.0)
    mean = float(moved[finite].mean()) if finite.any() else 0.0
    return Repair(after, mean, float(moved.max()), float((beyond | opened).mean()), int(opened.sum()))
