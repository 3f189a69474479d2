"""Theorem 4: in coordinates that are a rotation of the state, the best plan is the best plan.

Costs must not notice the rotation: be invariant under it, or be conjugated by it. Two controls must differ: a cost that
weighs directions unequally and is not conjugated, and coordinates that are linear in the state, but no rotation.
What becomes of it in trained encoders, which are rotations nearly, is `planning-cost`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.planning.optimal_planning_runs import CASES, PROBLEMS, run

__all__ = ["EXPERIMENT"]

SAME, DIFFERENT = 1e-6, 1e-2
KEPT, CONTROLS = ("invariant", "conjugated"), ("unconjugated", "sheared")
MEASURES = {"actions": "actions", "value": "value", "lost": "cost lost in truth"}

CLAIM = Claim(
    statement="Planning in a latent that is a rotation of the state gives the same value and the same actions as "
    "planning in the state, if the cost does not notice rotations.",
    source="When Does LeJEPA Learn a World Model?, Theorem 4",
    proven="for every finite horizon and every cost that is invariant under rotations of state and goal; for LQR the "
    "gain K becomes KQᵀ",
    assumed="that trajectories in the latent have the law of the rotated ones, an axiom in the Lean proof; and that "
    "the dynamics in the latent are known",
)


@dataclass(frozen=True)
class Plan:
    dims: tuple[int, ...]
    seeds: int
    tasks: int
    horizon: int
    samples: int


SCALES = {
    "tiny": Plan((2,), 1, 4, 6, 16),
    "small": Plan((2, 4, 8, 16), 5, 50, 20, 256),
    "paper": Plan((2, 4, 8, 16, 32, 64), 10, 200, 50, 1024),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    return [
        Trial(
            {"dim": dim, "seed": s},
            run,
            {"dim": dim, "seed": s, "tasks": plan.tasks, "horizon": plan.horizon, "samples": plan.samples},
        )
        for dim in plan.dims
        for s in range(seed, seed + plan.seeds)
    ]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if all plans agree to SAME where they must, and differ by DIFFERENT where they need not agree."""
    del scale
    finished = [result for result in results if result.status == "finished"]
    kept = {what: _worst(finished, KEPT, what) for what in ("actions", "value")}
    apart = min(_values(finished, CONTROLS, "actions"))
    same, told_apart = max(kept.values()) <= SAME, apart >= DIFFERENT
    lost = ", ".join(f"{CASES[c]} {_mean(finished, c):.1%}" for c in CONTROLS)
    return Finding(
        "holds" if same and told_apart else "holds in part" if same else "does not hold",
        f"Over {len(finished)} linear worlds, by LQR and by search: in rotated latents with dynamics fitted there, "
        f"actions differ by at most {kept['actions']:.1e} of their size and values by {kept['value']:.1e} where the "
        f"cost is invariant or conjugated (asked for: {SAME:g}). In the controls actions differ by at least "
        f"{apart:.2g}; what plans of LQR lose there, on average: {lost}.",
        short=f"actions apart ≤ {kept['actions']:.0e}; controls ≥ {apart:.2g}",
        verdicts=(_verdict(finished), _control(finished)),
        figures=(_figure(finished),),
        tables=(_table(results),),
    )


def _values(results: Sequence[Result], cases: Sequence[str], what: str) -> list[float]:
    return [result.value(f"{problem}_{case}_{what}") for result in results for problem in PROBLEMS for case in cases]


def _worst(results: Sequence[Result], cases: Sequence[str], what: str) -> float:
    return max(_values(results, cases, what))


def _mean(results: Sequence[Result], case: str) -> float:
    return float(np.mean([result.value(f"lqr_{case}_lost") for result in results]))


def _extremes(values: Sequence[float]) -> Estimate:
    return Estimate(float(np.median(values)), min(values), max(values), len(values))


def _verdict(results: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        "same_actions",
        _extremes(_values(results, KEPT, "actions")),
        direction="lower",
        threshold=SAME,
        null=float(np.median(_values(results, CONTROLS, "actions"))),
        good="Plans in the rotated latent are the plans in the state (limits: the extremes over worlds).",
        bad="Plans in the rotated latent are not those in the state (limits: the extremes over worlds).",
    )


def _control(results: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        "controls_differ",
        _extremes(_values(results, CONTROLS, "actions")),
        direction="higher",
        threshold=DIFFERENT,
        good="Where the cost notices the map, plans do differ (limits: the extremes over worlds).",
        bad="Where the cost notices the map, plans need not differ: the control shows nothing.",
    )


def _figure(results: Sequence[Result]) -> dict[str, Any]:
    panels = [
        {
            "title": title,
            "series": [
                {
                    "name": said,
                    "points": True,
                    "x": [result.at["dim"] for result in results],
                    "y": [max(result.value(f"{problem}_{case}_actions"), 1e-17) for result in results],
                }
                for case, said in CASES.items()
            ],
        }
        for problem, title in PROBLEMS.items()
    ]
    return {
        "kind": "curves",
        "title": "How far plans in the latent are from plans in the state: every world",
        "x_label": "dimensions",
        "y_label": "largest difference of an action, relative",
        "log_x": True,
        "log_y": True,
        "panels": panels,
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [
            result.at["dim"],
            result.at["seed"],
            result.status,
            title,
            CASES[case],
            *(f"{result.value(f'{problem}_{case}_{what}'):.1e}" for what in MEASURES),
        ]
        for result in results
        for problem, title in PROBLEMS.items()
        for case in CASES
    ]
    columns = ["dimensions", "seed", "status", "problem", "latent", *MEASURES.values()]
    return {"title": "Largest relative differences, and what is lost", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("optimal-planning", "Plans in a rotated latent", CLAIM, trials, conclude)
