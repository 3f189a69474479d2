"""Standard errors, Student and bootstrap intervals, success rates, and rank correlation. This module needs no torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy.special import stdtrit

from jepatlas.core.arrays import group_numbers
from jepatlas.core.errors import InputError, check_count
from jepatlas.core.progress import track
from jepatlas.core.records import Estimate

__all__ = [
    "bootstrap",
    "explained_share",
    "mean_interval",
    "mean_ranks",
    "paired_difference",
    "spearman",
    "standard_error",
    "student_margin",
    "student_quantile",
    "success_rate",
]

Z = 1.959963984540054  # the 97.5% quantile of the standard normal distribution


def standard_error(values: np.ndarray) -> float:
    """Standard error of the mean, s/√n with the unbiased s; NaN for fewer than two values."""
    if len(values) < 2:
        return float("nan")
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def student_quantile(freedom: int, level: float = 0.95, comparisons: int = 1) -> float:
    """Student's t for a two-sided interval at `level`, with Bonferroni's correction for several comparisons.

    >>> round(student_quantile(4), 3)
    2.776
    """
    return float(stdtrit(freedom, 1 - (1 - level) / 2 / comparisons))


def student_margin(values: np.ndarray, level: float = 0.95, comparisons: int = 1) -> float:
    """Half the width of Student's interval of the mean; infinite for fewer than two values."""
    if len(values) < 2:
        return float("inf")
    return student_quantile(len(values) - 1, level, comparisons) * standard_error(values)


def mean_interval(values: np.ndarray, level: float = 0.95, comparisons: int = 1) -> Estimate:
    """The mean with Student's interval. With fewer than two values the interval is infinite.

    With Bonferroni's correction for several `comparisons`, all of their intervals hold at once.

    >>> mean_interval(np.array([1.0, 2.0, 3.0])).high.__round__(3)
    4.484
    """
    mean = float(np.mean(values)) if len(values) else float("nan")
    margin = student_margin(values, level, comparisons)
    if math.isinf(margin):
        return Estimate(mean, -math.inf, math.inf, len(values))
    return Estimate(mean, mean - margin, mean + margin, len(values))


def explained_share(residual: float, total: float) -> float:
    """R² = 1 − residual / total, from sums of squares; NaN where the target does not vary."""
    return float(1 - residual / total) if total > 0 else float("nan")


Statistic = Callable[[np.ndarray], Mapping[str, float]]


def bootstrap(
    statistic: Statistic,
    n: int,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
    level: float = 0.95,
    centred: bool = False,
) -> dict[str, Estimate]:
    """Percentile bootstrap intervals of named statistics, computed from row weights that sum to n.

    `statistic(weights)` is called with ones for the value itself, then with multinomial counts. Rows of one group share
    a count, so that correlated rows are not treated as independent.

    `centred` shifts the draws so that their mean is the value. Use it for statistics that noise can only increase (a
    norm, the largest eigenvalue): the draws contain the noise twice, and their percentiles may exclude the value. The
    shifted interval describes the value with the noise of one sample; compare it with a null that has the same noise.

    >>> x = np.arange(1000.0)
    >>> bootstrap(lambda w: {"mean": np.average(x, weights=w)}, 1000, np.random.default_rng(0))["mean"].value
    499.5
    """
    labels = group_numbers(groups, n)
    count = len(np.unique(labels))
    if len(labels) != n:
        raise InputError(f"groups must have one label for each of the {n} rows, but there are {len(labels)}.")
    if count < 2:
        raise InputError(f"A confidence interval needs at least 2 groups of samples, but there is only {count}.")
    check_count("replicates", replicates)
    value = statistic(np.ones(n))
    draws: dict[str, list[float]] = {name: [] for name in value}
    for _ in track("bootstrap", replicates):
        weights = np.bincount(rng.integers(count, size=count), minlength=count)[labels]
        for name, drawn in statistic(weights * (n / weights.sum())).items():
            draws[name].append(drawn)
    tail = (1 - level) / 2
    shifts = {name: value[name] - np.mean(values) if centred else 0.0 for name, values in draws.items()}
    limits = {name: np.quantile(values, [tail, 1 - tail]) + shifts[name] for name, values in draws.items()}
    return {name: Estimate(float(value[name]), float(low), float(high), n) for name, (low, high) in limits.items()}


