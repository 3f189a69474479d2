"""Evidence: a measure on held-out rows, with its interval and with what shuffled pairs give."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from jepatlas.alignment import METRICS, Metric, Null, half_sample_intervals, measure, permutation_null
from jepatlas.alignment.nulls import ENOUGH
from jepatlas.alignment.splits import group_labels
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, subsample
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator

__all__ = ["BRIEF", "MAIN", "Carries", "Evidence", "Fit", "Study", "gather"]


class Carries(Protocol):
    """Whoever has a map."""

    @property
    def map_(self) -> LinearMap: ...


Fit = Callable[[np.ndarray, np.ndarray, np.ndarray | None], Carries]
"""A map from pairs of rows (b, d_a), (b, d_b), and the groups of rows that are alike."""

BRIEF = ("r2", "cka_debiased", "dsc_common", "nos_10_common", "dsc_target", "nos_10_target")
"""What controls are compared by."""
MAIN = (
    "r2",
    "mse_per_dim",
    "cka_debiased",
    "cka_debiased_common",
    "svcca",
    "dsc_common",
    "nos_10_common",
    "dsc_target",
    "nos_10_target",
)
"""What is judged; the other metrics are in a table."""

FEWEST = 4
"""Rows that every measure can be taken of."""

LEVEL = 0.05
FEWEST_GROUPS = 5
"""Of 4 groups there are 24 orders: of 99 random ones the true order is four, and p is above the level."""


@dataclass(frozen=True)
class Study:
    """How evidence is gathered: which rows are fitted and scored, how often pairs are shuffled and halves are drawn."""

    split: Split
    groups: np.ndarray | None = None
    block: int | None = None
    """Rows of a time block: pairs are then shifted in time, not shuffled."""
    seed: int = 0
    permutations: int = 99
    replicates: int = 100
    rows: int = 500
    """Held-out rows at most: many metrics compare every row with every other one."""
    limit: float = CONDITION_LIMIT
    """Of the condition number, above which the map's inverse leaves directions out."""
    advance: Callable[[], object] = lambda: None
    """Called after each of the `rounds` of measurements, for a progress bar."""

    def __post_init__(self) -> None:
        """Refused here, before anything is fitted: what could not be measured in the end."""
        if not self.limit > 1:
            raise InputError(f"The limit of the condition number must be above 1, but {self.limit} was given.")
        if self.permutations < 2:
            raise InputError(f"A null needs at least 2 permutations, but {self.permutations} was given.")
        rows = self.scored
        sizes = np.bincount(group_labels(None if self.groups is None else self.groups[rows], len(rows)))
        if np.sort(sizes)[: len(sizes) // 2].sum() < FEWEST:
            more = "rows or groups" if self.block is None else f"rows, or shorter --blocks than {self.block}"
            units = "groups" if self.block is None else f"time block{'s' * (len(sizes) != 1)}"
            raise InputError(
                f"{len(rows)} held-out rows in {len(sizes)} {units} are too few: intervals come from halves of the "
                f"{units.removesuffix('s')}s, and a half must have at least {FEWEST} rows. Give more {more} (see also "
                "--rows)."
            )

    @property
    def rounds(self) -> int:
        """Measurements for one alignment: all shuffles and halves, and twice the true pairs."""
        return self.permutations + self.replicates + 2

    def units(self, n: int) -> int | None:
        """Groups or whole time blocks that n rows have; None where rows stand for themselves."""
        if self.block is not None:
            return n // self.block
        return None if self.groups is None else len(np.unique(self.groups))

    @property
    def scored(self) -> np.ndarray:
        """The held-out rows, or an even choice of them."""
        held = np.sort(self.split.score)
        return subsample(held, self.rows)


@dataclass(frozen=True)
class Evidence:
    """One metric of one alignment."""

    metric: Metric
    estimate: Estimate
    null: Null
    shifted: bool = False
    """Whether pairs were shifted in time, and not shuffled."""
    units: int | None = None
    """Groups or time blocks that were paired anew, where rows were not."""

    @property
    def too_few(self) -> str:
        """Why p could not be as low as 5% whatever the value, and what would do; empty where it could."""
        n, units = self.null.n_permutations, self.units
        if self.shifted and units is not None and units <= ENOUGH:
            return (
                f"{units} time blocks allow only {units - 1} shifts, and p ≤ {LEVEL} needs {ENOUGH}: a longer "
                f"series or shorter blocks, at least {ENOUGH + 1} of them, would do"
            )
        if not self.shifted and units is not None and units < FEWEST_GROUPS:
            return f"{units} groups can be shuffled in too few ways for p ≤ {LEVEL}: at least {FEWEST_GROUPS} would do"
        if n < ENOUGH:
            return (
                f"with {n} {'shifts' if self.shifted else 'shuffles'} p cannot be below {self.null.least_p:.2g}: "
                f"--permutations {ENOUGH} would do"
            )
        return ""

    @property
    def passed(self) -> bool | None:
        """Whether p is at most 5%; None where it is not defined, and where it could not have been so low."""
        one, null = self.estimate, self.null
        if not np.isfinite([one.value, one.low, one.high, null.mean, null.p]).all():
            return None
        if null.p <= LEVEL:
            return True
        return None if self.too_few else False

    @property
    def verdict(self) -> Verdict:
        """Whether it is better than with shuffled pairs, by p; the threshold shown is where 95% of a null would end."""
        one, null, direction = self.estimate, self.null, self.metric.direction
        what = f"{self.metric.meaning[0].upper()}{self.metric.meaning[1:]}; {direction} is better."
        if not np.isfinite([one.value, one.low, one.high, null.mean]).all():
            return Verdict.judge(
                self.metric.name, one, direction=direction, null=null.mean, good=f"{what} Not judged: {self._undefined}"
            )
        chance = (
            f"{self.rivals} {null.mean:.3f} ± {null.std:.3f}, p = {null.p:.2g}, {null.effect:.1f} standard deviations"
        )
        answers = {True: "Better than chance", False: "No better than chance", None: f"Undecided: {self.too_few}"}
        judged = Verdict.judge(
            self.metric.name, one, direction=direction, null=null.mean, threshold=null.limit, good=""
        )
        return replace(judged, passed=self.passed, advice=f"{what} {answers[self.passed]} ({chance}).")

    @property
    def _undefined(self) -> str:
        k, n = self.metric.k, self.estimate.n
        if k and n // 2 <= k:
            return (
                f"it is not defined for {n} held-out rows, for intervals come from halves of them, and {k} "
                f"neighbours need at least {k + 1} rows: hold out {2 * (k + 1)}."
            )
        return "it is not defined for so few rows (or halves of them), or for what does not vary."

    @property
    def rivals(self) -> str:
        """What the true pairs stand beside; where there are groups, one of a is paired with a whole other one of b."""
        if self.shifted:
            return "shifted pairs"
        return "shuffled pairs" if self.units is None else "swapped groups"

    @property
    def line(self) -> list[str]:
        """As the terminal shows it: which way is better, value, chance, p and effect size."""
        one, null, arrow = self.estimate, self.null, "↑" if self.metric.direction == "higher" else "↓"
        value, low, high, mean, std = map(_plain, (one.value, one.low, one.high, null.mean, null.std))
        effect = _plain(null.effect, ".1f")
        return [f"{arrow} {self.metric.name}", value, f"{low}, {high}", f"{mean} ± {std}", f"{null.p:.2g}", effect]

    @property
    def cell(self) -> str:
        """As tables show it: never without its null."""
        one = self.estimate
        chance = f"{self.rivals.removesuffix(' pairs')} {self.null.mean:.3f}, p {self.null.p:.2g}"
        return f"{one.value:z.3f} [{one.low:z.3f}, {one.high:z.3f}]; {chance}"


def _plain(number: float, shape: str = ".3f") -> str:
    """Large numbers without decimals that nobody reads."""
    return f"{number:.3g}" if abs(number) >= 1000 else f"{number:{shape}}"


def gather(
    a: np.ndarray, b: np.ndarray, fit: Fit, study: Study, names: Iterable[str] = tuple(METRICS)
) -> dict[str, Evidence]:
    """Fit on some rows, measure on others; and the same with every shuffle, the map fitted anew."""
    rows, score, names = study.split.fit, study.scored, list(names)
    alike = None if study.groups is None else study.groups[rows]

    def taken(a: np.ndarray, b: np.ndarray, found: Carries) -> dict[str, float]:
        study.advance()
        return measure(a, b, found.map_, names=names, limit=study.limit)

    def shuffled(order: np.ndarray) -> dict[str, float]:
        return taken(a[score], b[order[score]], fit(a[rows], b[order[rows]], alike))

    true = fit(a[rows], b[rows], alike)
    intervals = half_sample_intervals(
        lambda part: taken(a[score[part]], b[score[part]], true),
        len(score),
        numpy_generator(study.seed, "intervals"),
        groups=None if study.groups is None else study.groups[score],
        replicates=study.replicates,
        ranges={name: (METRICS[name].low, METRICS[name].high) for name in names},
    )
    by_groups = study.groups if study.block is None else None
    nulls = permutation_null(
        shuffled,
        len(a),
        numpy_generator(study.seed, "nulls"),
        directions={name: METRICS[name].direction for name in names},
        groups=by_groups,
        block=study.block,
        permutations=study.permutations,
    )
    shifted, units = study.block is not None, study.units(len(a))
    return {name: Evidence(METRICS[name], intervals[name], nulls[name], shifted, units) for name in names}
