"""Kinds of maps and the study of one alignment: rows to fit and to score, permutations, half samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from jepatlas.alignment import (
    METRICS,
    Evidence,
    FittedMap,
    LeastSquaresMap,
    Null,
    PairedLatents,
    ProcrustesMap,
    RidgeMap,
    RobustMap,
    StreamedMap,
    half_sample_intervals,
    split_rows,
    time_blocks,
)
from jepatlas.alignment.dependence import Dependence, find_dependence
from jepatlas.alignment.nulls import permutation_null
from jepatlas.alignment.splits import group_labels
from jepatlas.alignment.within import SharedColumn
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, subsample
from jepatlas.core.linear_map import CONDITION_LIMIT
from jepatlas.core.processes import limited_threads
from jepatlas.core.seeding import numpy_generator
from jepatlas.workflows.align.align_options import HALF, MapKind
from jepatlas.workflows.align.held_out_metrics import HeldOutMetrics
from jepatlas.workflows.align.refitted_nulls import REFITTED, Fit, HasMap, refitted_scores

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


BRIEF = ("r2", "cka_debiased", "dsc_target", "nos_10_target")
"""Metrics that are compared with controls."""
MAIN = (
    "r2",
    "mse_per_dim",
    "cka_debiased",
    "dsc_target",
    "nos_10_target",
)
"""Metrics with a verdict; the others appear in a table only."""

MOST_REFITTED = 20_000
"""Pairs to fit on up to which the null of R² fits the map anew to permuted pairs."""
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
    note: str = ""
    """How dependent rows that were given without groups are kept together; empty if they are independent."""
    times: float = math.inf
    """Length of a time series in correlation times, if it was found to be one."""
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
    def held_out_groups(self) -> int | None:
        """Number of groups among the rows to score; None if rows are independent."""
        return None if self.groups is None else len(np.unique(self.groups[self.scored]))

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


@limited_threads()
def make_study(
    pairs: PairedLatents,
    *,
    share: float | None = None,
    blocks: int | None = None,
    permutations: int = 99,
    rows: int = 500,
    limit: float = CONDITION_LIMIT,
    seed: int = 0,
    independent: bool = False,
) -> Study:
    """The study of one alignment, with its rows to fit and to score (see `study_split`).

    Near copies and time series that are given without groups or blocks are found (see `find_dependence`), unless rows
    are declared `independent`. Dependent rows stay together in the split (unless the files mark it), in intervals and
    in permutations.
    """
    rng = numpy_generator(seed, "align split")
    if independent or blocks is not None or pairs.groups is not None:
        split, groups = study_split(pairs, rng, share=share, blocks=blocks)
        return Study(split, groups, blocks, seed, permutations, rows=rows, limit=limit)
    sides = pairs.a.h, pairs.b.h
    if pairs.within is not None:
        shared = SharedColumn(pairs.within, np.arange(len(pairs)))
        sides = shared.residual(sides[0]), shared.residual(sides[1])
    found = find_dependence(*sides, seed)
    split = marked_split(pairs, share, None)
    note = _dependence_note(found, len(pairs), marked=split is not None)
    groups = found.groups if found.block is None else time_blocks(len(pairs), found.block)
    if split is None:
        split = split_rows(len(pairs), rng, groups=groups, share=HALF if share is None else share)
    return Study(split, groups, found.block, seed, permutations, rows=rows, limit=limit, note=note, times=found.times)


def _dependence_note(found: Dependence, n: int, *, marked: bool) -> str:
    if found.kind == "none":
        return ""
    undo = "If they are independent: --independent (in Python independent=True)."
    if found.block is not None:
        held = "" if marked else f"{n // found.block} time blocks of {found.block} rows are split, and "
        return f"{found.what}: {held}pairs are shifted in time instead of shuffled. {undo}"
    if found.groups is not None:
        return f"{found.what}: whole clusters are {'' if marked else 'held out and '}shuffled. {undo}"
    return (
        f"Warning: {found.what}, and they are too many to be clustered, so R² and p are too good. Give the object or "
        "episode of each row (--groups)."
    )


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
    a: np.ndarray,
    b: np.ndarray,
    fit: Fit,
    study: Study,
    names: Iterable[str] = tuple(METRICS),
    *,
    fitted: HasMap | None = None,
) -> dict[str, Evidence]:
    """Held-out metrics of the fitted map, with intervals and nulls.

    The null of errors and R² fits the map anew to permuted pairs; that of the other metrics keeps the map and permutes
    the held-out pairs. With more than 20,000 pairs to fit on, the map is kept for all.
    """
    names = list(names)
    rows, scored = study.split.fit, study.scored
    groups = None if study.groups is None else study.groups[rows]
    fitted = fit(a[rows], b[rows], groups) if fitted is None else fitted
    measured = HeldOutMetrics(a[scored], b, scored, fitted.map_, names, limit=study.limit)
    refitted = [name for name in names if name in REFITTED and len(rows) <= MOST_REFITTED]
    kept = [name for name in names if name not in refitted]

    def part(rows: np.ndarray) -> dict[str, float]:
        study.advance()
        return measured.of(rows)

    intervals = half_sample_intervals(
        part,
        len(scored),
        numpy_generator(study.seed, "intervals"),
        groups=None if study.groups is None else study.groups[scored],
        replicates=study.replicates,
        ranges={name: (METRICS[name].low, METRICS[name].high) for name in names},
    )
    nulls: dict[str, Null] = {}
    if refitted:
        refit = refitted_scores(a, b, fit, fitted, study, names=refitted)

        def counted(order: np.ndarray) -> Mapping[str, float]:
            study.advance()
            return refit(order)

        nulls |= _null(counted, len(a), study, study.groups, names=refitted, stream="nulls")
    if kept and study.block is None:
        held_groups = None if study.groups is None else study.groups[scored]
        nulls |= _null(
            lambda order: measured.permuted(order, kept), len(scored), study, held_groups, names=kept, stream="kept"
        )
    elif kept:
        nulls |= _null(
            lambda order: measured.replaced(order[scored], kept), len(a), study, None, names=kept, stream="kept"
        )
    shifted = study.block is not None
    found: dict[str, Evidence] = {}
    for name in names:
        whole = shifted or name in refitted
        units = study.units(len(a)) if whole else study.held_out_groups
        found[name] = Evidence(METRICS[name], intervals[name], nulls[name], shifted, units, study.times)
    return found


def _null(
    statistic: Callable[[np.ndarray], Mapping[str, float]],
    count: int,
    study: Study,
    groups: np.ndarray | None,
    *,
    names: list[str],
    stream: str,
) -> dict[str, Null]:
    return permutation_null(
        statistic,
        count,
        numpy_generator(study.seed, stream),
        directions={name: METRICS[name].direction for name in names},
        groups=groups if study.block is None else None,
        block=study.block,
        permutations=study.permutations,
    )
