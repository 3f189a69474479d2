"""Learned energies against exact ones: order, scale, spread, and what is out of reach, in four worlds.

Quasimetric learning should come to E itself, the expectile loss to the discounted (1 − γ^E)/(1 − γ), which is what it
is compared with. Beside it the ratio before energies were brought to the scale of observed steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.experiments.energy.energy_runs import energy_trial
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, grouped, mean_and_interval, mean_and_range

__all__ = ["EXPERIMENT"]

ORDER, SCALE_OFF, SPREAD_OFF, REACH = 0.99, 0.05, 0.15, 0.99
TITLES = {"grid": "one-way grid", "current": "constant current", "cliff": "CliffWalking", "lake": "FrozenLake 8×8"}
MEASURES = {
    "Spearman": "spearman",
    "median ratio": "median_ratio",
    "5%": "ratio_5",
    "95%": "ratio_95",
    "before calibration": "uncalibrated_ratio",
    "AUC, unreachable": "reachability_auc",
}

CLAIM = Claim(
    statement="From observed steps and their costs alone, quasimetric learning recovers the optimal cost-to-go, and "
    "the expectile loss its discounted form.",
    source="Optimal Goal-Reaching Reinforcement Learning via Quasimetric Learning; Value-Guided Action Planning with "
    "JEPA World Models; the rule (order, scale, spread, reach) is ours",
    proven="for quasimetric learning with all steps covered, a universal head and the exact optimum",
    assumed="deterministic steps; every step is observed",
    measured="success rates of planners; no comparison with exact costs",
)

SCALES = {
    "tiny": (("grid",), ("qrl", "expectile"), {"qrl": 1, "expectile": 1}),
    "small": (tuple(TITLES), ("qrl", "expectile"), {"qrl": 3, "expectile": 3}),
    "paper": (tuple(TITLES), ("qrl", "expectile"), {"qrl": 5, "expectile": 5}),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    worlds, learnings, seeds = SCALES[scale]
    return [
        energy_trial(scale, s, world=world, learning=learning)
        for world in worlds
        for learning in learnings
        for s in range(seed, seed + seeds[learning])
    ]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    groups = grouped(results, "world", "learning")
    passed = {key: all(_recovered(r) for r in runs) for key, runs in groups.items()}
    learned = {name: [passed[key] for key in passed if key[1] == name] for name in ("qrl", "expectile")}
    rules = [all(every) for every in learned.values()]
    qrl = [r for r in results if r.at["learning"] == "qrl"]
    closer = [abs(np.log(r.value("median_ratio"))) < abs(np.log(r.value("uncalibrated_ratio"))) for r in qrl]
    before, after = (mean_and_range(qrl, name) for name in ("uncalibrated_ratio", "median_ratio"))
    return Finding(
        "holds" if all(rules) else "holds in part" if any(passed.values()) else "does not hold",
        f"Spearman at least {ORDER}, a median ratio within {SCALE_OFF:.0%} of 1, nine tenths of ratios within "
        f"{SPREAD_OFF:.0%}, and an AUC of at least {REACH} for what is out of reach, in every seed: quasimetric "
        f"learning in {sum(learned['qrl'])} of {len(learned['qrl'])} worlds, the expectile loss against discounted "
        f"truth in {sum(learned['expectile'])} of {len(learned['expectile'])}. Calibration by the costs of steps "
        f"brings the median ratio of quasimetric learning from {cell(before)} to {cell(after)}, nearer to 1 in "
        f"{sum(closer)} of {len(closer)} runs.",
        short=f"QRL {sum(learned['qrl'])} of {len(learned['qrl'])} worlds, ratio {after.value:.2f}; "
        f"expectile {sum(learned['expectile'])}",
        verdicts=tuple(_verdict(key, runs) for key, runs in groups.items()),
        figures=(_figure(results),),
        tables=(_table(groups),),
    )


def _recovered(result: Result) -> bool:
    """Where everything is in reach there is no AUC, and nothing to ask of it; a lost run recovers nothing."""
    auc = result.value("reachability_auc")
    return (
        result.value("spearman") >= ORDER
        and abs(result.value("median_ratio") - 1) <= SCALE_OFF
        and result.value("ratio_5") >= 1 - SPREAD_OFF
        and result.value("ratio_95") <= 1 + SPREAD_OFF
        and (np.isnan(auc) or auc >= REACH)
    )


def _verdict(key: tuple[Any, ...], runs: Sequence[Result]) -> Verdict:
    world, learning = key
    return Verdict.judge(
        f"spearman_{world}_{learning}",
        mean_and_interval(runs, "spearman"),
        direction="higher",
        threshold=ORDER,
        good="Energies are in the order of the truth.",
        bad="Energies are not shown to be in the order of the truth.",
    )


def _figure(results: Sequence[Result]) -> dict[str, Any]:
    """The first seed of each: medians of learned energies over exact ones, with the band of nine tenths."""
    panels = []
    for (world,), runs in grouped([r for r in results if r.record.get("curve")], "world").items():
        series = [
            {"name": learning} | dict(group[0].record["curve"])
            for (learning,), group in grouped(runs, "learning").items()
        ]
        ends = [0.0, max(max(line["x"]) for line in series)]
        panels.append(
            {"title": TITLES[world], "series": [*series, {"name": "exact", "x": ends, "y": ends, "dash": True}]}
        )
    return {
        "kind": "curves",
        "title": "Learned against exact energies",
        "x_label": "exact (expectile: discounted)",
        "y_label": "learned",
        "panels": panels,
        "note": "The first seed of each; bands hold nine tenths of pairs.",
    }


def _table(groups: dict[tuple[Any, ...], list[Result]]) -> dict[str, Any]:
    rows = [
        [
            TITLES[world],
            learning,
            len(runs),
            *(cell(mean_and_range(runs, name)) for name in MEASURES.values()),
            f"{sum(map(_recovered, runs))} of {len(runs)}",
        ]
        for (world, learning), runs in groups.items()
    ]
    return {
        "title": "Learned over exact energies of reachable pairs (expectile: discounted), means over seeds [extremes]",
        "columns": ["world", "learned by", "runs", *MEASURES, "recovered"],
        "rows": rows,
    }


EXPERIMENT = Experiment("energy-calibration", "Learned energies against exact ones", CLAIM, trials, conclude)
