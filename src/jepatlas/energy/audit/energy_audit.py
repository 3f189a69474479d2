"""Audit of any energy: a matrix, a head, or a function.

A quasimetric is non-negative, zero from a point to itself, and satisfies E(x, z) ≤ E(x, y) + E(y, z). The advice of
each verdict names the worst pair or triple. Further verdicts need the positions of the states or the exact energies.

The axioms of a matrix are checked on all of its states; with more than 2,000 of them, the triangle inequality is
checked on drawn pairs. Statistics with intervals, and functions, use at most `states` of the states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.energy.audit.axioms import (
    asymmetry_verdict,
    floor_verdict,
    identity_verdict,
    indiscernibles_verdict,
    nonnegativity_verdict,
)
from jepatlas.energy.audit.calibration_verdicts import CalibrationCurve, calibration_curve, calibration_verdicts
from jepatlas.energy.audit.midpoints import midpoints_verdict
from jepatlas.energy.audit.reachability_verdicts import Roc, reachability_verdicts, roc_curves
from jepatlas.energy.audit.sample import RowFunction, draw_sample
from jepatlas.energy.audit.triangle import GapHistogram, check_triangles, gap_histogram, triangle_verdict

__all__ = ["AXIOMS", "Audit", "audit"]

AXIOMS = ("nonnegativity", "identity", "triangle", "midpoints")
"""The verdicts that decide whether an energy is a (pseudo-)quasimetric."""

STATES = 256


@dataclass(frozen=True)
class Audit:
    """The verdicts of an audit, and the data of its figures."""

    verdicts: tuple[Verdict, ...]
    states: np.ndarray  # indices of the states that statistics with intervals are computed from
    checked: int  # number of states that the axioms were checked on
    detectable: float  # share of pairs that must violate the triangle inequality to be seen; 0 if all were checked
    gaps: GapHistogram
    roc: Roc | None = None  # over all pairs, if the truth has unreachable ones
    one_way_roc: Roc | None = None
    curve: CalibrationCurve | None = None

    @property
    def passed(self) -> bool:
        """Whether no verdict failed."""
        return all(verdict.passed is not False for verdict in self.verdicts)

    @property
    def failed(self) -> list[str]:
        """The names of the failed verdicts."""
        return [verdict.name for verdict in self.verdicts if verdict.passed is False]

    @property
    def failed_axioms(self) -> list[str]:
        """The failed verdicts among AXIOMS; none for a (pseudo-)quasimetric."""
        return [name for name in self.failed if name in AXIOMS]

    @property
    def kind(self) -> str:
        """What the energy is on the checked states: "a quasimetric", "a pseudo-quasimetric", or not a quasimetric."""
        if self.failed_axioms:
            return f"not a quasimetric ({', '.join(self.failed_axioms)} failed)"
        return "a pseudo-quasimetric" if "indiscernibles" in self.failed else "a quasimetric"

    def __getitem__(self, name: str) -> Verdict:
        return {verdict.name: verdict for verdict in self.verdicts}[name]

    def __contains__(self, name: str) -> bool:
        return any(verdict.name == name for verdict in self.verdicts)


def audit(
    energy: np.ndarray | RowFunction,
    points: np.ndarray | None = None,
    *,
    truth: np.ndarray | None = None,
    pseudo: bool | None = None,
    states: int = STATES,
    tolerance: float | None = None,
    seed: int = 0,
) -> Audit:
    """Audit a matrix (n, n) of E(row → column), or a function of rows (m, d), (m, d) → (m,) at points (n, d).

    With a matrix, `points` are the positions of its states. `pseudo` allows energy zero between distinct points; it
    defaults to the energy's own `pseudo` attribute. The relative `tolerance` follows from the precision of the numbers
    (see `default_tolerance`).

    >>> x = np.random.default_rng(0).standard_normal((50, 2))
    >>> audit(lambda x, y: ((x - y) ** 2).sum(-1), x).failed
    ['triangle', 'midpoints']
    """
    sample = draw_sample(energy, points, truth, states=states, tolerance=tolerance, seed=seed)
    declared = bool(getattr(energy, "pseudo", False)) if pseudo is None else pseudo
    whole = sample.whole
    triangles = check_triangles(whole)
    found = [
        nonnegativity_verdict(whole),
        identity_verdict(whole),
        indiscernibles_verdict(whole, declared),
        triangle_verdict(whole, triangles),
        midpoints_verdict(sample),
        floor_verdict(whole),
        asymmetry_verdict(sample),
    ]
    verdicts = tuple(verdict for verdict in found if verdict is not None)
    coverage = (sample.states, whole.n, triangles.detectable, gap_histogram(triangles))
    if sample.truth is None:
        return Audit(verdicts, *coverage)
    verdicts += reachability_verdicts(sample, sample.truth) + calibration_verdicts(sample, sample.truth)
    roc, one_way_roc = roc_curves(sample, sample.truth)
    curve = calibration_curve(sample, sample.truth)
    return Audit(verdicts, *coverage, roc, one_way_roc, curve)
