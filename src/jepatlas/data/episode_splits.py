"""Splits by episode: what is judged by comes from other episodes than what was learned from."""

from __future__ import annotations

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import numpy_generator

__all__ = ["split_episodes"]


def split_episodes(count: int, held: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the episodes to learn from and of those held out, a share `held` of them, each in order."""
    kept = round(held * count) if 0 < held < 1 else 0
    if not 0 < kept < count:
        raise InputError(
            f"A share of {held} of {count} episodes cannot be held out: at least one must be, and one must be left."
        )
    order = numpy_generator(seed, "split episodes").permutation(count)
    return np.sort(order[kept:]), np.sort(order[:kept])
