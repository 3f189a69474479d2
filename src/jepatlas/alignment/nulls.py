"""What there is to see in nothing, and how sure a number is.

A permutation null pairs the rows of a with other rows of b. The p-value counts the true pairing among its rivals,

    p = (1 + #{null at least as good as the value}) / (1 + #null)

so that P(p ≤ α) ≤ α where a and b have nothing to do with each other, however few the permutations. The effect size is
the distance from the null's mean in its standard deviations, positive where the value is better.

Intervals come from halves of the rows drawn without replacement: a row drawn twice, as in the bootstrap, would be its
own nearest neighbour. A half that leaves out the other half varies about the whole as the whole does about the truth.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from jepatlas.alignment.splits import group_labels
from jepatlas.core.errors import InputError
from jepatlas.core.records import Direction, Estimate
from jepatlas.core.stats import student_quantile

__all__ = ["ENOUGH", "Null", "half_sample_intervals", "permutation_null"]

ENOUGH = 19
"""Shuffles or shifts from which on p can be as low as 5%: 1/(19 + 1)."""
TAIL = 1.645
"""Standard deviations of a normal null that 5% lie beyond, on one side."""

Statistic = Callable[[np.ndarray], Mapping[str, float]]


@dataclass(frozen=True)
class Null:
    """A value beside what the same statistic gives where rows are paired at random."""

    value: float
    mean: float
    std: float
    p: float
    effect: float  # in standard deviations of the null; positive is better, whatever the direction
    limit: float  # where 95% of a normal null end, or the best draw where a long tail has put that beyond all of them
    n_permutations: int
    direction: Direction

    @classmethod
    def of(cls, value: float, draws: np.ndarray, direction: Direction) -> Null:
        sign = 1 if direction == "higher" else -1
        # rounding must not break a tie with the same pairing; a draw that is undefined counts against the value
        better = sign * (value - draws) > 1e-9 * np.maximum(np.abs(draws), abs(value))
        p = (1 + np.count_nonzero(~better)) / (1 + len(draws)) if np.isfinite(value) else np.nan
        mean, std = draws.mean(), draws.std(ddof=1)
        gap = sign * (value - mean)
        # NaN, of the value or of any draw, goes through to the effect
        effect = gap / std if std != 0 or np.isnan(gap) else (np.copysign(np.inf, gap) if gap else 0.0)
        limit = sign * min((sign * draws).max(), sign * mean + TAIL * std)
        return cls(float(value), float(mean), float(std), float(p), float(effect), float(limit), len(draws), direction)

    @property
    def least_p(self) -> float:
        """The smallest p that so few permutations can give: what is at it may be rarer."""
        return 1 / (1 + self.n_permutations)


def permutation_null(
    statistic: Statistic,
    n: int,
    rng: np.random.Generator,
    *,
    directions: Mapping[str, Direction] | Direction,
    groups: np.ndarray | None = None,
    block: int | None = None,
    permutations: int = 99,
) -> dict[str, Null]:
    """Nulls of named statistics: `statistic(order)` evaluates a with b[order]; arange(n) is the true pairing.

    With `groups`, a group of a is paired with another whole group of b, row by row in the order of the rows: what rows
    share within a group is kept, and so is what their place in a group tells. Where groups differ in size, the partner
    is run through faster or slower, rows left out or repeated evenly, so that every group still meets one other: the
    p-value is exact for equal sizes and approximate for others. With `block`, b is shifted in a circle by whole
    multiples of `block` rows: for one series in the order of time, where permuted blocks would break at every border
    (of 1,000 unrelated series that correlate by .95 from row to row, 15% had p ≤ .1 with permuted blocks of 20 rows,
    and 9% with shifts). There are only as many nulls then as there are shifts.
    """
    if permutations < 2:
        raise InputError(f"A null needs at least 2 permutations, but {permutations} was given.")
    if groups is not None and block is not None:
        raise InputError("Rows are permuted by groups or shifted by time blocks, not both. For episodes, give groups.")
    orders = _regrouped(group_labels(groups, n), rng) if block is None else _shifted(n, block, rng)
    value = statistic(np.arange(n))
    draws = [statistic(order) for order in itertools.islice(orders, permutations)]
    sides: Mapping[str, Direction] = dict.fromkeys(value, directions) if isinstance(directions, str) else directions
    if missing := set(value) - set(sides):
        raise InputError(f"Say for each statistic which direction is better; missing: {', '.join(sorted(missing))}.")
    return {name: Null.of(value[name], np.array([draw[name] for draw in draws]), sides[name]) for name in value}


def half_sample_intervals(
    statistic: Statistic,
    n: int,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 100,
    level: float = 0.95,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> dict[str, Estimate]:
    """Intervals of named statistics: `statistic(rows)` on all rows for the value, then on halves of the groups.

    The interval is value ± t·s, with Student's t for the number of groups. s is taken about the mean of the halves, not
    about the value: many similarities are biased by the number of rows, and a half has the bias of a half. It ends
    where the statistic does, for those whose (least, largest) possible values are given in `ranges`.
    """
    labels = group_labels(groups, n)
    count = int(labels.max(initial=-1)) + 1
    if count < 2:
        raise InputError(f"A confidence interval needs at least 2 groups of rows, but there is only {count}.")
    if replicates < 2:
        raise InputError(f"A confidence interval needs at least 2 replicates, but {replicates} was given.")
    half = count // 2
    value = statistic(np.arange(n))
    draws = [statistic(np.flatnonzero((rng.permutation(count) < half)[labels])) for _ in range(replicates)]
    # a part of m of the G groups has the variance (G − m)/m of that of the whole: 1 for a half, but G may be odd
    reach = student_quantile(count - 1, level) * np.sqrt(half / (count - half))
    spread = {name: float(reach * np.std([draw[name] for draw in draws], ddof=1)) for name in value}
    bounds = {name: (ranges or {}).get(name, (-np.inf, np.inf)) for name in value}
    return {name: _within(float(found), spread[name], *bounds[name], n) for name, found in value.items()}


def _within(value: float, spread: float, least: float, largest: float, n: int) -> Estimate:
    low, high = np.maximum(value - spread, least), np.minimum(value + spread, largest)
    # a value may leave its range by rounding, but never its interval
    return Estimate(value, float(np.minimum(low, value)), float(np.maximum(high, value)), n)


def _regrouped(labels: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Orders in which every group is replaced by a whole other one, without end."""
    rows = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    if len(sizes) < 2:
        raise InputError(f"A permutation null needs at least 2 groups of rows, but there is only {len(sizes)}.")
    starts = np.cumsum(sizes) - sizes
    own = labels[rows]
    place = np.arange(len(rows)) - starts[own]  # of each row within its group

    def order() -> np.ndarray:
        partner = rng.permutation(len(sizes))[own]
        dealt = np.empty_like(rows)
        dealt[rows] = rows[starts[partner] + place * sizes[partner] // sizes[own]]
        return dealt

    return (order() for _ in itertools.count())


def _shifted(n: int, block: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """All circular shifts by multiples of a block, in random order; none is nearer than a block to where it began."""
    blocks = n // block if block > 0 else 0
    if blocks < 3:
        raise InputError(f"A null by shifts needs at least 3 time blocks, but {n} rows have {blocks} of {block} rows.")
    return (np.roll(np.arange(n), int(shift) * block) for shift in rng.permutation(blocks - 1) + 1)
