"""The ridge penalty that scores best on pairs that were held out, from moments alone.

    λ* = argmin_λ Σ_held ‖y − W_λ x‖²        W_λ fitted on the other pairs

Then all pairs are fitted with λ*. It is not rescaled to their number: λ stands for noise over prior variance, which
more pairs do not change.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.base.pair_moments import PairMoments
from jepatlas.base.records import LinearMap

__all__ = ["CANDIDATES", "best_penalty", "held_out"]

CANDIDATES = (0.0, *np.logspace(-8, 3, 23))
"""Penalties that are tried, in units of the mean eigenvalue of S_xx: none, and half powers of ten."""

_EVERY = 4  # one row (or group) in so many is held out


def best_penalty(held: PairMoments, ridge: Callable[[float], LinearMap], unit: float) -> float:
    """The candidate, times `unit`, whose map scores best on the held-out pairs; the larger of two that are equal."""
    penalties = [unit * candidate for candidate in reversed(CANDIDATES)]
    return float(min(penalties, key=lambda penalty: held.residual(ridge(penalty))))


def held_out(index: np.ndarray, seed: int) -> np.ndarray:
    """Which rows (or groups) are held out, by their place in the stream: one of every four, drawn for each four.

    So it does not matter how the stream was cut into pieces. Of the first four it is always the second, so that two
    are enough to have one on either side.

    >>> np.array_equal(held_out(np.arange(9), 0)[5:], held_out(np.arange(5, 9), 0))
    True
    """
    block, place = np.divmod(index, _EVERY)
    if not len(block):
        return np.zeros(0, bool)
    bits = np.random.PCG64(seed)
    bits.advance(int(block.min()))
    drawn = np.random.Generator(bits).random(int(np.ptp(block)) + 1)[block - block.min()]
    return place == np.where(block == 0, 1, np.floor(_EVERY * drawn))
