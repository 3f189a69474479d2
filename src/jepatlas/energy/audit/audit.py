"""The audit of any energy: a matrix in a file, a head, or a function that somebody else wrote.

A quasimetric is not negative, zero from a point to itself, and obeys E(x, z) ≤ E(x, y) + E(y, z). Every finding is a
verdict whose advice names the pair or triple that offends most. What is only known with positions or with the exact
truth is said where these are given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.energy.audit.asymmetry import asymmetry
from jepatlas.energy.audit.axioms import floor, identity, indiscernibles, nonnegativity
from jepatlas.energy.audit.calibration import CalibrationCurve, calibration, calibration_curve
from jepatlas.energy.audit.midpoints import midpoints
from jepatlas.energy.audit.reachability import Roc, reachability, roc_curves
from jepatlas.energy.audit.sample import draw_sample
from jepatlas.energy.audit.triangle import GapHistogram, gap_histogram, triangle, triangle_gaps

__all__ = ["Audit", "audit"]

STATES = 256


@dataclass(frozen=True)
class Audit:
    """Verdicts, and what figures are drawn from."""

    verdicts: tuple[Verdict, ...]
    states: np.ndarray  # which of the given states were sampled
    gaps: GapHistogram
    roc: Roc | None = None  # over all pairs, where truth has unreachable ones
    one_way_roc: Roc | None = None
    curve: CalibrationCurve | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(verdict.passed is not False for verdict in self.verdicts)

    def __getitem__(self, name: str) -> Verdict:
        return {verdict.name: verdict for verdict in self.verdicts}[name]


def audit(
    energy: np.ndarray | Callable[[Any, Any], Any],
    points: np.ndarray | None = None,
    *,
    truth: np.ndarray | None = None,
    pseudo: bool | None = None,
    states: int = STATES,
    tolerance: float | None = None,
    seed: int = 0,
) -> Audit:
    """Audit a matrix (n, n) of E(row → column), or a function of rows (m, d), (m, d) → (m,) at points (n, d).

    With a matrix, points are the positions of its states. `pseudo` says that distinct points may be at energy 0; by
    default it is what the energy itself declares. The tolerance follows from the dtype where none is given.

    >>> x = np.random.default_rng(0).standard_normal((50, 2))
    >>> found = audit(lambda x, y: ((x - y) ** 2).sum(-1), x)
    >>> [verdict.name for verdict in found.verdicts if verdict.passed is False]
    ['triangle', 'midpoints']
    """
    sample = draw_sample(energy, points, truth, states=states, tolerance=tolerance, seed=seed)
    declared = bool(getattr(energy, "pseudo", False)) if pseudo is None else pseudo
    gaps = triangle_gaps(sample)
    always = (nonnegativity(sample), identity(sample), indiscernibles(sample, declared), triangle(sample, gaps))
    further = (midpoints(sample), floor(sample), asymmetry(sample))
    verdicts = always + tuple(verdict for verdict in further if verdict is not None)
    histogram, exact = gap_histogram(gaps), sample.truth
    if exact is None:
        return Audit(verdicts, sample.states, histogram)
    verdicts += reachability(sample, exact) + calibration(sample, exact)
    return Audit(verdicts, sample.states, histogram, *roc_curves(sample, exact), calibration_curve(sample, exact))
