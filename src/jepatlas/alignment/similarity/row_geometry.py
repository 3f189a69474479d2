"""Geometry of the rows of one side: Gram matrix, ranks of distances and nearest neighbours, computed once.

If the pairs of two sides are permuted, neither geometry changes, only which row belongs to which (Mantel's test):

    CKA     Σᵢⱼ K(i, j) L(π i, π j)            K, L   Gram matrices of centred rows
    DSC     Σᵢⱼ R(i, j) S(π i, π j)            R, S   ranks of distances
    NOS     Σᵢⱼ M(i, j) N(π i, π j)            M, N   1 where j is among the k nearest of i

each with the normalisation of the plain function. A part of the rows inherits sorted distances and neighbours. Values
agree with those of `cka`, `cka_debiased`, `dsc`, `nos` and `mutual_knn`; rows at exactly equal distance may be ordered
differently in a permutation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy.spatial.distance
import scipy.stats

from jepatlas.alignment.paired import centred, scaled
from jepatlas.alignment.similarity.kernel_alignment import ROUNDING

__all__ = ["LARGEST", "GeometryMetric", "Part", "RowGeometry", "permuted_cka", "permuted_dsc", "permuted_nos"]

LARGEST = 2000
"""Largest number of rows for which all pairs are kept in memory."""

Order = np.ndarray | None
"""The row of the second side that belongs to each row of the first: a permutation, or None for the row itself."""


class RowGeometry:
    """Geometry of rows (n, d), each piece computed when it is first needed."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows
        self._nearest: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def constant(self) -> bool:
        return bool(np.all(self.rows == self.rows[0]))

    @cached_property
    def gram(self) -> np.ndarray:
        """Products of centred rows (n, n)."""
        middle = centred(self.rows)
        return middle @ middle.T

    @cached_property
    def distances(self) -> np.ndarray:
        """Distances of all pairs, condensed."""
        return scipy.spatial.distance.pdist(scaled(self.rows))

    @cached_property
    def ranks(self) -> np.ndarray:
        """Ranks of the distances about their mean, condensed."""
        if self.has_ties:
            ranks = scipy.stats.rankdata(self.distances)
        else:
            ranks = np.empty(len(self.distances))
            ranks[self.sorted_pairs] = np.arange(1, len(ranks) + 1)
        return (ranks - (len(ranks) + 1) / 2).astype(np.float32)  # exact: multiples of ½ below 2²³

    @cached_property
    def rank_matrix(self) -> np.ndarray:
        return scipy.spatial.distance.squareform(self.ranks, checks=False)

    @cached_property
    def sorted_pairs(self) -> np.ndarray:
        return np.argsort(self.distances)

    @cached_property
    def has_ties(self) -> bool:
        return bool((np.diff(self.distances[self.sorted_pairs]) == 0).any())

    @cached_property
    def by_distance(self) -> np.ndarray:
        """All other rows of each row (n, n − 1), nearest first."""
        square = scipy.spatial.distance.squareform(self.distances)
        np.fill_diagonal(square, -1.0)  # distances of copies are 0
        return np.argsort(square, axis=1, kind="stable")[:, 1:]

    def nearest(self, k: int) -> np.ndarray:
        """1 where the column is among the k nearest of the row, (n, n) float32."""
        if k not in self._nearest:
            self._nearest[k] = np.zeros((len(self), len(self)), np.float32)
            np.put_along_axis(self._nearest[k], self.by_distance[:, :k], 1, axis=1)
        return self._nearest[k]

    def part(self, chosen: Part) -> RowGeometry:
        return _PartGeometry(self, chosen)

    @cached_property
    def squared_gram(self) -> float:
        """Σ K(i, j)²."""
        return float(np.vdot(self.gram, self.gram))


class Part:
    """Some of n rows, in ascending order, and the pairs of them."""

    def __init__(self, rows: np.ndarray, n: int) -> None:
        self.rows = rows
        self.kept = np.zeros(n, bool)
        self.kept[rows] = True

    @cached_property
    def pairs(self) -> np.ndarray:
        """Mask of the condensed distances between these rows."""
        return np.concatenate([self.kept[row + 1 :] & self.kept[row] for row in range(len(self.kept) - 1)])