def mean_ranks(x: np.ndarray) -> np.ndarray:
    """Ranks from 1, averaged over ties; all NaN if any value is NaN. (`scipy.stats.rankdata` is slow to import.)

    >>> mean_ranks(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    if np.isnan(x).any():
        return np.full(len(x), np.nan)
    _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def spearman(x: np.ndarray, y: np.ndarray) -> Estimate:
    """Spearman's rank correlation with the interval of Bonett and Wright; ties have their mean rank.

    >>> spearman(np.arange(30.0), np.arange(30.0) ** 3).value
    1.0
    """
    n = len(x)
    if n < 2 or len(y) != n:
        raise InputError(f"A rank correlation needs at least 2 pairs of numbers, but x has {n} and y has {len(y)}.")
    ranks = np.stack([mean_ranks(x), mean_ranks(y)])
    value = float(np.corrcoef(ranks)[0, 1].round(12)) if np.ptp(ranks, axis=1).all() else float("nan")
    if n <= 3:
        return Estimate(value, -1.0, 1.0, n)
    centre = np.arctanh(np.clip(value, -1 + 1e-9, 1 - 1e-9))
    margin = 1.96 * np.sqrt((1 + value**2 / 2) / (n - 3))
    return Estimate(value, float(np.tanh(centre - margin)), float(np.tanh(centre + margin)), n)


def success_rate(outcomes: np.ndarray) -> Estimate:
    """Share of successes p = k/n with Wilson's 95% interval.

        (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n),  z = 1.96

    Reference: "Probable Inference, the Law of Succession, and Statistical Inference".

    >>> success_rate(np.array([True] * 8 + [False] * 2)).low.__round__(3)
    0.49
    """
    n = len(outcomes)
    if n < 1:
        raise InputError("A success rate needs at least one task, but there is none.")
    share = float(np.mean(outcomes))
    centre = share + Z**2 / (2 * n)
    margin = Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    low = (centre - margin) / (1 + Z**2 / n)
    high = (centre + margin) / (1 + Z**2 / n)
    return Estimate(share, max(0.0, low), min(1.0, high), n)


def paired_difference(first: np.ndarray, second: np.ndarray) -> Estimate:
    """Success rate of `first` minus that of `second` on the same tasks, with Newcombe's 95% interval (method 10).

    The Wilson intervals of both rates are joined with the correlation φ of their outcomes. Tasks that are hard for both
    make φ positive and the interval narrower. Reference: "Improved Confidence Intervals for the Difference between
    Binomial Proportions Based on Paired Data".
    """
    if len(first) != len(second):
        raise InputError(f"Paired outcomes need one of each per task, but there are {len(first)} and {len(second)}.")
    one = success_rate(first)
    other = success_rate(second)
    value = one.value - other.value
    phi = _outcome_correlation(np.asarray(first, bool), np.asarray(second, bool))
    down, up = one.value - one.low, other.high - other.value
    low = value - math.sqrt(max(0.0, down**2 - 2 * phi * down * up + up**2))
    up_one, down_other = one.high - one.value, other.value - other.low
    high = value + math.sqrt(max(0.0, up_one**2 - 2 * phi * up_one * down_other + down_other**2))
    return Estimate(value, low, high, one.n)


def _outcome_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """φ of the 2 × 2 table, with Newcombe's continuity correction where it is positive."""
    n = len(first)
    both, neither = int((first & second).sum()), int((~first & ~second).sum())
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    sides = (both + only_first) * (only_second + neither) * (both + only_second) * (only_first + neither)
    if sides == 0:
        return 0.0
    product = both * neither - only_first * only_second
    return (max(product - n / 2, 0) if product > 0 else product) / math.sqrt(sides)
