"""The triangle inequality over all triples of states, or over all triples of sampled pairs, and its repair.

    D(x, z) = min over y of E(x, y) + E(y, z)                               the cheapest detour
    gap(x, z) = (E(x, z) − D(x, z)) / max(E(x, z), s/10)                    s the median energy

All gaps are 0 exactly if E(x, z) ≤ E(x, y) + E(y, z) for all triples; the gap is 1 where D is finite but E is +∞.
Energies far below the median are compared with s/10, because at that scale the rounding errors of the larger energies
dominate. With up to 2,000 states all pairs are checked. With more, pairs are drawn independently and each is checked
with every middle state: if a share x of N drawn pairs violated the inequality, none would be seen with probability
(1 − x)ᴺ, so 95% of the time a share above 1 − 0.05^{1/N} would have been seen.

The closure D*(x, z), the cheapest path through any number of states, is the largest quasimetric nowhere above E.
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
    "TriangleCheck",
    "check_triangles",
    "closure",
    "gap_histogram",
    "relative_gap",
    "repair",
    "triangle_verdict",
]

SMALL = 0.1  # relative to the median energy
BINS = 40
ALL_PAIRS = 2000  # states up to which all triples are checked
FEW = 128  # states up to which numpy is quick enough
SUMS = 4 * 10**8
FEWEST_PAIRS = 2000
MISSED = 0.05


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


@dataclass(frozen=True)
class TriangleCheck:
    """Gaps of pairs of states, over all middle states."""

    gaps: np.ndarray  # (m,)
    rows: np.ndarray  # (m,) start of each pair
    columns: np.ndarray  # (m,) its end
    complete: bool  # whether these are all pairs

    @property
    def detectable(self) -> float:
        """The smallest share of violating pairs that is seen with a probability of 95%; 0 if all pairs are checked."""
        return 0.0 if self.complete else float(1 - MISSED ** (1 / len(self.gaps)))

    @property
    def worst(self) -> tuple[int, int]:
        """Start and end of the pair with the largest gap."""
        place = int(self.gaps.argmax())
        return int(self.rows[place]), int(self.columns[place])


def check_triangles(sample: Sample) -> TriangleCheck:
    """All pairs of up to 2,000 states; of more states as many drawn pairs as take 4·10⁸ sums."""
    if sample.n <= ALL_PAIRS:
        rows, columns = np.nonzero(sample.others)
        energies = np.ascontiguousarray(np.maximum(sample.energies, 0.0))
        gaps = relative_gap(energies, _all_detours(energies), sample.scale)
        return TriangleCheck(gaps[rows, columns], rows, columns, complete=True)
    rng = sample.rng("triangle")
    count = max(SUMS // sample.n, FEWEST_PAIRS)
    rows = rng.integers(sample.n, size=count)
    columns = (rows + rng.integers(1, sample.n, size=count)) % sample.n
    direct = np.maximum(sample.energies[rows, columns].astype(np.float64), 0.0)
    gaps = relative_gap(direct, _detours(sample.energies, rows, columns), sample.scale)
    return TriangleCheck(gaps, rows, columns, complete=False)


def _all_detours(energies: np.ndarray) -> np.ndarray:
    if len(energies) <= FEW:  # loading the compiled kernel would take longer
        return np.stack([(row[:, None] + energies).min(0) for row in energies])
    from jepatlas.core.kernels.min_plus import min_plus_square  # noqa: PLC0415  (numba takes a second to import)

    return min_plus_square(energies)


def _detours(energies: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The cheapest detour of the given pairs, over all middle states."""
    found = np.empty(len(rows))
    order = np.argsort(columns, kind="stable")  # pairs with the same end share a copy of its column
    for pairs in np.split(order, np.flatnonzero(np.diff(columns[order])) + 1):
        second_leg = np.maximum(energies[:, columns[pairs[0]]], 0)
        found[pairs] = (np.maximum(energies[rows[pairs]], 0) + second_leg).min(1)
    return found


def gap_histogram(check: TriangleCheck) -> GapHistogram:
    counts, edges = np.histogram(check.gaps, bins=BINS, range=(0.0, 1.0))
    return GapHistogram(counts, edges)


def triangle_verdict(sample: Sample, check: TriangleCheck) -> Verdict:
    """`triangle`: the largest gap. The advice names the worst triple."""
    pairs = len(check.gaps)
    share = float((check.gaps > sample.tolerance).mean())
    if check.complete:
        good = f"Among {sample.n} states no path through another state is shorter than the direct energy."
    else:
        good = (
            f"No path through another state is shorter, in {pairs} pairs drawn from {sample.n} states, each checked "
            f"with all middle states. Violations in more than {check.detectable:.2g} of the pairs would have been seen."
        )
    return Verdict.judge(
        "triangle",
        Estimate.exact(float(check.gaps.max()), pairs),
        direction="lower",
        threshold=sample.tolerance,
        null=0.0,
        good=good,
        bad=f"{_worst_triple(sample, *check.worst)} {share:.2g} of the pairs have a shorter path through another "
        "state. Repair the matrix by its closure, or use a head that is a quasimetric by construction.",
    )


def _worst_triple(sample: Sample, row: int, column: int) -> str:
    first_leg = np.maximum(sample.energies[row].astype(np.float64), 0.0)
    second_leg = np.maximum(sample.energies[:, column].astype(np.float64), 0.0)
    detours = first_leg + second_leg
    detours[[row, column]] = np.inf
    middle = int(detours.argmin())
    direct = max(float(sample.energies[row, column]), 0.0)
    return (
        f"The energy {sample.pair(row * sample.n + column)} is {direct:.4g}, but through state "
        f"{sample.states[middle]} it is {first_leg[middle]:.4g} + {second_leg[middle]:.4g} = {detours[middle]:.4g}."
    )
