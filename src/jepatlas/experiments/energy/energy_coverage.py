"""Coverage of the data: energies learned from a share of the world's steps, compared with two truths.

These are the world's energies, and those of the graph of observed steps. At low coverage the graph lacks paths, so
recovering its energies exactly would still be wrong about the world.
"""

from __future__ import annotations

from collections.abc import Sequence

from jepatlas.core.figures import CurvePanel, Curves, Table
from jepatlas.core.records import Verdict
from jepatlas.experiments.energy.learned_energies import energy_trial
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, count_met, outcome_in_stages
from jepatlas.experiments.engine.seed_tables import (
    curve,
    grouped,
    mean_and_interval,
    mean_and_range,
    mean_cells,
    select,
)

__all__ = ["EXPERIMENT"]

ORDER = 0.95  # least rank correlation
ERROR = 0.1  # largest typical error
REACHABLE = 0.95  # least AUC
TRUTHS = {"": "the world", "seen_": "observed steps"}
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
    proven="recovery at the exact optimum if all steps are covered; not how much coverage is enough",
    assumed="deterministic steps",
)

SCALES = {
    "tiny": ((0.5, 1.0), 1),
    "small": ((0.5, 0.75, 1.0), 3),
    "paper": ((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0), 5),
}
"""Shares of the steps, and number of seeds."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    shares, seeds = SCALES[scale]
    return [energy_trial(scale, **at) for at in grid(coverage=shares, seed=range(seed, seed + seeds))]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if both criteria are met, and in part if the first one is."""
    shares = SCALES[scale][0]
    recovered = {share: [_recovered(run) for run in select(results, coverage=share)] for share in shares}
    full = recovered[shares[-1]]
    least = recovered[shares[0]]
    required = f"Spearman ≥ {ORDER}, error ≤ {ERROR}, AUC ≥ {REACHABLE}"
    criteria = (
        Criterion.for_all(f"seeds recovered at {shares[-1]:.0%} ({required})", full),
        Criterion(f"seeds recovered at {shares[0]:.0%}", count_met(least), "none", not any(least)),
    )
    enough = [share for share in shares if all(all(recovered[more]) for more in shares if more >= share)]
    return Finding(
        outcome_in_stages(all(full), not any(least)),
        f"Energies are recovered from a coverage of {min(enough):.0%}." if enough else "Recovered at no coverage.",
        criteria=criteria,
        verdicts=(_verdict(select(results, coverage=shares[-1])),),
        figures=(_figure(results, shares),),
        tables=(_table(results),),
    )


def _recovered(result: Result) -> bool:
    return (
        result.value("spearman") >= ORDER
        and result.value("calibration_error") <= ERROR
        and result.value("reachability_auc") >= REACHABLE
    )


def _verdict(runs: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        "error_at_full_coverage",
        mean_and_interval(runs, "calibration_error"),
        direction="lower",
        threshold=ERROR,
        good="With all steps covered the scale of energies is that of the truth.",
        bad="Even with all steps covered it is not shown that the scale of energies is that of the truth.",
    )


def _figure(results: Sequence[Result], shares: Sequence[float]) -> Curves:
    panels = []
    for title, name in MEASURES.items():
        if name == "median_ratio":
            continue
        series = []
        for prefix, truth in TRUTHS.items():
            means = [mean_and_range(select(results, coverage=share), prefix + name) for share in shares]
            series.append(curve(f"against {truth}", shares, means))
        panels.append(CurvePanel(series, title))
    return Curves(title="Energies against coverage", x_label="share of steps in the data", y_label="", panels=panels)


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for (share,), runs in grouped(results, "coverage").items():
        for prefix, truth in TRUTHS.items():
            cells = mean_cells(runs, [prefix + name for name in MEASURES.values()])
            rows.append([f"{share:.0%}", truth, len(runs), *cells])
    title = "Energies of a one-way grid by the share of its steps in the data, means over seeds [range]"
    return Table(title, ["coverage", "against", "runs", *MEASURES], rows)


EXPERIMENT = Experiment("energy-coverage", "Coverage of the data", CLAIM, trials, conclude)
