"""The triangle inequality among the sampled states, by the closure: no way through other states is shorter.

    gap(x, z) = (E(x, z) − D(x, z)) / max(E(x, z), s/10)        D the closure, s the median energy

is 0 for all pairs exactly where E(x, z) ≤ E(x, y) + E(y, z) for all triples, and 1 where there is a way but E says +∞.
What is far below the median is measured beside a tenth of it: there the rounding of larger numbers is all there is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy.audit.closure import closure
from jepatlas.energy.audit.sample import Sample

__all__ = ["CURE", "GapHistogram", "gap_histogram", "relative_gap", "triangle", "triangle_gaps"]

SMALL = 0.1  # of the median energy
BINS = 40
CURE = "Repair the matrix by its closure, or use a head that is a quasimetric by construction."


@dataclass(frozen=True)
class GapHistogram:
    """How many pairs of states have which gap; edges (k + 1,) from 0 to 1."""

    counts: np.ndarray  # (k,)
    edges: np.ndarray


def relative_gap(direct: np.ndarray, detour: np.ndarray, scale: float) -> np.ndarray:
    """How much shorter the detour is, as a share; 0 where it is not.

    >>> relative_gap(np.array([2.0, np.inf, np.inf, 1.0]), np.array([1.0, 1.0, np.inf, 3.0]), 1.0).tolist()
    [0.5, 1.0, 0.0, 0.0]
    """
    without_way = np.isinf(direct)
    finite = np.where(without_way, 0.0, direct)
    gap = (finite - np.where(without_way, 0.0, detour)) / np.maximum(finite, SMALL * scale)
    return np.maximum(np.where(without_way, np.isfinite(detour), gap), 0.0)


def triangle_gaps(sample: Sample) -> np.ndarray:
    """Gap of every pair, (n, n)."""
    return relative_gap(np.maximum(sample.energies, 0.0), closure(sample.energies), sample.scale) * sample.others


def triangle(sample: Sample, gaps: np.ndarray) -> Verdict:
    """The largest gap; the advice names the worst triple."""
    worst, pairs = float(gaps.max()), sample.n * (sample.n - 1)
    share = (gaps > sample.tolerance).sum() / pairs
    return Verdict.judge(
        "triangle",
        Estimate(worst, worst, worst, pairs),
        direction="lower",
        threshold=sample.tolerance,
        null=0.0,
        good=f"No way through other states is shorter than the direct one, among {sample.n} states.",
        bad=f"{_worst_triple(sample)} {share:.1%} of all pairs have a shorter way through other states. {CURE}",
    )


def gap_histogram(gaps: np.ndarray) -> GapHistogram:
    counts, edges = np.histogram(gaps[~np.eye(len(gaps), dtype=bool)], bins=BINS, range=(0.0, 1.0))
    return GapHistogram(counts, edges)


def _worst_triple(sample: Sample) -> str:
    """One step of the closure is enough to find a triple wherever there is a gap."""
    from jepatlas.energy.audit.closure_kernel import best_detours  # noqa: PLC0415  (numba takes a second to import)

    energies = np.maximum(sample.energies, 0.0)
    via = best_detours(energies)
    row, column = np.indices(via.shape)
    legs = energies[row, via], energies[via, column]
    detour = np.where(via < 0, np.inf, legs[0] + legs[1])
    flat = int((relative_gap(energies, detour, sample.scale) * sample.others).argmax())
    direct, first, second = (part.flat[flat] for part in (energies, *legs))
    return (
        f"The energy {sample.pair(flat)} is {direct:.4g}, but by way of state {sample.states[via.flat[flat]]} it is "
        f"{first:.4g} + {second:.4g} = {first + second:.4g}."
    )
