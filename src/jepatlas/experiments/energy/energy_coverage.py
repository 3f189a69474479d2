"""How much must be seen: energies learned from a share of the world's steps, against two truths.

The world's own energies, and those of the graph of steps that were seen: with little coverage ways are missing from it,
so that recovering it exactly would still be wrong about the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jepatlas.core.records import Verdict
from jepatlas.experiments.energy.energy_runs import energy_trial
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, curve, grouped, mean_and_interval, mean_and_range, select

__all__ = ["EXPERIMENT"]

ORDER, ERROR, REACH = 0.95, 0.1, 0.95
TRUTHS = {"": "the world", "seen_": "steps that were seen"}
MEASURES = {
    "Spearman": "spearman",
    "error": "calibration_error",
    "median ratio": "median_ratio",
    "AUC, unreachable": "reachability_auc",
}

CLAIM = Claim(
    statement="Quasimetric learning recovers the cost-to-go under suitable coverage of the data, and not without it.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, section 2; Optimal "
    "Goal-Reaching Reinforcement Learning via Quasimetric Learning",
    proven="recovery at the exact optimum where all steps are covered; how much coverage is enough is not",
    assumed="deterministic steps",
)

SCALES = {
    "tiny": ((0.5, 1.0), 1),
    "small": ((0.5, 0.75, 1.0), 3),
    "paper": ((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0), 5),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    shares, seeds = SCALES[scale]
    return [energy_trial(scale, s, coverage=share) for share in shares for s in range(seed, seed + seeds)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    shares = SCALES[scale][0]
    recovered = {share: [_recovered(r) for r in select(results, coverage=share)] for share in shares}
    rules = [all(recovered[shares[-1]]), not any(recovered[shares[0]])]
    enough = [share for share in shares if all(all(recovered[more]) for more in shares if more >= share)]
    error = {share: mean_and_range(select(results, coverage=share), "calibration_error") for share in shares}
    least = f"{min(enough):.0%}" if enough else "none"
    return Finding(
        "holds" if all(rules) else "holds in part" if rules[0] else "does not hold",
        f"With all steps covered the energy is recovered in {sum(recovered[shares[-1]])} of "
        f"{len(recovered[shares[-1]])} seeds (Spearman at least {ORDER}, typical error at most {ERROR:.0%}, AUC at "
        f"least {REACH}), with {shares[0]:.0%} of them in {sum(recovered[shares[0]])} of {len(recovered[shares[0]])}. "
        f"The least coverage from which on every seed recovers it: {least}. The typical error goes from "
        f"{cell(error[shares[-1]])} at {shares[-1]:.0%} to {cell(error[shares[0]])} at {shares[0]:.0%}.",
        short=f"recovered from a coverage of {least} on" if enough else "recovered at no coverage",
        verdicts=(_verdict(select(results, coverage=shares[-1])),),
        figures=(_figure(results, shares),),
        tables=(_table(results),),
    )


def _recovered(result: Result) -> bool:
    return (
        result.value("spearman") >= ORDER
        and result.value("calibration_error") <= ERROR
        and result.value("reachability_auc") >= REACH
    )


def _verdict(runs: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        "error_at_full_coverage",
        mean_and_interval(runs, "calibration_error"),
        direction="lower",
        threshold=ERROR,
        good="With all steps covered energies are on the scale of the truth.",
        bad="Even with all steps covered energies are not shown to be on the scale of the truth.",
    )


def _figure(results: Sequence[Result], shares: Sequence[float]) -> dict[str, Any]:
    panels = [
        {
            "title": title,
            "series": [
                curve(
                    f"against {truth}",
                    shares,
                    [mean_and_range(select(results, coverage=s), prefix + name) for s in shares],
                )
                for prefix, truth in TRUTHS.items()
            ],
        }
        for title, name in MEASURES.items()
        if name != "median_ratio"
    ]
    return {
        "kind": "curves",
        "title": "Energies against coverage",
        "x_label": "share of steps that are ever taken",
        "y_label": "",
        "panels": panels,
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [f"{share:.0%}", truth, len(runs), *(cell(mean_and_range(runs, prefix + name)) for name in MEASURES.values())]
        for (share,), runs in grouped(results, "coverage").items()
        for prefix, truth in TRUTHS.items()
    ]
    return {
        "title": "Energies of a one-way grid by the share of its steps that are ever taken, means over seeds "
        "[extremes]",
        "columns": ["coverage", "against", "runs", *MEASURES],
        "rows": rows,
    }


EXPERIMENT = Experiment("energy-coverage", "How much must be seen", CLAIM, trials, conclude)
