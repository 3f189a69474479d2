"""Length of a union of intervals [u_j, v_j].

Of single unions, intervals are merged one by one into the pieces found so far. There are few pieces, because intervals
soon overlap, so this is faster than sorting. Of all pairs, left ends are sorted once for many right ends.

A piece stores which u_j is its left end and which v_j its right end; only these have gradients, −1 and +1. An interval
with v_j ≤ u_j is empty. Intervals that only touch are separate pieces. Of equal left ends the first interval counts, of
equal right ends the one with the largest left end, and of these the last, as in the torch equivalent in
`jepatlas.core.interval_union`.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.kernels import compiled

__all__ = ["ENDS", "STARTS", "role_gradients", "union_lengths", "union_lengths_gradient", "union_lengths_of_pairs"]

STARTS, ENDS = 1, 2  # roles of an interval in its piece; 3 is both
TILE = 256  # pairs at a time

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
    zero = grad.dtype.type(0)
    for row in range(rows):
        weight = grad[row]
        for j in range(k):
            grad_left[row, j] = -weight if roles[row, j] & STARTS else zero
            grad_right[row, j] = weight if roles[row, j] & ENDS else zero
    return grad_left, grad_right


@compiled(error_model="numpy")
def union_lengths_of_pairs(left: np.ndarray, right: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Lengths of all pairs, (n, m, chunks), for left ends (n, chunks, k) and right ends (chunks, k, m).

    `order` (n, chunks, k) sorts the left ends, stably. With l_1 ≤ l_2 ≤ … and m_i the largest right end of the first i
    intervals, the length is Σ_i max(0, v_i − max(l_i, m_{i−1})). The innermost loop runs over right ends, so it is
    vectorised.
    """
    n, chunks, k = left.shape
    total = np.empty((n, right.shape[2], chunks), left.dtype)
    reach, length = np.empty(TILE, left.dtype), np.empty(TILE, left.dtype)
    for start in range(0, right.shape[2], TILE):
        tile = right[:, :, start : start + TILE]
        width = tile.shape[2]
        for c in range(chunks):
            for i in range(n):
                reach[:] = -np.inf
                length[:] = 0
                for place in range(k):
                    j = order[i, c, place]
                    _add_interval(left[i, c, j], tile[c, j], reach[:width], length[:width])
                for t in range(width):
                    total[i, start + t, c] = length[t]
    return total


@compiled
def _add_interval(begin: float, ends: np.ndarray, reach: np.ndarray, length: np.ndarray) -> None:
    zero = ends.dtype.type(0)
    for t in range(len(ends)):
        known = max(begin, reach[t])
        length[t] += ends[t] - known if ends[t] > known else zero
        reach[t] = max(reach[t], ends[t])


@compiled(error_model="numpy")
def union_lengths_gradient(
    left: np.ndarray, right: np.ndarray, order: np.ndarray, grad: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient of the lengths of all pairs for `grad` (n, chunks, m), without any array of size n·m·k."""
    n, chunks, k = left.shape
    grad_left, grad_right = np.zeros_like(left), np.zeros_like(right)
    reach, roles = np.empty(TILE, left.dtype), np.empty((k, TILE), np.int32)
    last = np.empty(TILE, np.int32)  # ENDS until the last interval of the current piece is found, from the right
    for start in range(0, right.shape[2], TILE):
        tile = right[:, :, start : start + TILE]
        width = tile.shape[2]
        for c in range(chunks):
            for i in range(n):
                weight = grad[i, c, start : start + width]
                reach[:] = -np.inf
                for place in range(k):
                    j = order[i, c, place]
                    _find_roles(left[i, c, j], tile[c, j], reach[:width], roles[place, :width])
                last[:] = ENDS
                for place in range(k - 1, -1, -1):
                    j = order[i, c, place]
                    ends = grad_right[c, j, start : start + width]
                    grad_left[i, c, j] -= _add_gradient(roles[place, :width], last[:width], weight, ends)
    return grad_left, grad_right


@compiled
def _find_roles(begin: float, ends: np.ndarray, reach: np.ndarray, roles: np.ndarray) -> None:
    """STARTS for an interval that starts a piece, and ENDS for one that reaches as far as any before it."""
    for t in range(len(ends)):
        opened = ends[t] > begin
        starts, extends = opened & (begin >= reach[t]), opened & (ends[t] >= reach[t])
        roles[t] = STARTS * starts | ENDS * extends
        reach[t] = max(reach[t], ends[t])


@compiled(fastmath={"reassoc"})  # so that the sum is vectorised
def _add_gradient(roles: np.ndarray, last: np.ndarray, weight: np.ndarray, grad_ends: np.ndarray) -> float:
    """Add the gradient of right ends, and return the sum over the pairs whose piece this interval starts."""
    zero = weight.dtype.type(0)
    total = zero
    for t in range(len(roles)):
        starts, extends = roles[t] & STARTS, roles[t] & ENDS
        grad_ends[t] += weight[t] if extends & last[t] else zero
        total += weight[t] if starts else zero
        last[t] = 2 * starts if extends else last[t]
    return total


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
