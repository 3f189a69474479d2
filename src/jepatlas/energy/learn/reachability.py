"""Can one get there at all? Decided by a threshold on learned energies, with a measured error, and made transitive.

Learned energies are finite: pairs without a path pile up near where learning stops to push them apart. The threshold
is the emptiest place between the energies of pairs that are known to be reachable (a state and a later one of the same
episode) and that pile. Where no pile is found, the threshold is +∞: nothing is called unreachable.

A threshold alone breaks the triangle inequality: x → y and y → z may lie below it and x → z above. So the reachable
relation is closed (whatever is reachable in two steps is reachable) before anything is set to +∞:

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

KNOWN = 0.99  # the threshold lies above this share of the known ways, so a single wrong energy cannot move it
PARTS = 8  # windows overlap: each begins an eighth of its width after the one before
RISE = 3.0  # standard deviations by which a valley must be below its sides


def later_pairs(experience: Experience, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows i ≤ j of one episode, drawn uniformly over i and then over j: x[i] leads to x_next[j]."""
    episode = experience.episode
    last = np.append(np.flatnonzero(episode[1:] != episode[:-1]), len(episode) - 1)
    first = rng.integers(len(episode), size=count)
    left = last[np.searchsorted(last, first)] - first + 1
    return first, first + (rng.random(count) * left).astype(int)


def unreachable_threshold(known: np.ndarray, any_pairs: np.ndarray, step: float) -> float:
    """The energy above which pairs are called unreachable, from data alone; +∞ where there is no pile of such.

    `known` are energies of pairs known to be reachable, `any_pairs` those of random pairs of states, `step` the typical
    energy of a step. Pairs are counted in windows one step wide: along a path energies grow by at most a step at a
    time, so ways of all lengths leave no valley, but the pile of pairs without one stands apart.
    """
    edges = np.arange(any_pairs.min(), any_pairs.max() + step, step / PARTS)
    depth = np.where(edges >= np.quantile(known, KNOWN), _valleys(any_pairs, edges, step), -np.inf)
    if depth.max() <= 0:
        return float("inf")
    deepest = np.flatnonzero(depth == depth.max())
    runs = np.split(deepest, np.flatnonzero(np.diff(deepest) > 1) + 1)  # equally empty places: the longest run of them
    longest = max(runs, key=len)
    return float((edges[longest[0]] + edges[longest[-1]] + step) / 2)


def _valleys(values: np.ndarray, edges: np.ndarray, width: float) -> np.ndarray:
    """How much fewer values each window holds than the fullest ones on both its sides, beyond what is chance."""
    ordered = np.sort(values)
    counts = np.searchsorted(ordered, edges + width) - np.searchsorted(ordered, edges)
    before = np.maximum.accumulate(counts)
    after = np.maximum.accumulate(counts[::-1])[::-1]
    sides = np.minimum(before, after)
    return sides - counts - RISE * np.sqrt(sides + counts)


def unreachable_share(known: np.ndarray, threshold: float, episodes: int) -> Estimate:
    """How many pairs known to be reachable are called unreachable: use pairs that the threshold was not chosen on.

    The exact binomial interval, with an episode counted as one observation: pairs of one are not independent.
    """
    if not len(known) or episodes < 1:
        raise InputError("The error of a reachability decision needs at least one pair that is known to be reachable.")
    share = float((known > threshold).mean())
    wrong = share * episodes
    low = betaincinv(wrong, episodes - wrong + 1, 0.025) if wrong else 0.0
    high = betaincinv(wrong + 1, episodes - wrong, 0.975) if wrong < episodes else 1.0
    return Estimate(share, float(low), float(high), len(known))


@dataclass(frozen=True)
class ReachabilityErrors:
    """Against truth: both kinds of error, and the AUC of the energy itself; NaN where there are no such pairs."""

    missed: float
    """Share of reachable pairs called unreachable."""
    imagined: float
    """Share of unreachable pairs called reachable."""
    auc: float
    """How often an unreachable pair has more energy than a reachable one."""


def reachability_errors(energy: np.ndarray, truth: np.ndarray, reachable: np.ndarray) -> ReachabilityErrors:
    """`reachable` is the decision for each energy, `truth` is +∞ where there is no way."""
    way = np.isfinite(truth)
    missed = _mean(~reachable[way])
    imagined = _mean(reachable[~way])
    ranks = mean_ranks(energy.ravel())
    count, others = int((~way).sum()), int(way.sum())
    wins = ranks.reshape(energy.shape)[~way].sum() - count * (count + 1) / 2
    return ReachabilityErrors(missed, imagined, float(wins / (count * others)) if count * others else float("nan"))


def _mean(decisions: np.ndarray) -> float:
    return float(decisions.mean()) if len(decisions) else float("nan")


def reachable_closure(reachable: np.ndarray) -> np.ndarray:
    """The smallest transitive and reflexive relation that contains this one: paths of twice the length each round.

    >>> reachable_closure(np.eye(3, k=1, dtype=bool)).astype(int)
    array([[1, 1, 1],
           [0, 1, 1],
           [0, 0, 1]])
    """
    closed = reachable | np.eye(len(reachable), dtype=bool)
    while True:
        steps = closed.astype(np.float32)  # counts of ways: exact up to 2²⁴ states, and only their sign is read
        further = steps @ steps > 0
        if (further == closed).all():
            return closed
        closed = further


def with_unreachable(matrix: np.ndarray, threshold: float) -> np.ndarray:
    """Energies of all pairs of a set of states, +∞ where no chain of pairs at or below the threshold leads.

    The triangle inequality holds wherever it held before. A single pair wrongly below the threshold opens a way for all
    that lead through it: hold the decision against `reachability_errors` after closing, too.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"Energies of all pairs form a square matrix, but this one is {matrix.shape}.")
    return np.where(reachable_closure(matrix <= threshold), matrix, np.inf)
