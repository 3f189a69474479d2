"""Shares of successes, and what two methods differ by on the same tasks.

Wilson's interval of a share p = k/n, with z = 1.96:

    (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n)

The difference of two shares on the same n tasks is Newcombe's (method 10): the intervals of both shares, joined with
the correlation φ of their outcomes. Tasks that are hard for both make φ positive, and the interval narrower.

References: "Probable Inference, the Law of Succession, and Statistical Inference" and "Improved Confidence Intervals
for the Difference between Binomial Proportions Based on Paired Data".
"""

from __future__ import annotations

import math

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate

__all__ = ["paired_difference", "success_rate"]

Z = 1.959963984540054  # 97.5% of the normal distribution lie below


def success_rate(outcomes: np.ndarray) -> Estimate:
    """
    >>> success_rate(np.array([True] * 8 + [False] * 2)).low.__round__(3)
    0.49
    """
    n = len(outcomes)
    if n < 1:
        raise InputError("A success rate needs at least one task, but there is none.")
    share = float(np.mean(outcomes))
    middle, reach = share + Z**2 / (2 * n), Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    low, high = ((middle + side * reach) / (1 + Z**2 / n) for side in (-1, 1))
    return Estimate(share, max(0.0, low), min(1.0, high), n)


def paired_difference(first: np.ndarray, second: np.ndarray) -> Estimate:
    """The share of `first` less that of `second`, task by task the same."""
    if len(first) != len(second):
        raise InputError(f"Paired outcomes are of the same tasks, but there are {len(first)} and {len(second)}.")
    one, other = success_rate(first), success_rate(second)
    value, phi = one.value - other.value, _correlation(np.asarray(first, bool), np.asarray(second, bool))
    down, up = one.value - one.low, other.high - other.value
    low = value - math.sqrt(max(0.0, down**2 - 2 * phi * down * up + up**2))
    up_one, down_other = one.high - one.value, other.value - other.low
    high = value + math.sqrt(max(0.0, up_one**2 - 2 * phi * up_one * down_other + down_other**2))
    return Estimate(value, low, high, one.n)


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    """φ of the two by two table, corrected for continuity where it is positive, as Newcombe has it."""
    n = len(first)
    both, neither = int((first & second).sum()), int((~first & ~second).sum())
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    sides = (both + only_first) * (only_second + neither) * (both + only_second) * (only_first + neither)
    if sides == 0:
        return 0.0
    product = both * neither - only_first * only_second
    return (max(product - n / 2, 0) if product > 0 else product) / math.sqrt(sides)
