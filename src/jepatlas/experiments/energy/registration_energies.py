"""Registration as least action: the effort of deforming one map, or one set of landmarks, into another.

    maps of an interval    E(φ₀, φ₁) = 2 arccos ∫√(φ₀'φ₁')      closed form, compared with numerical paths
    landmarks in a plane   paths of least action, for a symmetric effort and for an asymmetric one

The paper names registration as an instance of its energies and reports no measurement. The interval is symmetric and
serves as a control. Its paths have the least action for `interval_paths`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.core.figures import Curve, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy.audit import asymmetry_index, closure
from jepatlas.energy.audit.triangle import relative_gap
from jepatlas.energy.exact import LandmarkEffort, interval_energies, landmark_energies, strain_energies
from jepatlas.experiments.energy.exact_worlds import random_maps
from jepatlas.experiments.energy.interval_paths import SEGMENTS, path_errors
from jepatlas.experiments.energy.solved_worlds import random_sets, solver_slack
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, exact_verdicts, outcome_of_criteria
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, mean_cells

__all__ = ["EFFORTS", "EXPERIMENT", "run"]

EFFORTS = {
    "plain": LandmarkEffort(0.7),
    "even": LandmarkEffort(0.7, expand=2.0, contract=2.0),
    "uneven": LandmarkEffort(0.7, expand=0.5, contract=4.0),
}
UNEVEN = "uneven"
SQUEEZE = 4.0  # price of squeezing over that of stretching
CLOSE = 2e-3  # relative error with the most segments
ORDER = 1.5  # least order of the error in the number of segments; 2 is expected of the midpoint rule
ROUNDING = 1e-9
CLEAR = 10  # times the gap that the discretisation may cause

CLAIM = Claim(
    statement="Deformation in diffeomorphic registration is a least-action energy: the shortest deformation obeys the "
    "triangle inequality, and is asymmetric if the effort is.",
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


def run(settings: Plain, folder: str) -> Plain:
    del folder
    found = path_errors(settings) | _closed_forms(settings)
    there_and_back: dict[str, list[list[float]]] = {}
    sets = random_sets(settings["sets"], settings["seed"])
    for name, effort in EFFORTS.items():
        coarse = landmark_energies(sets, effort, settings["segments"] // 2)
        fine = landmark_energies(sets, effort, settings["segments"])
        found |= {f"{key}_{name}": value for key, value in _audited(fine).items()}
        found[f"slack_{name}"] = solver_slack(coarse, fine)
        row, column = np.triu_indices(len(fine), 1)
        there_and_back[name] = np.stack([fine[row, column], fine[column, row]], 1).tolist()
    verdicts = exact_verdicts(found, 1, "")
    return {"status": "finished", "verdicts": verdicts, "there_and_back": there_and_back}


def _closed_forms(settings: Plain) -> dict[str, float]:
    maps = random_maps(settings["maps"], settings["seed"], settings["pieces"])
    energies = {"interval": interval_energies(maps, maps), "strain": strain_energies(maps, maps, 1.0, SQUEEZE)}
    found = {}
    for name, matrix in energies.items():
        found |= {f"{key}_{name}": value for key, value in _audited(matrix).items()}
    return found


def _audited(matrix: np.ndarray) -> dict[str, float]:
    """The index of asymmetry, and the largest triangle gap over all paths through other states."""
    others = ~np.eye(len(matrix), dtype=bool)
    gaps = relative_gap(matrix, closure(matrix), float(np.median(matrix[others])))
    return {"asymmetry": float(asymmetry_index(matrix)[others].mean()), "triangle": float(gaps.max())}


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    errors = [mean_and_range(results, f"error_{segments}") for segments in SEGMENTS]
    order = _order([error.value for error in errors])
    interval, even, uneven = (mean_and_range(results, f"asymmetry_{name}") for name in ("interval", "even", UNEVEN))
    gap = max(mean_and_range(results, f"triangle_{effort}").high for effort in EFFORTS)
    slack = min(mean_and_range(results, f"slack_{effort}").low for effort in EFFORTS)
    symmetric = [name for name in EFFORTS if name != UNEVEN]
    criteria = (
        Criterion(
            "interval: relative error of paths; its order",
            f"{errors[-1].high:.1e}; {order:.1f}",
            f"≤ {CLOSE:g}; ≥ {ORDER}",
            errors[-1].high <= CLOSE and order >= ORDER,
        ),
        Criterion(
            "interval: index of asymmetry",
            f"{interval.high:.0e}",
            f"≤ {ROUNDING:g}",
            all(r.value("asymmetry_interval") <= ROUNDING for r in results),
        ),
        Criterion(
            "landmarks, even effort: index of asymmetry",
            f"{even.value:.1e}",
            "≤ discretisation error",
            all(r.value(f"asymmetry_{name}") <= r.value(f"slack_{name}") for r in results for name in symmetric),
        ),
        Criterion(
            "landmarks, uneven effort: index of asymmetry",
            cell(uneven, 2),
            f"≥ {CLEAR} × discretisation error",
            all(r.value(f"asymmetry_{UNEVEN}") >= CLEAR * r.value(f"slack_{UNEVEN}") for r in results),
        ),
        Criterion(
            "landmarks: largest triangle gap",
            f"{gap:.1e}",
            f"≤ discretisation error ({slack:.1e} and more)",
            all(r.value(f"triangle_{name}") <= r.value(f"slack_{name}") for r in results for name in EFFORTS),
        ),
    )
    return Finding(
        outcome_of_criteria(criteria),
        f"Paths are within {errors[-1].high:.0e} of the closed form; the index of asymmetry is "
        f"{even.value:.0e} for an even effort and {uneven.value:.2f} for an uneven one.",
        criteria=criteria,
        verdicts=(
            Verdict.judge(
                "error",
                errors[-1],
                direction="lower",
                threshold=CLOSE,
                good="Paths of least action have the length of the closed form.",
                bad="Paths of least action are longer than the closed form: too few segments, or not minimal.",
            ),
        ),
        figures=(_convergence(errors), _there_and_back(results)),
        tables=(_interval_table(results), _landmark_table(results)),
    )


def _order(errors: Sequence[float]) -> float:
    """Negative slope of log error over log segments."""
    slope = np.polyfit(np.log(SEGMENTS), np.log(errors), 1)[0] if np.isfinite(errors).all() else np.nan
    return -float(slope)


def _convergence(errors: Sequence[Estimate]) -> Curves:
    second = [errors[0].value * (SEGMENTS[0] / segments) ** 2 for segments in SEGMENTS]
    return Curves(
        title="Maps of an interval",
        x_label="segments",
        log_x=True,
        log_y=True,
        y_label="relative error against the closed form",
        series=[
            curve("paths of least action", SEGMENTS, errors),
            Curve("second order", list(SEGMENTS), second, dash=True),
        ],
    )


def _there_and_back(results: Sequence[Result]) -> Curves:
    series = []
    for name in EFFORTS:
        pairs = [pair for r in results for pair in r.record.get("there_and_back", {}).get(name, [])]
        series.append(Curve(name, [there for there, _ in pairs], [back for _, back in pairs], points=True))
    return Curves(title="Landmarks in the plane", x_label="energy there", y_label="energy back", series=series)


def _interval_table(results: Sequence[Result]) -> Table:
    rows = []
    for segments in SEGMENTS:
        rows.append([segments, *mean_cells(results, [f"error_{segments}", f"asymmetry_path_{segments}"], 6)])
    columns = ["segments", "largest relative error of paths", "their asymmetry"]
    return Table("Maps of an interval, means over seeds [range]", columns, rows)


def _landmark_table(results: Sequence[Result]) -> Table:
    rows = []
    for effort in EFFORTS:
        names = [f"{key}_{effort}" for key in ("asymmetry", "triangle", "slack")]
        rows.append([effort, *mean_cells(results, names, 5)])
    for name in ("interval", "strain"):
        cells = mean_cells(results, [f"asymmetry_{name}", f"triangle_{name}"], 5)
        rows.append([f"{name}, closed form", *cells, "–"])
    columns = ["effort", "index of asymmetry", "largest triangle gap", "allowed by the paths' error"]
    return Table("There and back, means over seeds [range]", columns, rows)


EXPERIMENT = Experiment("registration-energies", "Registration as least action", CLAIM, trials, conclude)
