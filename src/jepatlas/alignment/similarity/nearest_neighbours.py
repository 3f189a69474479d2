"""Neighbourhood overlap: NOS@k and mutual k-NN.

    overlapᵢ(k) = |N_a(i) ∩ N_b(i)| / k,   N(i) the k nearest other rows of row i

    NOS@k        1 − mean overlap of Euclidean neighbourhoods: 0 if they are equal
    mutual k-NN  mean overlap of neighbourhoods by angle ("The Platonic Representation Hypothesis")

Unrelated latents share k / (n − 1) by chance. Of rows at equal distance the earlier one counts as nearer, so results
are deterministic. Products are computed in tiles that serve both their rows and their columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.alignment.paired import Progress, centred, check_matrix, check_pairs, scaled
from jepatlas.core.errors import InputError

__all__ = ["mutual_knn", "neighbour_overlap", "neighbours", "nos", "overlap"]

ROWS, COLUMNS = 512, 2048  # of a tile: 4 MB
SPARE = 8  # extra candidates, so that float32 rounding is unlikely to exclude one of the k nearest


def neighbours(a: np.ndarray, k: int, *, progress: Progress | None = None, compiled: bool = True) -> np.ndarray:
    """The k nearest other rows (n, k) of each row, nearest first; `compiled` selects the numba or the numpy version.

    >>> neighbours(np.array([[0.0], [1.0], [3.0], [0.0]]), 2).tolist()
    [[3, 1], [0, 3], [1, 0], [0, 1]]
    """
    a = check_matrix("a", a)
    if not 1 <= k < len(a):
        raise InputError(f"'k' must be from 1 to {len(a) - 1} for {len(a)} rows, but {k} was given.")
    return (_compiled if compiled else _plain)(a, k, progress)


def neighbour_overlap(
    a: np.ndarray, b: np.ndarray, ks: Sequence[int], *, progress: Progress | None = None
) -> dict[int, np.ndarray]:
    """Share of common neighbours of each row, for several k at once; NaN if one side is constant."""
    a, b = check_pairs(a, b)
    found = [
        neighbours(a, max(ks), progress=progress and (lambda done, total: progress(done, 2 * total))),
        neighbours(b, max(ks), progress=progress and (lambda done, total: progress(total + done, 2 * total))),
    ]
    if any(np.all(x == x[0]) for x in (a, b)):
        return {k: np.full(len(a), np.nan) for k in ks}
    return overlap(found[0], found[1], ks)


def overlap(one: np.ndarray, other: np.ndarray, ks: Sequence[int]) -> dict[int, np.ndarray]:
    """|N ∩ N'| / k of each row, from at least max(ks) neighbours on each side, nearest first.

    A neighbour at position p on one side and q on the other is common from k = max(p, q) on.
    """
    n, most = len(one), max(ks)
    counts = np.zeros((n, most), np.int64)
    for first in range(0, n, ROWS):
        part = counts[first : first + ROWS]
        rows = slice(first, first + ROWS)
        row, p, q = np.nonzero(one[rows, :most, None] == other[rows, None, :most])
        part += np.bincount(row * most + np.maximum(p, q), minlength=part.size).reshape(part.shape)
    common = np.cumsum(counts, axis=1)
    return {k: common[:, k - 1] / k for k in ks}


def nos(a: np.ndarray, b: np.ndarray, k: int = 10, *, progress: Progress | None = None) -> float:
    """NOS@k, from 0 (the same neighbours) to 1 (none in common)."""
    return float(1 - neighbour_overlap(a, b, [k], progress=progress)[k].mean())


def mutual_knn(a: np.ndarray, b: np.ndarray, k: int = 10, *, progress: Progress | None = None) -> float:
    """Mean share of common neighbours by angle, from 0 to 1."""
    a, b = check_pairs(a, b)
    return float(neighbour_overlap(_directions(a), _directions(b), [k], progress=progress)[k].mean())


def _directions(x: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1."""
    x = x.astype(np.float64)
    x = x / max(np.abs(x).max(), np.finfo(np.float64).tiny)
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(lengths > 0, lengths, 1)


def _compiled(a: np.ndarray, k: int, progress: Progress | None) -> np.ndarray:
    from jepatlas.core.kernels.neighbours import offer, settle  # noqa: PLC0415  (numba takes a second to import)

    n, kept = len(a), min(k + SPARE, len(a) - 1)
    rough = centred(a).astype(np.float32)
    norms = _half_norms(rough)
    bounds, candidates = np.full((n, kept), np.inf), np.full((n, kept), -1)
    corners = [(row, column) for row in range(0, n, ROWS) for column in range(row, n, COLUMNS)]
    for done, (row, column) in enumerate(corners, start=1):
        offer(rough[row : row + ROWS] @ rough[column : column + COLUMNS].T, (row, column), norms, bounds, candidates)
        if progress is not None:
            progress(done, len(corners))
    return settle(scaled(a), bounds, candidates, k)


def _half_norms(rough: np.ndarray) -> np.ndarray:
    """‖x‖²/2 minus a bound of the float32 error of a distance: rounding of rows, products and sums, and underflow."""
    single, terms = np.finfo(np.float32), rough.shape[1] + 8
    return (np.square(rough, dtype=np.float64).sum(1) * (1 - terms * single.eps / 2) - terms * single.tiny) / 2


def _plain(a: np.ndarray, k: int, progress: Progress | None) -> np.ndarray:
    x = scaled(a)
    near = np.empty((len(x), k), np.int64)
    for row in range(len(x)):
        distances = np.square(x - x[row]).sum(1)
        distances[row] = np.inf
        near[row] = np.argsort(distances, kind="stable")[:k]
        if progress is not None:
            progress(row + 1, len(x))
    return near
