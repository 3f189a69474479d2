"""Theorem 1: a least-action energy is a quasimetric. Audited on every world whose energies are known.

    E(x, y) ≥ 0      E(x, x) = 0      E(x, y) = 0 only if x = y      E(x, z) ≤ E(x, y) + E(y, z)

and for sets of goals E(x, G) ≤ E(x, y) + E(y, G). A proof needs no experiment; that what our solvers give is such an
energy does, and so does the audit, which must catch what is none: each control breaks one condition of the theorem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.energy.exact_trials import trials_over
from jepatlas.experiments.energy.exact_worlds import Size
from jepatlas.experiments.energy.intrinsic_energy_runs import CONTROLS, WORLDS, run
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, grouped, mean_and_range

__all__ = ["EXPERIMENT"]

AXIOMS = ("nonnegativity", "identity", "indiscernibles", "triangle", "midpoints", "goal_set")
BROKEN = {
    "squared-l2": {"midpoints"},
    "quadratic-action": {"identity", "midpoints"},
    "free-downhill": {"indiscernibles"},
}
"""What the audit must find: with a square, the triangle; with a fixed time in a current, staying costs; without a
floor, distinct points are at energy 0."""
LEAST = 1e-17  # of what is drawn on a logarithmic axis

CLAIM = Claim(
    statement="The least accumulated local effort over admissible trajectories, +∞ where there is none, is a "
    "quasimetric.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, Theorem 1",
    proven="by concatenating trajectories",
    assumed="an additive effort of at least c‖v‖ with c > 0, and that concatenations are admissible",
)

SCALES = {
    "tiny": (Size(states=12, side=4, places=4, resolution=9, sets=3), 1),
    "small": (Size(states=150, side=12, places=14, resolution=41, sets=8), 3),
    "paper": (Size(states=256, side=16, places=40, resolution=101, sets=16), 10),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    return trials_over("world", (*WORLDS, *CONTROLS), run, SCALES[scale], seed)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    found = {name: group for (name,), group in grouped(results, "world").items()}
    kept = {name: all(_failed(result) == set() for result in found[name]) for name in WORLDS}
    caught = {name: all(BROKEN[name] <= _named(result) for result in found[name]) for name in CONTROLS}
    gaps = {name: mean_and_range(group, "triangle").high for name, group in found.items()}
    slacks = {name: mean_and_range(group, "slack").high for name, group in found.items()}
    solved = {name for name in WORLDS if slacks[name] > 0}
    broken = ", ".join(name for name, passes in kept.items() if not passes)
    return Finding(
        _outcome(list(kept.values()), list(caught.values())),
        f"Every axiom, and the triangle inequality to sets of goals, holds on {sum(kept.values())} of {len(kept)} "
        f"worlds{f' (not on {broken})' if broken else ''}; the audit catches {sum(caught.values())} of "
        f"{len(caught)} controls. The largest gap in the triangle inequality is "
        f"{_largest(gaps, set(WORLDS) - solved):.0e} where energies are exact, and {_largest(gaps, solved):.0e} on "
        f"{', '.join(sorted(solved))}, where the solver's own error allows up to {_largest(slacks, solved):.3f}.",
        short=f"{sum(kept.values())} of {len(kept)} worlds; {sum(caught.values())} of {len(caught)} controls caught",
        verdicts=(_verdict(kept),),
        figures=(_figure(found),),
        tables=(_table(found),),
    )


def _outcome(kept: Sequence[bool], caught: Sequence[bool]) -> Any:
    """An audit that lets a control pass has nothing to say of the others."""
    if not all(caught):
        return "undecided"
    return "holds" if all(kept) else "holds in part" if any(kept) else "does not hold"


def _failed(result: Result) -> set[str] | None:
    """The axioms that an audit found broken; None of a trial that came to no audit."""
    verdicts = [Verdict.from_json(verdict) for verdict in result.record.get("verdicts", [])]
    if result.status != "finished" or not verdicts:
        return None
    return {verdict.name for verdict in verdicts if verdict.name in AXIOMS and verdict.passed is False}


def _named(result: Result) -> set[str]:
    failed = _failed(result)
    return {"came to no audit"} if failed is None else failed


def _largest(values: Mapping[str, float], names: Iterable[str]) -> float:
    """Of the trials that came to a number."""
    return max((values[name] for name in names if np.isfinite(values[name])), default=np.nan)


def _verdict(kept: Mapping[str, bool]) -> Verdict:
    share = float(np.mean(list(kept.values())))
    return Verdict.judge(
        "quasimetrics",
        Estimate(share, share, share, len(kept)),
        direction="higher",
        threshold=1.0,
        good="Every least-action energy that was audited is a quasimetric.",
        bad=f"No quasimetric: {', '.join(name for name, passes in kept.items() if not passes)}.",
    )


def _figure(found: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    numbers = {name: number for number, name in enumerate(found, 1)}

    def series(title: str, names: Sequence[str], value: str, **style: Any) -> dict[str, Any]:
        y = [max(mean_and_range(found[name], value).high, LEAST) for name in names]
        return {"name": title, "x": [numbers[name] for name in names], "y": y} | style

    drawn = [
        series("worlds", list(WORLDS), "triangle", points=True),
        series("controls", list(CONTROLS), "triangle", points=True),
        series("allowed", list(found), "allowed", points=True),
    ]
    return {
        "kind": "curves",
        "title": "Largest gap in the triangle inequality",
        "x_label": "number in the table",
        "y_label": "(E(x, z) − detour) / E(x, z)",
        "log_y": True,
        "series": drawn,
        "note": f"What is 0 is drawn at {LEAST:.0e}.",
    }


def _table(found: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    rows = []
    for number, (name, group) in enumerate(found.items(), 1):
        failed = sorted({axiom for result in group for axiom in _named(result)})
        numbers = [f"{mean_and_range(group, key).high:.1e}" for key in ("triangle", "midpoints", "goal_set", "allowed")]
        shares = [cell(mean_and_range(group, key)) for key in ("unreachable", "floor", "asymmetry")]
        rows.append(
            [
                number,
                name,
                cell(mean_and_range(group, "states"), 0),
                ", ".join(failed) or "none",
                *(text.replace("nan", "–") for text in numbers),
                *shares,
            ]
        )
    columns = [
        "",
        "world",
        "states",
        "axioms broken",
        "largest triangle gap",
        "by midpoints",
        "to goal sets",
        "allowed",
        "share unreachable",
        "largest c with E ≥ c‖x − y‖",
        "asymmetry",
    ]
    return {"title": "Audits, means over seeds [extremes]", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("intrinsic-energy", "Least-action energies are quasimetrics", CLAIM, trials, conclude)
