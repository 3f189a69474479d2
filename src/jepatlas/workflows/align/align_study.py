"""Kinds of maps and the study of one alignment: rows to fit and to score, permutations, half samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from jepatlas.alignment import (
    METRICS,
    Evidence,
    FittedMap,
    HeldOut,
    LeastSquaresMap,
    PairedLatents,
    ProcrustesMap,
    RidgeMap,
    RobustMap,
    StreamedMap,
    measure,
    split_rows,
    time_blocks,
)
from jepatlas.alignment.splits import group_labels
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, subsample
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.seeding import numpy_generator
from jepatlas.workflows.align.align_options import HALF, MapKind

__all__ = [
    "BRIEF",
    "MAIN",
    "Fit",
    "HasMap",
    "Study",
    "fit_map",
    "gather",
    "make_study",
    "marked_split",
    "study_split",
]

MAPS: dict[MapKind, Callable[[], StreamedMap | RobustMap]] = {
    "ridge": partial(RidgeMap, standardise=True),
    "least-squares": LeastSquaresMap,
    "procrustes": ProcrustesMap,
    "similarity": partial(ProcrustesMap, scaled=True),
    "robust": partial(RobustMap, RidgeMap(standardise=True)),
}
STRETCHES = 4
"""A single group is cut into so many stretches of neighbouring rows, one of which chooses the penalty."""


class HasMap(Protocol):
    """A fitted estimator with a linear map."""

    @property
    def map_(self) -> LinearMap: ...


Fit = Callable[[np.ndarray, np.ndarray, np.ndarray | None], HasMap]
"""Fits a map to pairs of rows (b, d_a), (b, d_b) and optional groups of rows."""

BRIEF = ("r2", "cka_debiased", "dsc_common", "nos_10_common", "dsc_target", "nos_10_target")
"""Metrics that are compared with controls."""
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
"""Metrics with a verdict; the others appear in a table only."""

FEWEST = 4
"""Fewest rows for which every metric is defined."""


@dataclass(frozen=True)
class Study:
    """Rows to fit and to score, and the numbers of permutations and half samples."""

    split: Split
    groups: np.ndarray | None = None
    block: int | None = None
    """Rows of a time block. Pairs are then shifted in time instead of shuffled."""
    seed: int = 0
    permutations: int = 99
    replicates: int = 100
    rows: int = 500
    """Largest number of held-out rows to score; many metrics compare every row with every other row."""
    limit: float = CONDITION_LIMIT
    """Condition number above which directions are left out of the map's inverse."""
    advance: Callable[[], object] = lambda: None
    """Called after each of the `rounds` of measurements, for a progress bar."""

    def __post_init__(self) -> None:
        if not self.limit > 1:
            raise InputError(f"'limit', of the condition number, must be above 1, but {self.limit} was given.")
        if self.permutations < 2:
            raise InputError(f"'permutations' must be at least 2, but {self.permutations} was given.")
        rows = self.scored
        sizes = np.bincount(group_labels(None if self.groups is None else self.groups[rows], len(rows)))
        smallest_half = np.sort(sizes)[: len(sizes) // 2].sum()
        if smallest_half < FEWEST:
            if self.block is None:
                unit, more = "group", "rows or groups"
            else:
                unit, more = "time block", f"rows, or shorter --blocks than {self.block}"
            raise InputError(
                f"{len(rows)} held-out rows in {len(sizes)} {unit}{'s' * (len(sizes) != 1)} are too few: intervals "
                f"come from halves of the {unit}s, and each half needs at least {FEWEST} rows. Provide more {more} "
                "(see also --rows)."
            )

    @property
    def rounds(self) -> int:
        """Number of measurements of one alignment: all permutations and half samples, and the true pairs twice."""
        return self.permutations + self.replicates + 2

    def units(self, n: int) -> int | None:
        """Number of groups or whole time blocks among n rows; None if rows are independent."""
        if self.block is not None:
            return n // self.block
        return None if self.groups is None else len(np.unique(self.groups))

    @property
    def scored(self) -> np.ndarray:
        """The held-out rows, or an even subsample of them."""
        return subsample(np.sort(self.split.score), self.rows)


def fit_map(kind: MapKind, a: np.ndarray, b: np.ndarray, groups: np.ndarray | None = None) -> FittedMap:
    """Fit a map a → b. A penalty is chosen on held-out `groups` of rows.

    If all rows are of one group, stretches of neighbouring rows take the place of groups.
    """
    estimator = MAPS[kind]()
    if groups is not None and len(np.unique(groups)) == 1:
        groups = np.arange(len(a)) * STRETCHES // len(a)
    if isinstance(estimator, RidgeMap | RobustMap):
        return estimator.fit(a, b, groups)
    return estimator.fit(a, b)


def make_study(
    pairs: PairedLatents,
    *,
    share: float | None = None,
    blocks: int | None = None,
    permutations: int = 99,
    rows: int = 500,
    limit: float = CONDITION_LIMIT,
    seed: int = 0,
) -> Study:
    """The study of one alignment, with its rows to fit and to score (see `study_split`)."""
    split, groups = study_split(pairs, numpy_generator(seed, "align split"), share=share, blocks=blocks)
    return Study(split, groups, blocks, seed, permutations, rows=rows, limit=limit)


def study_split(
    pairs: PairedLatents, rng: np.random.Generator, *, share: float | None = None, blocks: int | None = None
) -> tuple[Split, np.ndarray | None]:
    """Rows to fit and to score, and the groups that they keep together.

    The split is the one that the files mark, unless a share or time blocks are given; by default half is held out.
    """
    marked = marked_split(pairs, share, blocks)
    if marked is not None:
        return marked, pairs.groups
    share = HALF if share is None else share
    n = len(pairs)
    if blocks is None:
        return split_rows(n, rng, groups=pairs.groups, share=share), pairs.groups
    if pairs.groups is not None:
        raise InputError("Rows are split by groups or by time blocks, not by both: leave out --blocks or the groups.")
    return split_rows(n, rng, blocks=blocks, share=share), time_blocks(n, blocks)


def marked_split(pairs: PairedLatents, share: float | None, blocks: int | None) -> Split | None:
    """The split that the files mark; None without marks, or if a share or time blocks are given.

    A state that either model was trained on is not scored.
    """
    held = pairs.held
    if held is None or share is not None or blocks is not None:
        return None
    if held.all() or not held.any():
        raise InputError(
            f"{held.sum()} of {len(held)} rows are marked as held out by both files, but some must be held out, to "
            "score on, and others not, to fit on. Give --share to ignore the marks."
        )
    if pairs.groups is not None:
        both = np.intersect1d(pairs.groups[held], pairs.groups[~held])
        if len(both):
            raise InputError(
                f"{len(both)} groups, such as '{both[0]}', have rows that are marked as held out and rows that are "
                "not, but rows of one group are nearly copies of each other. Hold out whole groups, or give --share "
                "to ignore the marks."
            )
    return pairs.marked_split


def gather(
    a: np.ndarray, b: np.ndarray, fit: Fit, study: Study, names: Iterable[str] = tuple(METRICS)
) -> dict[str, Evidence]:
    """Held-out metrics of the fitted map, with intervals and with a null that fits the map anew."""
    names = list(names)

    def fit_rows(rows: np.ndarray, partners: np.ndarray) -> HasMap:
        return fit(a[rows], b[partners], None if study.groups is None else study.groups[rows])

    def score_rows(fitted: HasMap, rows: np.ndarray, partners: np.ndarray) -> dict[str, float]:
        study.advance()
        return measure(a[rows], b[partners], fitted.map_, names=names, limit=study.limit)

    held_out = HeldOut(
        n=len(a),
        split=Split(study.split.fit, study.scored),
        fit=fit_rows,
        score=score_rows,
        refit=True,
        groups=study.groups,
    )
    intervals = held_out.intervals(
        numpy_generator(study.seed, "intervals"),
        replicates=study.replicates,
        ranges={name: (METRICS[name].low, METRICS[name].high) for name in names},
    )
    nulls = held_out.null(
        numpy_generator(study.seed, "nulls"),
        directions={name: METRICS[name].direction for name in names},
        permutations=study.permutations,
        block=study.block,
    )
    shifted, units = study.block is not None, study.units(len(a))
    return {name: Evidence(METRICS[name], intervals[name], nulls[name], shifted, units) for name in names}
