"""Reachability decisions from learned energies: a threshold with a measured error, and its transitive closure.

Learned energies are finite; pairs without a path accumulate near the energy at which learning stops to push them apart.
The threshold is the emptiest interval between this mode and the energies of pairs known to be reachable, that is, a
state and a later one of the same episode. Without such a mode the threshold is +∞ and no pair is called unreachable.

A threshold alone violates the triangle inequality: x → y and y → z may be below it and x → z above. So the relation
"below the threshold" is closed transitively before energies are set to +∞:

    E'(x, z) = E(x, z) if z is in the closure of x, else +∞      ≤ E(x, y) + E(y, z) wherever that is finite
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate, Experience
from jepatlas.core.stats import mean_ranks

__all__ = [
    "ReachabilityErrors",
    "later_pairs",
    "reachability_errors",
    "reachable_closure",
    "unreachable_share",
    "unreachable_threshold",
    "with_unreachable",
]

KNOWN = 0.99  # the threshold lies above this share of the known pairs, so that single outliers have no effect
PARTS = 8  # windows per window width: they overlap
RISE = 3.0  # standard deviations by which a valley must be below both of its sides


@dataclass(frozen=True)
class ReachabilityErrors:
    """Error rates against the truth, and the AUC of the energy; NaN if there are no such pairs."""

    missed: float
    """Share of reachable pairs called unreachable."""
    imagined: float
    """Share of unreachable pairs called reachable."""
    auc: float
    """Probability that an unreachable pair has more energy than a reachable one."""


def later_pairs(experience: Experience, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows i ≤ j of the same episode, uniform over i and then over j: x[i] leads to x_next[j]."""
    episode = experience.episode
    last = np.append(np.flatnonzero(episode[1:] != episode[:-1]), len(episode) - 1)
    first = rng.integers(len(episode), size=count)
    left = last[np.searchsorted(last, first)] - first + 1
    return first, first + (rng.random(count) * left).astype(int)


def unreachable_threshold(known: np.ndarray, any_pairs: np.ndarray, step: float) -> float:
    """The energy above which pairs are called unreachable; +∞ if there is no mode of unreachable pairs.

    `known` are energies of pairs known to be reachable, `any_pairs` those of random pairs of states, and `step` the
    typical energy of a step. Pairs are counted in windows one step wide: along a path energies increase by at most one
    step at a time, so reachable pairs leave no valley, and the mode of unreachable pairs stands apart.
    """
    edges = np.arange(any_pairs.min(), any_pairs.max() + step, step / PARTS)
    depth = np.where(edges >= np.quantile(known, KNOWN), _valley_depths(any_pairs, edges, step), -np.inf)
    if depth.max() <= 0:
        return float("inf")
    deepest = np.flatnonzero(depth == depth.max())
    runs = np.split(deepest, np.flatnonzero(np.diff(deepest) > 1) + 1)
    longest = max(runs, key=len)
    return float((edges[longest[0]] + edges[longest[-1]] + step) / 2)


def _valley_depths(values: np.ndarray, edges: np.ndarray, width: float) -> np.ndarray:
    """How many fewer values each window holds than the fullest windows on both sides, minus RISE standard errors."""
    ordered = np.sort(values)
    counts = np.searchsorted(ordered, edges + width) - np.searchsorted(ordered, edges)
    before = np.maximum.accumulate(counts)
    after = np.maximum.accumulate(counts[::-1])[::-1]
    sides = np.minimum(before, after)
    return sides - counts - RISE * np.sqrt(sides + counts)


def unreachable_share(known: np.ndarray, threshold: float, episodes: int) -> Estimate:
    """The share of pairs known to be reachable that are above the threshold; use pairs not used to choose it.

    The interval is the exact binomial one with an episode as one observation, since pairs of an episode are dependent.
    """
    if not len(known) or episodes < 1:
        raise InputError("known must hold at least one pair, of at least one episode.")
    share = float((known > threshold).mean())
    wrong = share * episodes
    low = betaincinv(wrong, episodes - wrong + 1, 0.025) if wrong else 0.0
    high = betaincinv(wrong + 1, episodes - wrong, 0.975) if wrong < episodes else 1.0
    return Estimate(share, float(low), float(high), len(known))


def reachability_errors(energy: np.ndarray, truth: np.ndarray, reachable: np.ndarray) -> ReachabilityErrors:
    """Error rates of the decisions `reachable`; the truth is +∞ for unreachable pairs."""
    is_reachable = np.isfinite(truth)
    missed = _mean(~reachable[is_reachable])
    imagined = _mean(reachable[~is_reachable])
    ranks = mean_ranks(energy.ravel()).reshape(energy.shape)
    positives = int((~is_reachable).sum())
    negatives = int(is_reachable.sum())
    wins = ranks[~is_reachable].sum() - positives * (positives + 1) / 2
    auc = float(wins / (positives * negatives)) if positives * negatives else float("nan")
    return ReachabilityErrors(missed, imagined, auc)


def _mean(decisions: np.ndarray) -> float:
    return float(decisions.mean()) if len(decisions) else float("nan")


def reachable_closure(reachable: np.ndarray) -> np.ndarray:
    """The reflexive transitive closure of a relation, by repeated squaring.

    >>> reachable_closure(np.eye(3, k=1, dtype=bool)).astype(int)
    array([[1, 1, 1],
           [0, 1, 1],
           [0, 0, 1]])
    """
    closed = reachable | np.eye(len(reachable), dtype=bool)
    while True:
        counts = closed.astype(np.float32)  # path counts are exact up to 2²⁴ states, and only their sign is used
        further = counts @ counts > 0
        if (further == closed).all():
            return closed
        closed = further


def with_unreachable(matrix: np.ndarray, threshold: float) -> np.ndarray:
    """Energies between all states, set to +∞ if no chain of pairs at or below the threshold connects them.

    This preserves the triangle inequality. One pair wrongly below the threshold connects all pairs whose path goes
    through it, so evaluate the decision with `reachability_errors` after closing as well.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"matrix must be square, but its shape is {matrix.shape}.")
    return np.where(reachable_closure(matrix <= threshold), matrix, np.inf)
