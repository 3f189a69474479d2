"""Learned energies against exact ones in four worlds: order, scale, spread and reachability.

Quasimetric learning should converge to E itself, the expectile loss to the discounted (1 − γ^E)/(1 − γ), with which it
is compared. The ratio before calibration by the costs of observed steps is reported as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Verdict
from jepatlas.experiments.energy.learned_energies import energy_trial
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, count_met, outcome_of
from jepatlas.experiments.engine.seed_tables import grouped, mean_and_interval, mean_and_range, mean_cells, select

__all__ = ["EXPERIMENT"]

ORDER = 0.99  # least rank correlation
SCALE_OFF = 0.05  # largest distance of the median ratio from 1
SPREAD_OFF = 0.15  # largest distance of 90% of the ratios from 1
REACHABLE = 0.99  # least AUC
TITLES = {"grid": "one-way grid", "current": "constant current", "cliff": "CliffWalking", "lake": "FrozenLake 8×8"}
LEARNING = ("qrl", "expectile")
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

SCALES = {"tiny": (("grid",), 1), "small": (tuple(TITLES), 3), "paper": (tuple(TITLES), 5)}
"""Worlds, and number of seeds."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    worlds, seeds = SCALES[scale]
    coordinates = grid(world=worlds, learning=LEARNING, seed=range(seed, seed + seeds))
    return [energy_trial(scale, **at) for at in coordinates]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if both ways of learning recover the energies of every world, and in part if one does in some world."""
    del scale
    groups = grouped(results, "world", "learning")
    passed = {key: all(_recovered(run) for run in runs) for key, runs in groups.items()}
    learned = {name: [passed[key] for key in passed if key[1] == name] for name in LEARNING}
    required = (
        f"all: Spearman ≥ {ORDER}, median ratio 1 ± {SCALE_OFF}, 90% of ratios 1 ± {SPREAD_OFF}, AUC ≥ {REACHABLE}"
    )
    criteria = tuple(
        Criterion.for_all(f"worlds recovered at every seed, {name}", met, required) for name, met in learned.items()
    )
    ratio = mean_and_range(select(results, learning="qrl"), "median_ratio")
    return Finding(
        outcome_of(list(passed.values())),
        f"Energies are recovered in {count_met(learned['qrl'])} worlds by QRL, with a median ratio of "
        f"{ratio.value:.2f}, and in {count_met(learned['expectile'])} by the expectile loss.",
        criteria=criteria,
        verdicts=tuple(_verdict(key, runs) for key, runs in groups.items()),
        figures=(_figure(results),),
        tables=(_table(groups), _calibration_table(results)),
    )


def _recovered(result: Result) -> bool:
    """All thresholds are met; there is no AUC if all pairs are reachable. NaN, of a failed run, fails."""
    auc = result.value("reachability_auc")
    return (
        result.value("spearman") >= ORDER
        and abs(result.value("median_ratio") - 1) <= SCALE_OFF
        and result.value("ratio_5") >= 1 - SPREAD_OFF
        and result.value("ratio_95") <= 1 + SPREAD_OFF
        and (np.isnan(auc) or auc >= REACHABLE)
    )


def _verdict(key: tuple[Any, ...], runs: Sequence[Result]) -> Verdict:
    world, learning = key
    return Verdict.judge(
        f"spearman_{world}_{learning}",
        mean_and_interval(runs, "spearman"),
        direction="higher",
        threshold=ORDER,
        good="The order of energies is that of the truth.",
        bad="It is not shown that the order of energies is that of the truth.",
    )


def _figure(results: Sequence[Result]) -> Curves:
    """Medians of learned energies over exact ones for the first seed, with the band of 90% of pairs."""
    panels = []
    for (world,), runs in grouped([r for r in results if r.record.get("curve")], "world").items():
        series = [Curve(name, **group[0].record["curve"]) for (name,), group in grouped(runs, "learning").items()]
        ends = [0.0, max(float(max(line.x)) for line in series)]
        panels.append(CurvePanel([*series, Curve("exact", ends, ends, dash=True)], TITLES[world]))
    return Curves(
        title="Learned against exact energies",
        x_label="exact (expectile: discounted)",
        y_label="learned",
        panels=panels,
        note="First seed of each; bands contain 90% of pairs.",
    )


def _calibration_table(results: Sequence[Result]) -> Table:
    qrl = select(results, learning="qrl")
    closer = [abs(np.log(r.value("median_ratio"))) < abs(np.log(r.value("uncalibrated_ratio"))) for r in qrl]
    row = [*mean_cells(qrl, ["uncalibrated_ratio", "median_ratio"]), count_met(closer)]
    columns = ["median ratio before", "after", "runs closer to 1 after"]
    return Table("QRL: calibration by the costs of steps", columns, [row])


def _table(groups: dict[tuple[Any, ...], list[Result]]) -> Table:
    rows = []
    for (world, learning), runs in groups.items():
        recovered = count_met([_recovered(run) for run in runs])
        rows.append([TITLES[world], learning, len(runs), *mean_cells(runs, MEASURES.values()), recovered])
    title = "Learned over exact energies of reachable pairs (expectile: discounted), means over seeds [range]"
    return Table(title, ["world", "learned by", "runs", *MEASURES, "recovered"], rows)


EXPERIMENT = Experiment("energy-calibration", "Learned energies against exact ones", CLAIM, trials, conclude)
