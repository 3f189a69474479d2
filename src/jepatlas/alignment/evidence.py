"""Held-out evidence: fit a map, score it on other rows, compare with a permutation null.

    model = fit(rows, partners)              rows of a, and the rows of b that they are paired with
    metrics = score(model, rows, partners)   named numbers on held-out pairs

The estimate is the score of the true pairs, with an interval from half samples of the held-out rows. The null scores
rows of a with the rows of b that belong to other states. With `refit` the map is fitted anew to every permutation of
all pairs; without it the fitted map is kept and only the held-out pairs are permuted, which takes seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from jepatlas.alignment.nulls import ENOUGH, Null, half_sample_intervals, permutation_null
from jepatlas.alignment.similarity.similarity_metrics import Metric
from jepatlas.core.linear import Split, r2
from jepatlas.core.records import Direction, Estimate, Verdict

__all__ = ["Evidence", "HeldOut", "r2_null"]

Model = TypeVar("Model")

LEVEL = 0.05
LONG = 40
"""Correlation times of a time series from which its shifts are as good as independent."""
CLEAR = 3.0
"""Effect, in standard deviations of the shifts, that decides in a shorter series. Unrelated series of 5 to 20
correlation times reached 2.4, and series that share their state had 6 and more."""
FEWEST_GROUPS = 5
"""Four groups have 24 orders: of 99 random ones about four are the true order, so p would exceed the level."""


@dataclass(frozen=True)
class HeldOut(Generic[Model]):
    """A map that is fitted on some of `n` pairs of rows and scored on others.

    `fit` may return anything: a fitted map, several maps by name, or predictions for all rows. `groups` (n,) are rows
    that belong together; half samples and permutations keep them whole. `refit` has no default on purpose: it decides
    what the null means (see the module docstring).

    >>> rng = np.random.default_rng(0)
    >>> a = rng.standard_normal((200, 3))
    >>> b = a @ rng.standard_normal((3, 2))
    >>> test = HeldOut(
    ...     n=200,
    ...     split=Split(np.arange(100), np.arange(100, 200)),
    ...     fit=lambda rows, partners: np.linalg.lstsq(a[rows], b[partners], rcond=None)[0],
    ...     score=lambda weight, rows, partners: {"r2": r2(b[partners], a[rows] @ weight)},
    ...     refit=True,
    ... )
    >>> test.null(rng, directions="higher", permutations=19)["r2"].p
    0.05
    """

    n: int
    split: Split
    fit: Callable[[np.ndarray, np.ndarray], Model]
    score: Callable[[Model, np.ndarray, np.ndarray], Mapping[str, float]]
    refit: bool
    groups: np.ndarray | None = None
    partners: np.ndarray | None = None
    """The row of b that each row of `split.fit` is fitted with; the row itself if None."""

    @cached_property
    def model(self) -> Model:
        """The model of the pairs as they are."""
        return self.fit(self.split.fit, self._partners)

    @property
    def _partners(self) -> np.ndarray:
        return self.split.fit if self.partners is None else self.partners

    def intervals(
        self,
        rng: np.random.Generator,
        *,
        replicates: int = 100,
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> dict[str, Estimate]:
        """Scores with confidence intervals from half samples of the held-out groups; the model is not fitted again."""
        rows = self.split.score
        return half_sample_intervals(
            lambda part: self.score(self.model, rows[part], rows[part]),
            len(rows),
            rng,
            groups=self._groups_of(rows),
            replicates=replicates,
            ranges=ranges,
        )

    def null(
        self,
        rng: np.random.Generator,
        *,
        directions: Mapping[str, Direction] | Direction,
        permutations: int = 99,
        block: int | None = None,
    ) -> dict[str, Null]:
        """Scores beside those of permuted pairs; with `block`, of pairs shifted in time (see `permutation_null`)."""
        fit_rows, rows = self.split
        if self.refit:
            count = self.n
            groups = self.groups
        else:
            count = len(rows)
            groups = self._groups_of(rows)

        def statistic(order: np.ndarray) -> Mapping[str, float]:
            if self.refit:
                return self.score(self.fit(fit_rows, order[self._partners]), rows, order[rows])
            return self.score(self.model, rows, rows[order])

        return permutation_null(
            statistic,
            count,
            rng,
            directions=directions,
            groups=groups if block is None else None,
            block=block,
            permutations=permutations,
        )

    def _groups_of(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.groups is None else self.groups[rows]


def r2_null(
    truth: np.ndarray, predicted: np.ndarray, rng: np.random.Generator, groups: np.ndarray | None = None
) -> Null:
    """R² of fixed predictions (b, d) beside predictions that belong to other states or groups."""
    test = HeldOut(
        n=len(truth),
        split=Split(np.arange(0), np.arange(len(truth))),
        fit=lambda rows, partners: predicted,
        score=lambda model, rows, partners: {"r2": r2(truth[rows], model[partners])},
        refit=False,
        groups=groups,
    )
    return test.null(rng, directions="higher", permutations=ENOUGH)["r2"]


@dataclass(frozen=True)
class Evidence:
    """Estimate and null of one metric, and the decision that follows."""

    metric: Metric
    estimate: Estimate
    null: Null
    shifted: bool = False
    """Whether the null shifts pairs in time instead of shuffling them."""
    units: int | None = None
    """Number of groups or time blocks that the null permutes; None if it permutes rows."""
    times: float = math.inf
    """Length of a time series in correlation times. Shifts of a short one are not independent of each other."""

    @property
    def too_few(self) -> str:
        """Why p cannot reach 5% for any value, and what to change; empty if it can."""
        n = self.null.n_permutations
        if self.shifted and self.units is not None and self.units <= ENOUGH:
            return (
                f"{self.units} time blocks allow only {self.units - 1} shifts, and p ≤ {LEVEL} needs {ENOUGH}; use a "
                f"longer series or shorter blocks, so that there are at least {ENOUGH + 1}"
            )
        if not self.shifted and self.units is not None and self.units < FEWEST_GROUPS:
            return f"{self.units} groups have too few permutations for p ≤ {LEVEL}; use at least {FEWEST_GROUPS}"
        if n < ENOUGH:
            kind = "shifts" if self.shifted else "shuffles"
            return f"with {n} {kind} p cannot be below {self.null.least_p:.2g}; use --permutations {ENOUGH} or more"
        return ""

    @property
    def too_short(self) -> str:
        """Why a low p is not enough: few correlation times, and shifts that come close; empty if it is."""
        if self.times >= LONG or self.null.effect >= CLEAR:
            return ""
        return (
            f"the series is only about {self.times:.0f} correlation times long, and shifted pairs come within "
            f"{CLEAR:g} standard deviations; use a longer series"
        )

    @property
    def passed(self) -> bool | None:
        """Whether p is at most 5%; None if p is undefined or could not have been that low."""
        defined = np.isfinite([self.estimate.value, self.estimate.low, self.estimate.high, self.null.mean, self.null.p])
        if not defined.all():
            return None
        if self.null.p <= LEVEL:
            return None if self.too_short else True
        return None if self.too_few else False

    @property
    def verdict(self) -> Verdict:
        """Whether the metric is better than under the null, by p. The threshold shown is the null's 95% limit."""
        one, null, direction = self.estimate, self.null, self.metric.direction
        what = f"{self.metric.meaning[0].upper()}{self.metric.meaning[1:]}; {direction} is better."
        if not np.isfinite([one.value, one.low, one.high, null.mean]).all():
            advice = f"{what} Not judged: {self._undefined}"
            return Verdict.judge(self.metric.name, one, direction=direction, null=null.mean, good=advice)
        undecided = self.too_few or self.too_short
        answers = {True: "Better than chance", False: "No better than chance", None: f"Undecided: {undecided}"}
        chance = (
            f"{self.null_name} {null.mean:.3f} ± {null.std:.3f}, p = {null.p:.2g}, "
            f"{null.effect:.1f} standard deviations"
        )
        judged = Verdict.judge(
            self.metric.name, one, direction=direction, null=null.mean, threshold=null.limit, good=""
        )
        return replace(judged, passed=self.passed, advice=f"{what} {answers[self.passed]} ({chance}).")

    @property
    def _undefined(self) -> str:
        k, n = self.metric.k, self.estimate.n
        if k and n // 2 <= k:
            return (
                f"intervals come from halves of the {n} held-out rows, and {k} neighbours need at least {k + 1} rows "
                f"in a half. Hold out at least {2 * (k + 1)} rows."
            )
        return "the metric is undefined for so few rows, or for latents that do not vary."

    @property
    def null_name(self) -> str:
        """What the true pairs are compared with. With groups, each group of a is paired with another group of b."""
        if self.shifted:
            return "shifted pairs"
        return "shuffled pairs" if self.units is None else "swapped groups"

    @property
    def line(self) -> list[str]:
        """Table row: metric with its direction, value, interval, null, p and effect size."""
        one, null = self.estimate, self.null
        arrow = "↑" if self.metric.direction == "higher" else "↓"
        return [
            f"{arrow} {self.metric.name}",
            _number(one.value),
            f"{_number(one.low)}, {_number(one.high)}",
            f"{_number(null.mean)} ± {_number(null.std)}",
            f"{null.p:.2g}",
            _number(null.effect, ".1f"),
        ]

    @property
    def cell(self) -> str:
        """Table cell: value, interval, null and p."""
        one = self.estimate
        chance = f"{self.null_name.removesuffix(' pairs')} {self.null.mean:.3f}, p {self.null.p:.2g}"
        return f"{one.value:z.3f} [{one.low:z.3f}, {one.high:z.3f}]; {chance}"


def _number(number: float, form: str = ".3f") -> str:
    """Numbers of 1000 and more without decimals."""
    return f"{number:.3g}" if abs(number) >= 1000 else f"{number:{form}}"
