"""Tables over seeds: select results of a grid, average them over seeds, and format them as cells and curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy  # its parts are loaded on first use

from jepatlas.core.figures import BarSeries, Curve
from jepatlas.core.records import Estimate
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Result

__all__ = [
    "bars",
    "cell",
    "curve",
    "extremes",
    "finished_only",
    "geometric_mean_and_interval",
    "grouped",
    "horizontal",
    "mean_and_interval",
    "mean_and_interval_with_groups",
    "mean_and_range",
    "mean_and_range_of",
    "mean_cells",
    "mean_curve",
    "median_and_range_of",
    "plain",
    "scatter",
    "select",
    "span",
    "spread",
]


def cell(estimate: Estimate, digits: int = 3) -> str:
    """Value and limits. A number that rounds to zero has no sign.

    >>> cell(Estimate(0.99, 0.985, 0.995, 100)), cell(Estimate(-0.0001, -0.1, 0.1, 9))
    ('0.990 [0.985, 0.995]', '0.000 [-0.100, 0.100]')
    """
    if np.isnan(estimate.value):
        return "–"
    value, low, high = (f"{number:z.{digits}f}" for number in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def extremes(estimate: Estimate, digits: int = 3) -> str:
    """A mean with the lowest and highest seed, without the brackets that denote intervals.

    >>> extremes(Estimate(0.83, 0.78, 0.88, 3)), extremes(Estimate.exact(0.83, 1))
    ('0.830 (0.780 to 0.880)', '0.830')
    """
    value, low, high = (plain(number, f"z.{digits}f") for number in (estimate.value, estimate.low, estimate.high))
    return value if low == high else f"{value} ({low} to {high})"


def plain(value: float, shape: str = ".3f") -> str:
    """A number, or a dash for NaN.

    >>> plain(0.5), plain(float("nan"))
    ('0.500', '–')
    """
    return "–" if np.isnan(value) else f"{value:{shape}}"


def span(values: Iterable[float], shape: str = ".3f") -> str:
    """The smallest and the largest number.

    >>> span([0.5, 0.25, 1.0], ".2f")
    '0.25 to 1.00'
    """
    numbers = list(values)
    return f"{min(numbers):{shape}} to {max(numbers):{shape}}"


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard deviation of the finite values, with their number if some are not finite.

    >>> spread([0.8, 0.9, 1.0]), spread([0.8, 0.9, np.nan]), spread([np.nan])
    ('0.900 ± 0.100', '0.850 ± 0.071 (2 of 3)', '–')
    """
    known = [value for value in values if np.isfinite(value)]
    if not known:
        return "–"
    deviation = f" ± {np.std(known, ddof=1):.{digits}f}" if len(known) > 1 else ""
    number = f" ({len(known)} of {len(values)})" if len(known) < len(values) else ""
    return f"{np.mean(known):z.{digits}f}{deviation}{number}"


def finished_only(results: Sequence[Result]) -> list[Result]:
    """The results of trials that were neither stopped nor failed."""
    return [result for result in results if result.status == "finished"]


def select(results: Sequence[Result], **where: Any) -> list[Result]:
    """The results at the given coordinates of the grid."""
    return [result for result in results if all(result.at[name] == value for name, value in where.items())]


def grouped(results: Sequence[Result], *names: str) -> dict[tuple[Any, ...], list[Result]]:
    """The results grouped by the named coordinates of the grid; usually what varies in a group is the seed."""
    keys = dict.fromkeys(tuple(result.at[name] for name in names) for result in results)
    return {key: select(results, **dict(zip(names, key, strict=True))) for key in keys}


def mean_and_range(results: Sequence[Result], name: str, stopped: float = np.nan) -> Estimate:
    """Mean over runs with the lowest and the highest run as limits: for tables and figures.

    The limits are not a confidence interval. A run that was stopped counts as `stopped`. Runs without a finite number
    are left out; `n` is the number of runs that remain.
    """
    values = _values(results, name, stopped)
    return mean_and_range_of(values) if len(values) else Estimate.undefined(0)


def mean_and_range_of(values: Sequence[float] | np.ndarray) -> Estimate:
    """Mean of at least one number, with the smallest and the largest as limits.

    >>> mean_and_range_of([1.0, 2.0, 6.0])
    Estimate(value=3.0, low=1.0, high=6.0, n=3)
    """
    return Estimate(float(np.mean(values)), float(np.min(values)), float(np.max(values)), len(values))


