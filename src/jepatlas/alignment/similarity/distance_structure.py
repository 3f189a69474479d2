"""DSC, the distance-structure correlation: rank correlation of the distances between all pairs of rows.

    DSC = Spearman( {‖aᵢ − aⱼ‖}_{i<j}, {‖bᵢ − bⱼ‖}_{i<j} )

For many pairs, distances are computed in tiles three times and never stored: for coarse counts, for fine counts (see
`RankBuckets`), and for the product of ranks. Tiles use ‖aᵢ‖² + ‖aⱼ‖² − 2aᵢ·aⱼ in float64, or the difference of the
rows if that cancels, because ranks depend on every digit of a distance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.spatial.distance

from jepatlas.alignment.paired import Progress, centred, check_pairs, scaled
from jepatlas.core.stats import spearman

__all__ = ["RankBuckets", "dsc", "dsc_in_tiles", "ranked_product"]

SMALL = 1 << 17  # pairs up to which sorting is faster than counting
ROWS, COLUMNS = 256, 2048  # size of a tile: 4 MB
CLOSE = 2.0**-20  # share of the norms below which a squared distance from products has fewer than nine digits
LOWEST = 2.0**-104  # share of the largest norm below which squared distances are zero in float64
BATCHES, FEWEST_PAIRS = 20, 200
CHUNK = 4096  # pairs whose differences are in memory at once


def dsc(a: np.ndarray, b: np.ndarray, *, progress: Progress | None = None) -> float:
    """DSC over all pairs of rows, from −1 to 1; NaN if all distances on one side are equal.

    Exact for up to 131,072 pairs; beyond, accurate to 1e-6 except for the latents that `dsc_in_tiles` names.

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
    """DSC for any number of pairs, with memory for a few tiles; `compiled` selects the numba or the numpy version.

    Distances with a relative difference of 2e-9 may count as tied. This matters only if all distances agree in their
    first six digits, or if some rows are 1e8 times farther out than the others.
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


class _Distances:
    """Squared distances of all pairs of rows, one tile at a time."""

    def __init__(self, x: np.ndarray, compiled: bool) -> None:
        self.x, self.compiled, self.middle = scaled(x), compiled, centred(x)
        self.norms = np.square(self.middle).sum(1)
        largest = max(self.norms.max(), np.finfo(np.float64).tiny / LOWEST)
        # π keeps bucket edges away from lattice values, whose ties an edge would split
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
    """Numpy version of `kernels.distances.squared_distances`."""
    (row, column), (close, lowest) = corner, limits
    sums = norms[row : row + ROWS, None] + norms[column : column + COLUMNS]
    products[:] = sums - 2 * products
    i, j = np.nonzero(products < close * sums)
    products[i, j] = _between(x, row + i, column + j)
    np.maximum(products, lowest, out=products)


def _counted(side: _Distances, report: Callable[[], None]) -> RankBuckets:
    """Buckets with the counts of all distances."""
    buckets = RankBuckets.cells(side.lowest, side.highest, compiled=side.compiled)
    for step in range(2):
        buckets = buckets.finer() if step else buckets
        for row, column in _corners(len(side.x)):
            buckets.add(side.tile(row, column), 1 + row - column)
            report()
    return buckets


def _corners(n: int) -> Iterator[tuple[int, int]]:
    """First row and column of the tiles that cover the pairs i < j."""
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
    """Squared distances of the given pairs of rows."""
    found = np.empty(len(one))
    for first in range(0, len(one), CHUNK):
        part = slice(first, first + CHUNK)
        found[part] = np.square(x[one[part]] - x[other[part]]).sum(1)
    return found


Tile = np.ndarray
"""A block of a symmetric matrix of positive float64; entries from a given `diagonal` on are counted."""

CELL = 42  # low bits within a cell: 2^10 cells per octave
LOW = (1 << CELL) - 1
FINEST = 18  # bits by which a cell that holds all numbers is divided


@dataclass(frozen=True)
class RankBuckets:
    """Histogram of positive numbers from which ranks are computed, without keeping the numbers.

    Numbers are counted twice: in cells of a thousandth of an octave, then in buckets into which each cell is divided
    according to its count. All numbers of a bucket get their mean rank, as ties do. A bucket with a share w of all
    numbers changes a rank correlation by at most w², and there are at least 2¹⁸ buckets. The total error is far below
    1e-6, but numbers with a relative difference of less than 4e-9 may count as equal.
    """

    origin: int
    offsets: np.ndarray  # (cells,) first bucket of a cell
    shifts: np.ndarray  # (cells,) low bits that a bucket ignores
    counts: np.ndarray  # (buckets,)
    compiled: bool = True

    @classmethod
    def cells(cls, lowest: float, highest: float, *, compiled: bool = True) -> RankBuckets:
        """Empty buckets, one per cell."""
        origin, last = (int(np.float64(x).view(np.int64)) for x in (lowest, highest))
        offsets = np.arange(((last - origin) >> CELL) + 1)
        return cls(origin, offsets, np.full(len(offsets), CELL), np.zeros(len(offsets), np.int64), compiled)

    def finer(self) -> RankBuckets:
        """Empty buckets that divide the cells according to their counts."""
        share = self.counts / max(1, self.counts.sum())
        bits = np.ceil(np.log2(np.maximum(share * 2**FINEST, 1))).astype(np.int64)
        ends = np.cumsum(1 << bits)
        return RankBuckets(self.origin, ends - (1 << bits), CELL - bits, np.zeros(ends[-1], np.int64), self.compiled)

    def add(self, tile: Tile, diagonal: int) -> None:
        if self.compiled:
            from jepatlas.core.kernels.ranks import add_counts  # noqa: PLC0415  (numba takes a second to import)

            add_counts(tile.view(np.int64), diagonal, (CELL, self.origin, self.offsets, self.shifts, self.counts))
        else:
            self.counts[:] += np.bincount(self.of(tile)[_above(tile, diagonal)], minlength=len(self.counts))

    def of(self, tile: Tile) -> np.ndarray:
        """Bucket of each number."""
        beyond = tile.view(np.int64) - self.origin
        cell = beyond >> CELL
        return self.offsets[cell] + ((beyond & LOW) >> self.shifts[cell])

    def ranks(self) -> np.ndarray:
        """Mean rank of the numbers of each bucket, from −½ to ½."""
        ends = np.cumsum(self.counts)
        return (ends - self.counts / 2) / max(1, ends[-1]) - 0.5

    def variance(self) -> float:
        return float(self.counts @ np.square(self.ranks()))


def ranked_product(
    a: RankBuckets, b: RankBuckets, ranks: tuple[np.ndarray, np.ndarray], tiles: tuple[Tile, Tile], diagonal: int
) -> float:
    """Σ rank_a · rank_b over the entries of two tiles from the diagonal on."""
    if not a.compiled:
        kept = _above(tiles[0], diagonal)
        return float(ranks[0][a.of(tiles[0])[kept]] @ ranks[1][b.of(tiles[1])[kept]])
    from jepatlas.core.kernels.ranks import rank_product  # noqa: PLC0415

    first, second = (tile.view(np.int64) for tile in tiles)
    ranked_a, ranked_b = ((CELL, x.origin, x.offsets, x.shifts, y) for x, y in zip((a, b), ranks, strict=True))
    return rank_product(first, second, diagonal, ranked_a, ranked_b)


def _above(tile: Tile, diagonal: int) -> np.ndarray:
    return np.arange(tile.shape[1]) >= np.arange(len(tile))[:, None] + diagonal
