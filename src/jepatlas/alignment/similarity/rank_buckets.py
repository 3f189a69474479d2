"""Ranks of more numbers than one would keep: buckets of the number line, fine where there are many numbers.

Numbers are seen twice. The first time they are counted in cells of a thousandth of an octave; then each cell is cut
into buckets by its share, and they are counted in these. All of a bucket share their mean rank, as ties do. A bucket
with the share w of all numbers moves a rank correlation by w² at most, and there are 2¹⁸ of them or more: so what is
lost is far below 1e-6, while numbers less than about 4e-9 of themselves apart may count as equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["RankBuckets", "Tile", "ranked_product"]

Tile = np.ndarray
"""A block of a symmetric matrix, (rows, columns) positive float64; those from a given `diagonal` on are counted."""

CELL = 42  # low bits within a cell: 2^10 cells for every doubling of the number
LOW = (1 << CELL) - 1
FINEST = 18  # bits that a cell with all numbers is cut by


@dataclass(frozen=True)
class RankBuckets:
    """Buckets for the numbers from `lowest` on, how many were counted in each, and the plain or the compiled way."""

    origin: int
    offsets: np.ndarray  # (cells,) first bucket of a cell
    shifts: np.ndarray  # (cells,) low bits that a bucket ignores
    counts: np.ndarray  # (buckets,)
    compiled: bool = True

    @classmethod
    def cells(cls, lowest: float, highest: float, *, compiled: bool = True) -> RankBuckets:
        """One bucket for every cell."""
        origin, last = (int(np.float64(x).view(np.int64)) for x in (lowest, highest))
        offsets = np.arange(((last - origin) >> CELL) + 1)
        return cls(origin, offsets, np.full(len(offsets), CELL), np.zeros(len(offsets), np.int64), compiled)

    def finer(self) -> RankBuckets:
        """Cells cut into empty buckets, by the share that was counted in them."""
        share = self.counts / max(1, self.counts.sum())
        bits = np.ceil(np.log2(np.maximum(share * 2**FINEST, 1))).astype(np.int64)
        ends = np.cumsum(1 << bits)
        return RankBuckets(self.origin, ends - (1 << bits), CELL - bits, np.zeros(ends[-1], np.int64), self.compiled)

    def add(self, tile: Tile, diagonal: int) -> None:
        if self.compiled:
            from jepatlas.core.kernels.ranks import add_counts  # noqa: PLC0415  (numba takes a second to import)

            add_counts(tile.view(np.int64), diagonal, (CELL, self.origin, self.offsets, self.shifts, self.counts))
        else:
            self.counts[:] += np.bincount(self.of(tile)[above(tile, diagonal)], minlength=len(self.counts))

    def of(self, tile: Tile) -> np.ndarray:
        """The bucket of every number."""
        beyond = tile.view(np.int64) - self.origin
        cell = beyond >> CELL
        return self.offsets[cell] + ((beyond & LOW) >> self.shifts[cell])

    def ranks(self) -> np.ndarray:
        """The mean rank of each bucket's numbers, from −½ to ½."""
        ends = np.cumsum(self.counts)
        return (ends - self.counts / 2) / max(1, ends[-1]) - 0.5

    def variance(self) -> float:
        return float(self.counts @ np.square(self.ranks()))


def ranked_product(
    a: RankBuckets, b: RankBuckets, ranks: tuple[np.ndarray, np.ndarray], tiles: tuple[Tile, Tile], diagonal: int
) -> float:
    """Σ rank_a · rank_b over the entries of two tiles from the diagonal on."""
    if not a.compiled:
        kept = above(tiles[0], diagonal)
        return float(ranks[0][a.of(tiles[0])[kept]] @ ranks[1][b.of(tiles[1])[kept]])
    from jepatlas.core.kernels.ranks import rank_product  # noqa: PLC0415

    first, second = (tile.view(np.int64) for tile in tiles)
    ranked_a, ranked_b = ((CELL, x.origin, x.offsets, x.shifts, y) for x, y in zip((a, b), ranks, strict=True))
    return rank_product(first, second, diagonal, ranked_a, ranked_b)


def above(tile: Tile, diagonal: int) -> np.ndarray:
    return np.arange(tile.shape[1]) >= np.arange(len(tile))[:, None] + diagonal
