"""What plans in a trained latent cost, against how far it is from a rotation of the state.

Theorem 4 (`optimal-planning`) says that nothing is lost where h = Qz. Encoders are trained for a shorter and a longer
time and with other weights of SIGReg, so that R² varies; what is observed, taken as the latent, is the other end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import spearman
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale
from jepatlas.experiments.engine.seed_tables import cell, grouped, mean_and_range
from jepatlas.experiments.planning.planning_cost_runs import OBSERVED, PROBLEMS, trials

__all__ = ["EXPERIMENT"]

IDENTIFIED, WITHIN = 0.98, 0.05
MONOTONE = 0.8  # rank correlation from which cost is said to track R²
JUDGED = ("regulate", "reach")

CLAIM = Claim(
    statement="The better a latent is identified, the less its plans cost: near the optimum where R² is near 1, and "
    "rising steadily as it falls.",
    source="When Does LeJEPA Learn a World Model?, Theorem 4 and the planning experiment",
    proven="for exact rotations only",
    measured="on Reacher, control cost follows R² monotonically across encoders (shown as a figure), and is that of "
    "the oracle where R² is highest; dynamics there are not learned",
)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if every identified latent plans within WITHIN of the optimum, and cost and 1 − R² rise together."""
    del scale
    finished = [result for result in results if result.status == "finished"]
    good = [result for result in finished if result.value("r2") >= IDENTIFIED]
    tracks = {problem: _tracks(finished, problem) for problem in JUDGED}
    close = bool(good) and all(_near(result, problem) for result in good for problem in JUDGED)
    steady = all(rank.low >= MONOTONE for rank in tracks.values())
    worst = {problem: max((result.estimate(problem).high for result in good), default=np.nan) for problem in JUDGED}
    return Finding(
        "holds" if close and steady else "holds in part" if close or steady else "does not hold",
        f"{len(good)} of {len(finished)} latents have a held-out R² of at least {IDENTIFIED}. Of these plan within "
        f"{WITHIN:.0%} of the true optimum, upper limits included: "
        + "; ".join(f"{PROBLEMS[p]} {sum(_near(r, p) for r in good)} (worst {worst[p]:.3f} times)" for p in JUDGED)
        + ". Rank correlation of cost with 1 − R² over all latents, observations included: "
        + "; ".join(f"{PROBLEMS[problem]} {cell(rank)}" for problem, rank in tracks.items())
        + f" (asked for: at least {MONOTONE}). {_first_loss(finished)} R² is a mean over states, and feedback to one "
        f"point lives on the slope there: at the origin it is off by {_slopes(good)} in identified latents. An uneven "
        f"cost there: {_typical(good, 'reach_conjugated')} times the optimum conjugated by Q, "
        f"{_typical(good, 'reach_unconjugated')} as it is.",
        short=f"R² ≥ {IDENTIFIED}: cost ≤ {max(worst.values()):.3f} × the optimum"
        if good
        else f"no latent with R² ≥ {IDENTIFIED}",
        verdicts=(*(_verdict(good, problem) for problem in JUDGED), *map(_rank_verdict, tracks, tracks.values())),
        figures=(_figure(finished),),
        tables=(_table(results),),
    )


def _near(result: Result, problem: str) -> bool:
    return result.estimate(problem).high <= 1 + WITHIN


def _tracks(results: Sequence[Result], problem: str) -> Estimate:
    return spearman(*np.array([[1 - result.value("r2"), result.value(problem)] for result in results]).T)


def _first_loss(results: Sequence[Result]) -> str:
    """Where the loss begins: the best latent that plans more than WITHIN above the optimum."""
    over = [result.value("r2") for result in results if not all(_near(result, problem) for problem in JUDGED)]
    return f"The best latent that does not plan that well has R² {max(over):.3f}." if over else ""


def _typical(results: Sequence[Result], problem: str) -> str:
    return f"{np.median([result.value(problem) for result in results]):.3f}" if results else "–"


def _slopes(good: Sequence[Result]) -> str:
    found = mean_and_range(good, "slope_at_origin")
    return f"{found.low:.2f} to {found.high:.2f} of its size" if found.n else "–"


def _verdict(good: Sequence[Result], problem: str) -> Verdict:
    costs = [result.estimate(problem).high - 1 for result in good] or [np.nan]
    found = Estimate(float(np.median(costs)), min(costs), max(costs), len(good))
    return Verdict.judge(
        f"loss_where_identified_{problem}",
        found,
        direction="lower",
        threshold=WITHIN,
        good="In identified latents plans are as good as optimal (limits: the extremes over latents).",
        bad="Some identified latent plans worse than that, or there is none (limits: the extremes over latents).",
    )


def _rank_verdict(problem: str, rank: Estimate) -> Verdict:
    return Verdict.judge(
        f"cost_tracks_r2_{problem}",
        rank,
        direction="higher",
        threshold=MONOTONE,
        null=0.0,
        good="The less a latent is identified, the more its plans cost.",
        bad="That cost rises steadily as R² falls is not shown.",
    )


def _figure(results: Sequence[Result]) -> dict[str, Any]:
    kinds = {
        (mixing, kind): [r for r in results if r.at["mixing"] == mixing and (r.at["latent"] == OBSERVED) is seen]
        for mixing in dict.fromkeys(r.at["mixing"] for r in results)
        for kind, seen in (("LeJEPA", False), ("observed", True))
    }
    panels = [
        {
            "title": title,
            "series": [
                {
                    "name": f"{mixing}, {kind}",
                    "points": True,
                    "x": [1 - r.value("r2") for r in chosen],
                    "y": [r.value(problem) - 1 for r in chosen],
                }
                for (mixing, kind), chosen in kinds.items()
                if chosen
            ],
        }
        for problem, title in PROBLEMS.items()
    ]
    return {
        "kind": "curves",
        "title": "Loss of optimality against identification error: every latent",
        "x_label": "1 − held-out R²",
        "y_label": "cost / optimum − 1",
        "log_x": True,
        "log_y": True,
        "panels": panels,
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    names = {
        "R²": "r2",
        "error of A": "conjugacy_a",
        "error of B": "conjugacy_b",
        "error of the slope at the origin": "slope_at_origin",
        **{f"cost, {title}": problem for problem, title in PROBLEMS.items()},
        "to a goal, doing nothing": "reach_idle",
    }
    rows = [
        [
            mixing,
            latent,
            f"{sum(r.status == 'finished' for r in chosen)} of {len(chosen)}",
            *(cell(mean_and_range(chosen, name)) for name in names.values()),
        ]
        for (mixing, latent), chosen in grouped(results, "mixing", "latent").items()
    ]
    return {
        "title": "Cost as a multiple of the optimum, mean over seeds [extremes]",
        "columns": ["mixing", "steps-λ", "finished", *names],
        "rows": rows,
    }


EXPERIMENT = Experiment("planning-cost", "Planning cost against identification", CLAIM, trials, conclude)
