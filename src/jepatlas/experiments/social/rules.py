"""How numbers over seeds decide a claim: by differences at the same seeds, each number with Student's interval.

A claim names numbers that it says are above 0. It holds where all of them surely are, in part where some are, and does
not where none is and one is surely below 0. Where one of several may decide, the intervals are as wide as all of them
need to hold at once (Bonferroni). What is not known is evidence neither for nor against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jepatlas.core.records import Estimate
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Outcome, Result

__all__ = ["MEASURES", "WAYS", "both_ways", "estimated", "gap", "gaps", "least_of", "settled"]

MEASURES = {"r2": "R²", "dsc": "DSC", "nos_10": "NOS@10"}
"""What alignment is measured by; the last is better when it is lower."""
WAYS = {"r2": ("r2",), "dsc": ("dsc", "dsc_there"), "nos_10": ("nos_10", "nos_10_there")}
"""Distances and neighbours are compared through the inverse of a map, as published, and through the map itself: the
first depends on where the inverse is truncated. What is said of them must hold both ways."""


def gaps(better: Sequence[Result], worse: Sequence[Result], key: str) -> np.ndarray:
    """By how much a measure is better in the mean of some pairs than of others, at each seed that both have."""
    sides = [_by_seed(runs, key) for runs in (better, worse)]
    sign = -1 if key.startswith("nos") else 1
    return np.array([sign * (value - sides[1][seed]) for seed, value in sides[0].items() if seed in sides[1]])


def _by_seed(runs: Sequence[Result], key: str) -> dict[int, float]:
    """Seeds of which any pair came to no number are left out: the others would not be the same pairs."""
    seeds = dict.fromkeys(run.at["seed"] for run in runs)
    found = {seed: np.mean([run.value(key) for run in runs if run.at["seed"] == seed]) for seed in seeds}
    return {seed: float(value) for seed, value in found.items() if np.isfinite(value)}


def estimated(differences: Mapping[str, np.ndarray]) -> dict[str, Estimate]:
    """The means of several differences over seeds, with intervals that hold for all of them at once."""
    return {name: mean_interval(values, comparisons=len(differences)) for name, values in differences.items()}


def gap(better: Sequence[Result], worse: Sequence[Result], measure: str, among: int) -> Estimate:
    """By how much a measure is better in the mean over seeds, whichever way it is taken."""
    return both_ways([mean_interval(gaps(better, worse, way), comparisons=among) for way in WAYS[measure]])


def both_ways(found: Sequence[Estimate]) -> Estimate:
    """One number taken in several ways: the least, with an interval that has room for all of them.

    >>> both_ways([Estimate(2.0, 1.0, 3.0, 3), Estimate(1.0, -1.0, 3.5, 3)])
    Estimate(value=1.0, low=-1.0, high=3.5, n=3)
    """
    least = min(found, key=lambda one: (not np.isnan(one.value), one.value))
    return Estimate(least.value, min(one.low for one in found), max(one.high for one in found), least.n)


def least_of(units: Sequence[Estimate]) -> Estimate:
    """One number in several units, in the one in which it is least: above 0 where it is in all of them."""
    value, low, high = (min(getattr(unit, end) for unit in units) for end in ("value", "low", "high"))
    return Estimate(value, low, high, units[0].n)


def settled(predicted: Sequence[Estimate]) -> Outcome:
    """What follows from numbers that should be above 0.

    >>> sure, not_sure, wrong = (Estimate(v, v - 1, v + 1, 3) for v in (2.0, 0.5, -2.0))
    >>> settled([sure, sure]), settled([sure, wrong]), settled([not_sure, wrong]), settled([not_sure])
    ('holds', 'holds in part', 'does not hold', 'undecided')
    """
    above, below = ([found.low > 0 for found in predicted], [found.high < 0 for found in predicted])
    if any(above):
        return "holds" if all(above) else "holds in part"
    return "does not hold" if any(below) else "undecided"