class _PartGeometry(RowGeometry):
    def __init__(self, whole: RowGeometry, part: Part) -> None:
        super().__init__(whole.rows[part.rows])
        self.whole = whole
        self.chosen = part

    @cached_property
    def gram(self) -> np.ndarray:
        inner = self.whole.gram[np.ix_(self.chosen.rows, self.chosen.rows)]
        means = inner.mean(0)
        return inner - means - means[:, None] + means.mean()

    @cached_property
    def ranks(self) -> np.ndarray:
        pairs = self.chosen.pairs
        if self.whole.has_ties:
            ranks = scipy.stats.rankdata(self.whole.distances[pairs])
        else:
            ordered = self.whole.sorted_pairs
            every = np.empty(len(ordered))
            inside = ordered[pairs[ordered]]
            every[inside] = np.arange(1, len(inside) + 1)
            ranks = every[pairs]
        return (ranks - (len(ranks) + 1) / 2).astype(np.float32)

    @cached_property
    def by_distance(self) -> np.ndarray:
        place = np.cumsum(self.chosen.kept) - 1  # number of a row within the part
        others = self.whole.by_distance[self.chosen.rows]
        return place[others[self.chosen.kept[others]]].reshape(len(self), len(self) - 1)


GeometryMetric = Callable[[RowGeometry, RowGeometry, Order], float]
"""A metric of two sides whose pairs may be permuted."""


def permuted_cka(a: RowGeometry, b: RowGeometry, order: Order = None, *, debiased: bool = True) -> float:
    """Linear CKA, debiased or biased."""
    sizes = [_hsic(one, one, None, one.squared_gram, debiased) for one in (a, b)]
    least = [ROUNDING * one.squared_gram if debiased else 0.0 for one in (a, b)]
    if not (sizes[0] > least[0] and sizes[1] > least[1]):
        return float("nan")
    product = float(np.vdot(a.gram, _permuted(b.gram, order)))
    return _hsic(a, b, order, product, debiased) / float(np.sqrt(sizes[0] * sizes[1]))


def _hsic(a: RowGeometry, b: RowGeometry, order: Order, product: float, debiased: bool) -> float:
    """n(n − 3) HSIC₁, or HSIC₀, from the product of the Gram matrices; see `kernel_alignment`."""
    if not debiased:
        return product
    n, p, q = len(a), np.diag(a.gram), np.diag(b.gram)
    q = q if order is None else q[order]
    return float(product - n / (n - 2) * (p @ q) + p.sum() * q.sum() / ((n - 1) * (n - 2)))


def permuted_dsc(a: RowGeometry, b: RowGeometry, order: Order = None) -> float:
    """Rank correlation of the distances between all pairs of rows."""
    sizes = _dot(a.ranks, a.ranks) * _dot(b.ranks, b.ranks)
    if not sizes > 0:
        return float("nan")
    if order is None:
        return float(np.clip(_dot(a.ranks, b.ranks) / np.sqrt(sizes), -1, 1))
    product = _dot(a.rank_matrix, _permuted(b.rank_matrix, order)) / 2
    return float(np.clip(product / np.sqrt(sizes), -1, 1))


def permuted_nos(a: RowGeometry, b: RowGeometry, order: Order = None, *, k: int) -> float:
    """Share of the k nearest neighbours that differ; NaN for too few rows, or if one side is constant."""
    if k >= len(a) or a.constant or b.constant:
        return float("nan")
    if order is None:
        common = (a.by_distance[:, :k, None] == b.by_distance[:, None, :k]).sum()
    else:
        common = _dot(a.nearest(k), _permuted(b.nearest(k), order))
    return float(1 - common / (k * len(a)))


def _permuted(matrix: np.ndarray, order: Order) -> np.ndarray:
    """The matrix with rows and columns in the given order."""
    return matrix if order is None else matrix.take(order, axis=0).take(order, axis=1)


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    """Σ a b of float32 with sums in float64."""
    return float(np.einsum("i,i->", a.ravel(), b.ravel(), dtype=np.float64))
