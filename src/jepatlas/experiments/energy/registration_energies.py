"""Registration as least action: the effort of deforming one map, or one set of landmarks, into another.

    maps of an interval    E(φ₀, φ₁) = 2 arccos ∫√(φ₀'φ₁')      in closed form, against paths that know nothing of it
    landmarks in a plane   paths of least action, under an effort that is alike both ways and under one that is not

The paper names registration as an instance of its energies and measures none. The interval is symmetric: a control.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.energy.registration_energies_runs import EFFORTS, SEGMENTS, run
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range

__all__ = ["EXPERIMENT"]

CLOSE = 2e-3  # of the closed form, with the most segments
ORDER = 1.5  # at least, of the error in the number of segments: 2 is expected of the midpoint rule
ROUNDING = 1e-9
CLEAR = 10  # times the gap that the error of paths may leave: no accident of the discretisation
UNEVEN = "uneven"

CLAIM = Claim(
    statement="Deformation in diffeomorphic registration is a least-action energy: the shortest deformation obeys the "
    "triangle inequality, and is asymmetric where the effort is.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, section 5 (beyond RL)",
)

SCALES = {
    "tiny": ({"pairs": 2, "pieces": 3, "maps": 8, "sets": 3, "segments": 8}, 1),
    "small": ({"pairs": 6, "pieces": 6, "maps": 60, "sets": 6, "segments": 16}, 3),
    "paper": ({"pairs": 20, "pieces": 12, "maps": 200, "sets": 16, "segments": 32}, 10),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    settings, seeds = SCALES[scale]
    return [Trial({"seed": s}, run, settings | {"seed": s}) for s in range(seed, seed + seeds)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    errors = [mean_and_range(results, f"error_{segments}") for segments in SEGMENTS]
    order = _order([error.value for error in errors])
    rules = {
        "closed form": errors[-1].high <= CLOSE and order >= ORDER,
        "control": all(r.value("asymmetry_interval") <= ROUNDING for r in results),
        "even": all(
            r.value(f"asymmetry_{e}") <= r.value(f"slack_{e}") for r in results for e in EFFORTS if e != UNEVEN
        ),
        "uneven": all(r.value(f"asymmetry_{UNEVEN}") >= CLEAR * r.value(f"slack_{UNEVEN}") for r in results),
        "triangle": all(r.value(f"triangle_{e}") <= r.value(f"slack_{e}") for r in results for e in EFFORTS),
    }
    uneven, even = (mean_and_range(results, f"asymmetry_{effort}") for effort in (UNEVEN, "even"))
    gaps = [mean_and_range(results, f"triangle_{effort}").high for effort in EFFORTS]
    slacks = [mean_and_range(results, f"slack_{effort}").low for effort in EFFORTS]
    return Finding(
        "holds" if all(rules.values()) else "holds in part" if any(rules.values()) else "does not hold",
        f"On the interval paths of {SEGMENTS[-1]} segments come within {errors[-1].high:.1e} of the closed form, with "
        f"an error of order {order:.1f} in their number; both ways are alike to "
        f"{mean_and_range(results, 'asymmetry_interval').high:.0e}. Landmarks: the index of asymmetry is "
        f"{even.value:.1e} "
        f"under an even effort and {uneven.value:.2f} [{uneven.low:.2f}, {uneven.high:.2f}] where contracting costs "
        f"more than expanding; the largest gap in the triangle inequality is {max(gaps):.1e}, where the paths' own "
        f"error allows {min(slacks):.1e}.",
        short=f"closed form to {errors[-1].high:.0e}; index {even.value:.0e} even, {uneven.value:.2f} uneven",
        verdicts=(_verdict(results),),
        figures=(_convergence(errors), _there_and_back(results)),
        tables=(_interval_table(results), _landmark_table(results)),
    )


def _order(errors: Sequence[float]) -> float:
    """The slope of log error over log segments, turned round."""
    if not np.isfinite(errors).all():
        return np.nan
    return float(-np.polyfit(np.log(SEGMENTS), np.log(errors), 1)[0])


def _verdict(results: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        "error",
        mean_and_range(results, f"error_{SEGMENTS[-1]}"),
        direction="lower",
        threshold=CLOSE,
        good="Paths of least action have the length that the closed form says.",
        bad="Paths of least action are longer than the closed form says: too few segments, or not minimal.",
    )


def _convergence(errors: Sequence[Estimate]) -> dict[str, Any]:
    second = [errors[0].value * (SEGMENTS[0] / segments) ** 2 for segments in SEGMENTS]
    series = [
        curve("paths of least action", SEGMENTS, errors),
        {"name": "second order", "x": list(SEGMENTS), "y": second, "dash": True},
    ]
    return {
        "kind": "curves",
        "title": "Maps of an interval",
        "x_label": "segments",
        "log_x": True,
        "log_y": True,
        "y_label": "relative error against the closed form",
        "series": series,
    }


def _there_and_back(results: Sequence[Result]) -> dict[str, Any]:
    pairs = {name: [p for r in results for p in r.record.get("there_and_back", {}).get(name, [])] for name in EFFORTS}
    series = [
        {"name": name, "points": True, "x": [there for there, _ in found], "y": [back for _, back in found]}
        for name, found in pairs.items()
    ]
    return {
        "kind": "curves",
        "title": "Landmarks in the plane",
        "x_label": "energy there",
        "y_label": "energy back",
        "series": series,
    }


def _interval_table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [segments, *(cell(mean_and_range(results, f"{key}_{segments}"), 6) for key in ("error", "asymmetry_path"))]
        for segments in SEGMENTS
    ]
    columns = ["segments", "largest relative error of paths", "their asymmetry"]
    return {"title": "Maps of an interval, means over seeds [extremes]", "columns": columns, "rows": rows}


def _landmark_table(results: Sequence[Result]) -> dict[str, Any]:
    keys = ("asymmetry", "triangle", "slack")
    rows = [[effort, *(cell(mean_and_range(results, f"{key}_{effort}"), 5) for key in keys)] for effort in EFFORTS]
    exact = ["interval, closed form", *(cell(mean_and_range(results, f"{key}_interval"), 5) for key in keys[:2]), "–"]
    strain = ["strain, closed form", *(cell(mean_and_range(results, f"{key}_strain"), 5) for key in keys[:2]), "–"]
    columns = ["effort", "index of asymmetry", "largest triangle gap", "allowed by the paths' error"]
    return {"title": "There and back, means over seeds [extremes]", "columns": columns, "rows": [*rows, exact, strain]}


EXPERIMENT = Experiment(
    "registration-energies", "The effort of deforming one thing into another", CLAIM, trials, conclude
)
