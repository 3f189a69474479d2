"""Numbers of many runs, gathered: cells, means over seeds, curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are asked for

from jepatlas.core.records import Estimate
from jepatlas.experiments.experiment import Result

__all__ = [
    "at",
    "bars",
    "cell",
    "curve",
    "extremes",
    "factor_over_seeds",
    "grouped",
    "mean_over_seeds",
    "over_seeds",
    "over_seeds_and_groups",
    "plain",
    "spread",
    "student",
]


def cell(estimate: Estimate, digits: int = 3) -> str:
    """What rounds to zero has no sign.

    >>> cell(Estimate(0.99, 0.985, 0.995, 100)), cell(Estimate(-0.0001, -0.1, 0.1, 9))
    ('0.990 [0.985, 0.995]', '0.000 [-0.100, 0.100]')
    """
    if np.isnan(estimate.value):
        return "–"
    value, low, high = (f"{number:z.{digits}f}" for number in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def extremes(estimate: Estimate, digits: int = 3) -> str:
    """A mean with the lowest and the highest over seeds: in words, since brackets are for intervals.

    >>> extremes(Estimate(0.83, 0.78, 0.88, 3)), extremes(Estimate(0.83, 0.83, 0.83, 1))
    ('0.830 (0.780 to 0.880)', '0.830')
    """
    value, low, high = (plain(number, f"z.{digits}f") for number in (estimate.value, estimate.low, estimate.high))
    return value if low == high else f"{value} ({low} to {high})"


def plain(value: float, shape: str = ".3f") -> str:
    """
    >>> plain(0.5), plain(float("nan"))
    ('0.500', '–')
    """
    return "–" if np.isnan(value) else f"{value:{shape}}"


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± standard deviation; of one value there is none. Where some came to no number, it says of how many it is.

    >>> spread([0.8, 0.9, 1.0]), spread([0.8, 0.9, np.nan]), spread([np.nan])
    ('0.900 ± 0.100', '0.850 ± 0.071 (2 of 3)', '–')
    """
    known = [value for value in values if np.isfinite(value)]
    if not known:
        return "–"
    deviation = f" ± {np.std(known, ddof=1):.{digits}f}" if len(known) > 1 else ""
    number = f" ({len(known)} of {len(values)})" if len(known) < len(values) else ""
    return f"{np.mean(known):z.{digits}f}{deviation}{number}"


def at(results: Sequence[Result], **where: Any) -> list[Result]:
    """The results of one place in the grid."""
    return [result for result in results if all(result.at[name] == value for name, value in where.items())]


def grouped(results: Sequence[Result], *names: str) -> dict[tuple[Any, ...], list[Result]]:
    """The results by their places in the grid, as far as they are named; what is left is mostly the seed."""
    keys = dict.fromkeys(tuple(result.at[name] for name in names) for result in results)
    return {key: at(results, **dict(zip(names, key, strict=True))) for key in keys}


def over_seeds(results: Sequence[Result], name: str, stopped: float = np.nan) -> Estimate:
    """What tables and figures show: the mean over runs, and the lowest and the highest of them.

    The extremes are no confidence interval; `extremes` writes them as what they are. Of three seeds of which one is
    lost, Student's interval for a mean R² would reach from −.75 to 2.06. A run that was stopped counts as `stopped`;
    others that came to no number are left out, and n tells.
    """
    values = _values(results, name, stopped)
    if not len(values):
        return Estimate(np.nan, np.nan, np.nan, 0)
    return Estimate(float(values.mean()), float(values.min()), float(values.max()), len(values))


def mean_over_seeds(results: Sequence[Result], name: str, among: int = 1) -> Estimate:
    """What rules compare: the mean over runs with Student's 95% interval for it, which is wider than the extremes of
    three seeds. It presumes nothing of where R² ends, so it may reach beyond 1; it decides, and is not drawn.

    With fewer than two runs there is no interval, and the limits are infinite: one seed claims nothing.
    """
    return student(_values(results, name), among)


def over_seeds_and_groups(results: Sequence[Result], name: str, among: int = 1) -> Estimate:
    """The same for agents of which all seeds are judged by the same held-out groups, as these would be by others.

    Student's reach over seeds and the mean reach by groups are added in quadrature: more seeds narrow the first alone.
    For one `among` several, the reach by groups is widened as a normal variable's would be.
    """
    found, own = mean_over_seeds(results, name, among), [result.estimate(name) for result in results]
    wider = scipy.stats.norm.ppf(1 - 0.025 / among) / scipy.stats.norm.ppf(0.975)
    known = [one for one in own if np.isfinite([one.value, one.low, one.high]).all()]
    if len(known) < found.n or not known:
        return Estimate(found.value, -np.inf, np.inf, found.n)
    below, above = (
        wider * float(np.mean([abs(one.value - end(one)) for one in known]))
        for end in (lambda one: one.low, lambda one: one.high)
    )
    low, high = found.value - np.hypot(found.value - found.low, below), np.hypot(found.high - found.value, above)
    return Estimate(found.value, float(low), float(found.value + high), found.n)


def factor_over_seeds(results: Sequence[Result], name: str, among: int = 1) -> Estimate:
    """The same for a number that multiplies: of its logarithm, since factors lie about their geometric mean and none
    is below 0."""
    found = student(np.log(_values(results, name)), among)
    value, low, high = np.exp([found.value, found.low, found.high]).tolist()
    return Estimate(value, low, high, found.n)


def student(values: np.ndarray, among: int = 1) -> Estimate:
    """The mean of a few numbers with Student's 95% interval; where it is one `among` several any of which may decide,
    as wide as all of them must be to hold at once (Bonferroni)."""
    if len(values) < 2:
        return Estimate(float(values.mean()) if len(values) else np.nan, -np.inf, np.inf, len(values))
    reach = float(scipy.stats.t.ppf(1 - 0.025 / among, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return Estimate(float(values.mean()), float(values.mean()) - reach, float(values.mean()) + reach, len(values))


def _values(results: Sequence[Result], name: str, stopped: float = np.nan) -> np.ndarray:
    values = np.array([stopped if result.status == "failed" else result.value(name) for result in results])
    return values[np.isfinite(values)]


def curve(name: str, x: Sequence[float], estimates: Sequence[Estimate], **style: Any) -> dict[str, Any]:
    """A series of a figure; a band where every point has an interval."""
    series: dict[str, Any] = {"name": name, "x": list(x), "y": [estimate.value for estimate in estimates]}
    if all(np.isfinite([estimate.low, estimate.high]).all() for estimate in estimates):
        series |= {"low": [e.low for e in estimates], "high": [e.high for e in estimates]}
    return series | style


def bars(name: str, estimates: Sequence[Estimate]) -> dict[str, Any]:
    """A series of a bar chart, with its whiskers."""
    numbers = {"y": "value", "low": "low", "high": "high"}
    return {"name": name} | {key: [getattr(one, field) for one in estimates] for key, field in numbers.items()}