def median_and_range_of(values: Sequence[float]) -> Estimate:
    """Median of at least one number, with the smallest and the largest as limits."""
    return Estimate(float(np.median(values)), min(values), max(values), len(values))


def mean_cells(results: Sequence[Result], names: Iterable[str], digits: int = 3) -> list[str]:
    """Cells of a table: mean over runs and range of each named verdict."""
    return [cell(mean_and_range(results, name), digits) for name in names]


def mean_and_interval(results: Sequence[Result], name: str, among: int = 1) -> Estimate:
    """Mean over runs with Student's 95% interval: for rules that compare means.

    The interval ignores the range of the statistic, so limits of R² may exceed 1. With fewer than two runs the limits
    are infinite.
    """
    return mean_interval(_values(results, name), comparisons=among)


def mean_and_interval_with_groups(results: Sequence[Result], name: str, among: int = 1) -> Estimate:
    """Mean over seeds that are all scored on the same held-out groups.

    The half-width of Student's interval over seeds and the mean half-width over groups are added in quadrature, so more
    seeds narrow the first part only. For one `among` several estimates the second part is widened as for a normal
    variable.
    """
    found = mean_and_interval(results, name, among)
    own = [result.estimate(name) for result in results]
    wider = scipy.stats.norm.ppf(1 - 0.025 / among) / scipy.stats.norm.ppf(0.975)
    known = [one for one in own if np.isfinite([one.value, one.low, one.high]).all()]
    if len(known) < found.n or not known:
        return Estimate(found.value, -np.inf, np.inf, found.n)
    below = wider * float(np.mean([abs(one.value - one.low) for one in known]))
    above = wider * float(np.mean([abs(one.value - one.high) for one in known]))
    low = found.value - np.hypot(found.value - found.low, below)
    high = found.value + np.hypot(found.high - found.value, above)
    return Estimate(found.value, float(low), float(high), found.n)


def geometric_mean_and_interval(results: Sequence[Result], name: str, among: int = 1) -> Estimate:
    """Geometric mean over runs of a positive factor, with the interval of the mean logarithm."""
    found = mean_interval(np.log(_values(results, name)), comparisons=among)
    value, low, high = np.exp([found.value, found.low, found.high]).tolist()
    return Estimate(value, low, high, found.n)


def _values(results: Sequence[Result], name: str, stopped: float = np.nan) -> np.ndarray:
    values = np.array([stopped if result.status == "failed" else result.value(name) for result in results])
    return values[np.isfinite(values)]


def curve(
    name: str,
    x: Sequence[float],
    estimates: Sequence[Estimate],
    *,
    points: bool | None = None,
    dash: bool | None = None,
) -> Curve:
    """A line of a figure, with a band if every point has finite limits."""
    line = Curve(name, list(x), [estimate.value for estimate in estimates], points=points, dash=dash)
    if not all(np.isfinite([estimate.low, estimate.high]).all() for estimate in estimates):
        return line
    low = [estimate.low for estimate in estimates]
    high = [estimate.high for estimate in estimates]
    return replace(line, low=low, high=high)


def mean_curve(name: str, results: Sequence[Result], verdicts: Mapping[Any, str]) -> Curve:
    """A line through means over runs, with their range as a band; `verdicts` are names of verdicts by x."""
    return curve(name, list(verdicts), [mean_and_range(results, verdict) for verdict in verdicts.values()])


def scatter(name: str, results: Sequence[Result], x: str, y: str) -> Curve:
    """A point for each run, at the values of two verdicts."""
    return Curve(name, [result.value(x) for result in results], [result.value(y) for result in results], points=True)


def horizontal(name: str, x: Sequence[float], value: float) -> Curve:
    """A dashed line at one value."""
    return Curve(name, list(x), [value] * len(x), dash=True)


def bars(name: str, estimates: Sequence[Estimate]) -> BarSeries:
    """A series of a bar chart with whiskers."""
    return BarSeries(
        name,
        [estimate.value for estimate in estimates],
        low=[estimate.low for estimate in estimates],
        high=[estimate.high for estimate in estimates],
    )
