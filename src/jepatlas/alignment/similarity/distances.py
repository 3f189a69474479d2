"""DSC, the distance-structure correlation: do two sets of latents agree on who is far from whom?

    DSC = Spearman( {‖aᵢ − aⱼ‖}_{i<j}, {‖bᵢ − bⱼ‖}_{i<j} )

Up to a million pairs by the definition. Beyond, in tiles ‖aᵢ − aⱼ‖² = ‖aᵢ‖² + ‖aⱼ‖² − 2aᵢ·aⱼ that are made three times
and never kept: to count them roughly, to count them finely (see `rank_buckets`), and to multiply ranks. That is in
float64, and with the difference of rows itself where norms and products cancel: ranks feel every digit of a distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.spatial.distance

from jepatlas.alignment.paired import Progress, centred, check_pairs, scaled
from jepatlas.alignment.similarity.rank_buckets import RankBuckets, ranked_product
from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate
from jepatlas.core.stats import spearman, student_margin

__all__ = ["dsc", "dsc_in_tiles", "dsc_sampled"]

SMALL = 1 << 17  # pairs that are sorted sooner than counted, and no trouble to keep
ROWS, COLUMNS = 256, 2048  # of a tile: 4 MB
CLOSE = 2.0**-20  # share of norms below which a squared distance from products has less than nine digits
LOWEST = 2.0**-104  # squared distances below that of the largest norm are zero: a float64 latent has no such digits
BATCHES, FEWEST_PAIRS = 20, 200
CHUNK = 4096  # chosen pairs whose differences are in memory at once


def dsc(a: np.ndarray, b: np.ndarray, *, progress: Progress | None = None) -> float:
    """Over all pairs of rows, from −1 to 1; NaN where all distances on one side are equal.

    By the definition for up to 131,072 pairs; beyond, within 1e-6 but for the latents that `dsc_in_tiles` names.

    >>> a = np.random.default_rng(0).standard_normal((50, 3))
    >>> dsc(a, 5 - 2 * a[:, ::-1])
    1.0
    """
    a, b = check_pairs(a, b, fewest=3)
    if len(a) * (len(a) - 1) // 2 > SMALL:
        return dsc_in_tiles(a, b, progress=progress)
    value = spearman(*(scipy.spatial.distance.pdist(scaled(x)) for x in (a, b))).value
    if progress is not None:
        progress(1, 1)
    return value


def dsc_in_tiles(a: np.ndarray, b: np.ndarray, *, progress: Progress | None = None, compiled: bool = True) -> float:
    """The same for any number of pairs, in memory of a few tiles; `compiled` chooses the way, plain or quick.

    Distances that differ by 2e-9 of themselves may count as tied. It is of consequence only where all of them agree in
    their first six digits, or where some rows are a hundred million times farther out than the others.
    """
    sides = [_Distances(x, compiled) for x in check_pairs(a, b, fewest=3)]
    report = _counter(progress, 5 * sum(1 for _ in _corners(len(a))))
    buckets = [_counted(side, report) for side in sides]
    ranks = (buckets[0].ranks(), buckets[1].ranks())
    total = 0.0
    for row, column in _corners(len(a)):
        tiles = sides[0].tile(row, column), sides[1].tile(row, column)
        total += ranked_product(buckets[0], buckets[1], ranks, tiles, 1 + row - column)
        report()
    variances = buckets[0].variance() * buckets[1].variance()
    return float(np.clip(total / np.sqrt(variances), -1, 1)) if variances > 0 else float("nan")


def dsc_sampled(a: np.ndarray, b: np.ndarray, pairs: int, rng: np.random.Generator) -> Estimate:
    """The same over `pairs` random pairs of rows, with the interval in which the value over all pairs lies.

    Its width is that of the values of 20 parts of the sample: no law of the distances is assumed. How the value would
    differ between samples of *rows* is another question, which the bootstrap by groups answers.
    """
    if pairs < FEWEST_PAIRS:
        raise InputError(f"A sample of pairs must have at least {FEWEST_PAIRS}, but {pairs} were asked for.")
    a, b = (scaled(x) for x in check_pairs(a, b, fewest=3))
    one = rng.integers(len(a), size=pairs)
    other = (one + rng.integers(1, len(a), size=pairs)) % len(a)  # never itself, all others alike
    distances = [_between(x, one, other) for x in (a, b)]
    value = spearman(*distances).value
    parts = [spearman(x, y).value for x, y in zip(*(np.array_split(d, BATCHES) for d in distances), strict=True)]
    reach = student_margin(np.array(parts))
    low, high = np.clip([value - reach, value + reach], -1, 1)
    return Estimate(value, float(low), float(high), pairs)


class _Distances:
    """Squared distances of all pairs of rows, a tile at a time."""

    def __init__(self, x: np.ndarray, compiled: bool) -> None:
        self.x, self.compiled, self.middle = scaled(x), compiled, centred(x)
        self.norms = np.square(self.middle).sum(1)
        largest = max(self.norms.max(), np.finfo(np.float64).tiny / LOWEST)
        # π keeps the edges of buckets away from the values of a lattice, whose ties they would otherwise cut in two
        self.lowest, self.highest = largest * LOWEST * np.pi, 5 * largest

    def tile(self, row: int, column: int) -> np.ndarray:
        products = self.middle[row : row + ROWS] @ self.middle[column : column + COLUMNS].T
        finish = _finish
        if self.compiled:
            from jepatlas.core.kernels.distances import squared_distances as finish  # noqa: PLC0415
        finish(products, (row, column), self.x, self.norms, (CLOSE, self.lowest))
        return products


def _finish(
    products: np.ndarray, corner: tuple[int, int], x: np.ndarray, norms: np.ndarray, limits: tuple[float, float]
) -> None:
    """The plain twin of `kernels.distances.squared_distances`."""
    (row, column), (close, lowest) = corner, limits
    sums = norms[row : row + ROWS, None] + norms[column : column + COLUMNS]
    products[:] = sums - 2 * products
    i, j = np.nonzero(products < close * sums)
    products[i, j] = _between(x, row + i, column + j)
    np.maximum(products, lowest, out=products)


def _counted(side: _Distances, report: Callable[[], None]) -> RankBuckets:
    """Buckets with all distances counted in them."""
    buckets = RankBuckets.cells(side.lowest, side.highest, compiled=side.compiled)
    for step in range(2):
        buckets = buckets.finer() if step else buckets
        for row, column in _corners(len(side.x)):
            buckets.add(side.tile(row, column), 1 + row - column)
            report()
    return buckets


def _corners(n: int) -> Iterator[tuple[int, int]]:
    """Where the tiles begin that cover the pairs i < j."""
    return ((row, column) for row in range(0, n, ROWS) for column in range(row, n, COLUMNS))


def _counter(progress: Progress | None, total: int) -> Callable[[], None]:
    done = 0

    def report() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return report


def _between(x: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Squared distances of chosen pairs of rows."""
    found = np.empty(len(one))
    for first in range(0, len(one), CHUNK):
        part = slice(first, first + CHUNK)
        found[part] = np.square(x[one[part]] - x[other[part]]).sum(1)
    return found
