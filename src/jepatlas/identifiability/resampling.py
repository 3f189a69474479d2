"""Fit and score halves of (latents, states), and time blocks that make rows of a trajectory independent groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from jepatlas.core.linear import Split
from jepatlas.core.records import Estimate
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.validation import as_arrays, check_matrices, check_same_shape

__all__ = ["Halves", "time_blocks"]

LINKED = 0.5  # share of rows that must be followed by their successor, beyond coincidence
SAME = 1e-5  # relative tolerance: the same state encoded in two batches may differ by rounding
BLOCK_LENGTH = 5  # in correlation times
MIN_BLOCKS = 10


@dataclass(frozen=True)
class Halves:
    """Rows of h (b, d) and z (b, n), split into rows to fit on and rows to score on. Groups are never split."""

    h: np.ndarray
    z: np.ndarray
    split: Split
    groups: np.ndarray | None = None

    def subsampled(self, rows: int, rng: np.random.Generator) -> Halves:
        """At most `rows` random rows of each half."""
        kept = [side if len(side) <= rows else np.sort(rng.permutation(side)[:rows]) for side in self.split]
        fit = len(kept[0])
        indices = np.concatenate(kept)
        groups = None if self.groups is None else self.groups[indices]
        split = Split(np.arange(fit), np.arange(fit, len(indices)))
        return Halves(self.h[indices], self.z[indices], split, groups)

    def estimates(
        self, statistic: Callable[[np.ndarray], Mapping[str, float]], rng: np.random.Generator, replicates: int
    ) -> dict[str, Estimate]:
        """Group-bootstrap intervals of a statistic of weights of the score rows."""
        score = self.split.score
        groups = None if self.groups is None else self.groups[score]
        return bootstrap(statistic, len(score), rng, groups=groups, replicates=replicates)


def time_blocks(h: np.ndarray, h_next: np.ndarray) -> np.ndarray | None:
    """Block labels for the rows of one long trajectory, to be used as `groups`. None if rows are not consecutive.

    Rows are consecutive where h'_i = h_{i+1}. With r the largest lag-1 correlation of a coordinate, the integrated
    autocorrelation time is τ = (1 + r)/(1 − r), and blocks have 5 τ rows, so that neighbouring blocks are nearly
    independent. A break between episodes starts a new block.

    >>> walk = np.random.default_rng(0).standard_normal((101, 2))
    >>> int(time_blocks(walk[:-1], walk[1:]).max()) + 1
    17
    >>> time_blocks(walk[:-1], walk[:0:-1]) is None
    True
    """
    h, h_next = as_arrays(h=h, h_next=h_next)
    check_matrices(h=h, h_next=h_next)
    check_same_shape(h=h, h_next=h_next)
    follows = _equal_rows(h_next[:-1], h[1:])
    coincidence = _equal_rows(h_next, np.roll(h, len(h) // 2, axis=0)).mean()
    if not follows.mean() - coincidence > LINKED:
        return None
    starts = np.flatnonzero(np.concatenate([[True], ~follows]))  # first row of each unbroken stretch
    stretch = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(h))))
    length = min(_block_length(h, h_next), max(len(h) // MIN_BLOCKS, 1))
    block = (np.arange(len(h)) - starts[stretch]) // length
    return np.unique(np.stack([stretch, block]), axis=1, return_inverse=True)[1].ravel()


def _equal_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Mask of rows that are equal up to rounding."""
    return (np.abs(a - b) <= SAME * a.std(0)).all(1)


def _block_length(h: np.ndarray, h_next: np.ndarray) -> int:
    """Block length in rows."""
    now = h.astype(np.float64) - h.astype(np.float64).mean(0)
    later = h_next.astype(np.float64) - h_next.astype(np.float64).mean(0)
    spread = now.std(0) * later.std(0)
    correlations = np.where(spread > 0, (now * later).mean(0) / np.where(spread > 0, spread, 1), 0)
    slowest = min(max(float(np.max(correlations)), 0.0), 1 - 1 / len(h))
    return math.ceil(BLOCK_LENGTH * (1 + slowest) / (1 - slowest))
