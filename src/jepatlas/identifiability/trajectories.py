"""Trajectories: pairs (h, h') whose rows are steps of one or a few trajectories, in time order or shuffled.

Row j follows row i if h_j = h'_i. Chains of rows that follow each other are divided into time blocks, which are nearly
independent and can be used as groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jepatlas.identifiability.validation import as_arrays, check_matrices, check_same_shape

__all__ = ["Trajectories", "find_trajectories"]

LINKED = 0.5  # share of rows that must be followed by another, beyond coincidence
DEPENDENT = 0.05  # share from which rows are reported to be dependent
SAME = 1e-5  # relative tolerance: the same state encoded in two batches may differ by rounding
BLOCK_LENGTH = 5  # in correlation times
MIN_BLOCKS = 10


@dataclass(frozen=True)
class Trajectories:
    """Rows that are steps of trajectories."""

    linked: float  # share of rows that another row follows, beyond coincidence
    shuffled: bool  # whether the row that follows is not the next one
    blocks: np.ndarray | None  # (b,) labels of time blocks; None if too few rows are linked

    @property
    def note(self) -> str:
        """A note for the user; empty for independent rows."""
        if self.blocks is not None:
            how = "Rows are consecutive (h_next of each row is h of the next one)"
            if self.shuffled:
                how = "Rows are the steps of a trajectory in another order (h_next of a row is h of another one)"
            return (
                f"{how} and no groups were given, so they are treated as one trajectory in "
                f"{self.blocks.max() + 1} time blocks. If they are several episodes, give 'groups'."
            )
        if self.linked > DEPENDENT:
            return (
                f"Warning: in {self.linked:.0%} of the rows h_next is h of another row, so rows are dependent and "
                "intervals are too narrow. Give 'groups', such as the episode of each row."
            )
        return ""


def find_trajectories(h: np.ndarray, h_next: np.ndarray) -> Trajectories:
    """Links between rows, and time blocks if most rows are linked.

    With r the largest lag-1 correlation of a coordinate, the integrated autocorrelation time is τ = (1 + r)/(1 − r),
    and blocks have 5 τ rows. A break between episodes starts a new block.

    >>> walk = np.random.default_rng(0).standard_normal((101, 2))
    >>> order = np.random.default_rng(1).permutation(100)
    >>> found = find_trajectories(walk[:-1], walk[1:]), find_trajectories(walk[:-1][order], walk[1:][order])
    >>> [int(one.blocks.max()) + 1 for one in found], [one.shuffled for one in found]
    ([17, 17], [False, True])
    >>> find_trajectories(walk[:-1], walk[1:] + 1).blocks is None
    True
    """
    h, h_next = as_arrays(h=h, h_next=h_next)
    check_matrices(h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    following, linked = _next_rows(h, h_next)
    shuffled = not linked > LINKED
    if shuffled:
        following, linked = _rows_anywhere(h, h_next)
        if not linked > LINKED:
            return Trajectories(linked, shuffled, None)
    chain, step = _chains(following)
    length = min(_block_length(h, h_next), max(len(h) // MIN_BLOCKS, 1))
    blocks = np.unique(np.stack([chain, step // length]), axis=1, return_inverse=True)[1].ravel()
    return Trajectories(linked, shuffled, blocks)


def _next_rows(h: np.ndarray, h_next: np.ndarray) -> tuple[np.ndarray, float]:
    """i + 1 where that row follows row i, otherwise −1; and the share of such rows beyond coincidence."""
    following = np.arange(1, len(h) + 1)
    following[-1] = -1
    found = _equal_rows(h_next, h[following], h) & (following >= 0)
    coincidence = _equal_rows(h_next, np.roll(h, len(h) // 2, axis=0), h).mean()
    return np.where(found, following, -1), float(found[:-1].mean() - coincidence)


def _rows_anywhere(h: np.ndarray, h_next: np.ndarray) -> tuple[np.ndarray, float]:
    """The only row that follows row i, or −1; and the share of such rows beyond coincidence."""
    keys = h @ np.random.default_rng(0).standard_normal(h.shape[1])
    order = np.argsort(keys, kind="stable")
    sorted_rows = h[order]
    repeated = np.zeros(len(h), bool)
    same_as_next = _equal_rows(sorted_rows[:-1], sorted_rows[1:], h)
    repeated[:-1] |= same_as_next
    repeated[1:] |= same_as_next
    following = _search(h_next, h, keys, order, repeated)
    missed = _search(h_next + 3 * SAME * h.std(0), h, keys, order, repeated)  # matches that are due to the tolerance
    return following, float((following >= 0).mean() - (missed >= 0).mean())


def _search(wanted: np.ndarray, h: np.ndarray, keys: np.ndarray, order: np.ndarray, repeated: np.ndarray) -> np.ndarray:
    """For each wanted row the row of h that equals it and is not repeated, or −1; `order` sorts `keys` of h."""
    direction = np.random.default_rng(0).standard_normal(h.shape[1])
    place = np.searchsorted(keys[order], wanted @ direction)
    found = np.full(len(wanted), -1)
    for offset in (-1, 0):
        near = np.clip(place + offset, 0, len(h) - 1)
        rows = order[near]
        same = _equal_rows(wanted, h[rows], h) & ~repeated[near] & (rows != np.arange(len(wanted)))
        found = np.where(same, rows, found)
    return found


def _equal_rows(a: np.ndarray, b: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Mask of rows that are equal up to rounding, relative to the spread of h."""
    return (np.abs(a - b) <= SAME * h.std(0)).all(1)


def _chains(following: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The chain of each row, and its place in it. A row that several rows precede belongs to one of their chains."""
    rows = len(following)
    preceded = np.zeros(rows, bool)
    preceded[following[following >= 0]] = True
    chain = np.full(rows, -1)
    step = np.zeros(rows, int)
    successors = following.tolist()
    starts = [*np.flatnonzero(~preceded).tolist(), *range(rows)]  # rows of a cycle have no natural start
    for number, start in enumerate(starts):
        row = start
        place = 0
        while row >= 0 and chain[row] < 0:
            chain[row] = number
            step[row] = place
            row = successors[row]
            place += 1
    return chain, step


def _block_length(h: np.ndarray, h_next: np.ndarray) -> int:
    """Block length in rows."""
    now = h - h.mean(0)
    later = h_next - h_next.mean(0)
    spread = now.std(0) * later.std(0)
    correlations = np.where(spread > 0, (now * later).mean(0) / np.where(spread > 0, spread, 1), 0)
    slowest = min(max(float(np.max(correlations)), 0.0), 1 - 1 / len(h))
    return math.ceil(BLOCK_LENGTH * (1 + slowest) / (1 - slowest))
