"""Length of a union of intervals [u_j, v_j], by merging intervals one by one into the pieces found so far.

There are few pieces, because intervals soon overlap, so this is faster than sorting. A piece stores which u_j is its
left end and which v_j its right end; only these have gradients, −1 and +1. An interval with v_j ≤ u_j is empty.
Intervals that only touch are separate pieces. Of equal left ends the first interval counts, of equal right ends the one
with the largest left end, and of these the last, as in the torch equivalent in `jepatlas.core.interval_union`.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.kernels import compiled

__all__ = ["ENDS", "STARTS", "role_gradients", "union_lengths", "union_lengths_gradient", "union_lengths_of_pairs"]

STARTS, ENDS = 1, 2  # roles of an interval in its piece; 3 is both

Pieces = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Left ends, right ends and their intervals, in ascending order, and a list of the intervals that are not empty."""


@compiled
def union_lengths(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lengths (rows,) for ends (rows, k), and roles (rows, k): whether an interval starts or ends a piece."""
    rows, k = left.shape
    total, roles = np.empty(rows, left.dtype), np.zeros((rows, k), np.uint8)
    pieces = _room(left)
    for row in range(rows):
        count = _merge(left, row, right, row, pieces)
        total[row] = _length(pieces, count)
        for piece in range(count):
            roles[row, pieces[2][piece]] |= STARTS
            roles[row, pieces[3][piece]] |= ENDS
    return total, roles


@compiled
def role_gradients(roles: np.ndarray, grad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """−grad for an interval that starts a piece, +grad for one that ends it: two (rows, k) arrays."""
    rows, k = roles.shape
    grad_left, grad_right = np.empty((rows, k), grad.dtype), np.empty((rows, k), grad.dtype)
    for row in range(rows):
        weight = grad[row]
        for j in range(k):
            grad_left[row, j] = -weight if roles[row, j] & STARTS else 0
            grad_right[row, j] = weight if roles[row, j] & ENDS else 0
    return grad_left, grad_right


@compiled
def union_lengths_of_pairs(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Lengths of all pairs, (n, m, chunks), for left ends (n, chunks, k) and right ends (m, chunks, k)."""
    n, chunks, k = left.shape
    total = np.empty((n, len(right), chunks), left.dtype)
    pieces, one, other = _room(left), left.reshape(-1, k), right.reshape(-1, k)
    for i in range(n):
        for j in range(len(right)):
            for c in range(chunks):
                total[i, j, c] = _length(pieces, _merge(one, i * chunks + c, other, j * chunks + c, pieces))
    return total


@compiled
def union_lengths_gradient(left: np.ndarray, right: np.ndarray, grad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient of the lengths of all pairs, accumulated without any array of size n·m·k."""
    n, chunks, k = left.shape
    grad_left, grad_right = np.zeros_like(left), np.zeros_like(right)
    pieces, one, other = _room(left), left.reshape(-1, k), right.reshape(-1, k)
    for i in range(n):
        for j in range(len(right)):
            for c in range(chunks):
                for piece in range(_merge(one, i * chunks + c, other, j * chunks + c, pieces)):
                    grad_left[i, c, pieces[2][piece]] -= grad[i, j, c]
                    grad_right[j, c, pieces[3][piece]] += grad[i, j, c]
    return grad_left, grad_right


@compiled
def _room(left: np.ndarray) -> Pieces:
    k = left.shape[-1]
    low, high = np.empty(k, left.dtype), np.empty(k, left.dtype)
    return low, high, np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k + 1, np.int64)


@compiled
def _length(pieces: Pieces, count: int) -> float:
    if count < 0:
        return np.nan
    total = pieces[0].dtype.type(0)
    for piece in range(count):
        total += pieces[1][piece] - pieces[0][piece]
    return total


@compiled
def _merge(left: np.ndarray, i: int, right: np.ndarray, r: int, pieces: Pieces) -> int:
    """Compute the pieces of one union, of row i and row r, and return their number; −1 if an end is NaN."""
    low, high, first, last, opened = pieces
    count, some = 0, _opened(left, i, right, r, opened)
    for which in range(some):
        j = opened[which]
        a, b = left[i, j], right[r, j]
        begin = 0  # the pieces that overlap with this interval are those in [begin, end)
        while begin < count and high[begin] <= a:
            begin += 1
        end = begin
        while end < count and low[end] < b:
            end += 1
        if begin == end:
            for piece in range(count, begin, -1):
                low[piece], high[piece] = low[piece - 1], high[piece - 1]
                first[piece], last[piece] = first[piece - 1], last[piece - 1]
            low[begin], high[begin], first[begin], last[begin] = a, b, j, j
            count += 1
            continue
        if a < low[begin]:
            low[begin], first[begin] = a, j
        gone = end - 1 - begin
        if b > high[end - 1] or (b == high[end - 1] and a >= left[i, last[end - 1]]):
            high[begin], last[begin] = b, j
        elif gone:
            high[begin], last[begin] = high[end - 1], last[end - 1]
        if gone:
            for piece in range(end, count):
                low[piece - gone], high[piece - gone] = low[piece], high[piece]
                first[piece - gone], last[piece - gone] = first[piece], last[piece]
            count -= gone
    return count if some >= 0 else -1


@compiled
def _opened(left: np.ndarray, i: int, right: np.ndarray, r: int, opened: np.ndarray) -> int:
    """List the intervals that are not empty, without branches, which would often be mispredicted."""
    count, known = 0, True
    for j in range(left.shape[1]):
        opened[count] = j
        count += right[r, j] > left[i, j]
        known &= (right[r, j] > left[i, j]) | (right[r, j] <= left[i, j])
    return count if known else -1
