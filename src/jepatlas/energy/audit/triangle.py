"""The triangle inequality on sampled states, measured by the shortest-path closure, and its repair.

    D(x, z) = min over x = y_0, y_1, …, y_k = z of Σ E(y_{i−1}, y_i)        the closure of E
    gap(x, z) = (E(x, z) − D(x, z)) / max(E(x, z), s/10)                    s the median energy

D is the largest quasimetric nowhere above E. All gaps are 0 exactly if E(x, z) ≤ E(x, y) + E(y, z) for all triples; the
gap is 1 where D is finite but E is +∞. Energies far below the median are compared with s/10, because at that scale the
rounding errors of the larger energies dominate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import csgraph_from_dense, floyd_warshall

from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy.audit.sample import ROUNDINGS, Sample, energy_matrix, precision_of

__all__ = [
    "GapHistogram",
    "Repair",
    "best_middle_states",
    "closure",
    "gap_histogram",
    "relative_gap",
    "repair",
    "triangle_gaps",
    "triangle_verdict",
]

SMALL = 0.1  # relative to the median energy
BINS = 40


@dataclass(frozen=True)
class GapHistogram:
    """The number of pairs of states per gap; edges (k + 1,) from 0 to 1."""

    counts: np.ndarray  # (k,)
    edges: np.ndarray


@dataclass(frozen=True)
class Repair:
    """A repaired matrix of energies and its distance from the given one."""

    energies: np.ndarray  # (n, n)
    mean: float  # mean |given − repaired| over finite entries
    largest: float  # largest |given − repaired|
    share: float  # share of entries that changed by more than rounding
    opened: int  # number of pairs that were +∞ although a path through other states exists


def closure(energies: np.ndarray) -> np.ndarray:
    """The shortest-path closure of energies (n, n), by the Floyd-Warshall algorithm.

    Negative entries count as zero, and the diagonal of the result is zero.

    >>> closure(np.array([[0, 1, 5], [1, 0, 1], [np.inf, 1, 0]]))
    array([[0., 1., 2.],
           [1., 0., 1.],
           [2., 1., 0.]])
    """
    costs = np.maximum(energies, 0.0).astype(np.float64)
    np.fill_diagonal(costs, 0.0)
    edges = csgraph_from_dense(costs, null_value=np.inf)  # passed as dense, scipy would drop edges of cost zero
    return floyd_warshall(edges)


def repair(energies: np.ndarray) -> Repair:
    """The closure of a matrix, and how far it is from the matrix.

    No other quasimetric below the given energies is closer to them in any entry.

    >>> repair(np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])).largest
    2.0
    """
    given = energy_matrix(np.asarray(energies))
    assert given is not None
    before = given.astype(np.float64)
    after = closure(before)
    finite = np.isfinite(before)
    opened = np.isposinf(before) & np.isfinite(after)
    change = np.abs(np.where(finite, before, 0.0) - np.where(finite, after, 0.0))
    beyond = change > ROUNDINGS * precision_of(given) * np.where(finite, np.abs(before), 0.0)
    mean = float(change[finite].mean()) if finite.any() else 0.0
    return Repair(after, mean, float(change.max()), float((beyond | opened).mean()), int(opened.sum()))


def relative_gap(direct: np.ndarray, detour: np.ndarray, scale: float) -> np.ndarray:
    """How much shorter the detour is, relative to the direct energy; 0 if it is not shorter.

    >>> relative_gap(np.array([2.0, np.inf, np.inf, 1.0]), np.array([1.0, 1.0, np.inf, 3.0]), 1.0).tolist()
    [0.5, 1.0, 0.0, 0.0]
    """
    unreachable = np.isinf(direct)
    finite = np.where(unreachable, 0.0, direct)
    gap = (finite - np.where(unreachable, 0.0, detour)) / np.maximum(finite, SMALL * scale)
    return np.maximum(np.where(unreachable, np.isfinite(detour), gap), 0.0)


def triangle_gaps(sample: Sample) -> np.ndarray:
    """The gap of every pair, (n, n)."""
    return relative_gap(np.maximum(sample.energies, 0.0), closure(sample.energies), sample.scale) * sample.others


def gap_histogram(gaps: np.ndarray) -> GapHistogram:
    counts, edges = np.histogram(gaps[~np.eye(len(gaps), dtype=bool)], bins=BINS, range=(0.0, 1.0))
    return GapHistogram(counts, edges)


def triangle_verdict(sample: Sample, gaps: np.ndarray) -> Verdict:
    """`triangle`: the largest gap. The advice names the worst triple."""
    worst = float(gaps.max())
    pairs = sample.n * (sample.n - 1)
    share = (gaps > sample.tolerance).sum() / pairs
    return Verdict.judge(
        "triangle",
        Estimate.exact(worst, pairs),
        direction="lower",
        threshold=sample.tolerance,
        null=0.0,
        good=f"Among {sample.n} states no path through other states is shorter than the direct energy.",
        bad=f"{_worst_triple(sample)} {share:.1%} of the pairs have a shorter path through other states. Repair the "
        "matrix by its closure, or use a head that is a quasimetric by construction.",
    )


def _worst_triple(sample: Sample) -> str:
    """The triple with the largest gap. If any path violates the inequality, so does one with a single middle state."""
    energies = np.maximum(sample.energies, 0.0)
    via = best_middle_states(energies)
    row, column = np.indices(via.shape)
    first_leg, second_leg = energies[row, via], energies[via, column]
    detour = np.where(via < 0, np.inf, first_leg + second_leg)
    flat = int((relative_gap(energies, detour, sample.scale) * sample.others).argmax())
    direct, first, second = energies.flat[flat], first_leg.flat[flat], second_leg.flat[flat]
    return (
        f"The energy {sample.pair(flat)} is {direct:.4g}, but through state {sample.states[via.flat[flat]]} it is "
        f"{first:.4g} + {second:.4g} = {first + second:.4g}."
    )


def best_middle_states(energies: np.ndarray) -> np.ndarray:
    """For each pair (x, z) the state y ≠ x, z that minimises E(x, y) + E(y, z), (n, n); −1 if all sums are infinite."""
    n = len(energies)
    second_leg = energies.copy()
    np.fill_diagonal(second_leg, np.inf)
    best = np.empty((n, n), dtype=int)
    for row in range(n):
        detours = energies[row, :, None] + second_leg  # (middle state, end)
        detours[row] = np.inf
        best[row] = detours.argmin(0)
        best[row, np.isinf(detours.min(0))] = -1
    return best
