"""Heads with the same network, objective, steps and budget: properties by construction, and accuracy.

Triangle gaps are measured by the closure over all states and at points between them; both are 0 for a quasimetric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jepatlas.core.figures import Curves, Table
from jepatlas.core.records import Verdict
from jepatlas.experiments.energy.learned_energies import energy_trial, quasimetric
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, count_met, share_verdict
from jepatlas.experiments.engine.seed_tables import finished_only, grouped, mean_and_range, mean_cells, scatter

__all__ = ["EXPERIMENT"]

HEADS = ("iqe", "mrn", "pqe", "relu-sum", "deep-norm", "l2")
MEASURES = {
    "Spearman": "spearman",
    "median ratio": "median_ratio",
    "5%": "ratio_5",
    "95%": "ratio_95",
    "error": "calibration_error",
    "AUC, unreachable": "reachability_auc",
    "triangle gap": "triangle",
    "gap at points between": "midpoints",
}

CLAIM = Claim(
    statement="Heads that are quasimetrics by construction obey the triangle inequality whatever they have learned; "
    "which of them is most accurate is left open.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, section 4; Improved "
    "Representation of Asymmetrical Distances with Interval Quasimetric Embeddings",
    proven="for each head; L2, a metric, is the symmetric control",
    assumed="evaluation in floating point preserves it up to rounding",
)

SCALES = {"tiny": (("iqe", "deep-norm"), 1), "small": (HEADS, 3), "paper": (HEADS, 10)}
"""Heads, and number of seeds."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    heads, seeds = SCALES[scale]
    return [energy_trial(scale, **at) for at in grid(head=heads, seed=range(seed, seed + seeds))]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    ended = finished_only(results)
    kept = [quasimetric(r) for r in ended]
    groups = grouped(ended, "head")
    error = {head: mean_and_range(runs, "calibration_error") for (head,), runs in groups.items()}
    best = min(error, key=lambda head: error[head].value)
    return Finding(
        "holds" if all(kept) else "does not hold",
        f"{count_met(kept)} trained energies are quasimetrics; {best} has the smallest error, {error[best].value:.3f}.",
        criteria=(Criterion.for_all("trained energies without a broken axiom", kept),),
        verdicts=(_verdict(ended, kept),),
        figures=(_figure(groups),),
        tables=(_table(results),),
    )


def _verdict(results: Sequence[Result], kept: Sequence[bool]) -> Verdict:
    broken = [r.trial.job.name for r, keeps in zip(results, kept, strict=True) if not keeps]
    return share_verdict(
        "quasimetrics",
        kept,
        good="Every trained head is a quasimetric.",
        bad=f"An axiom is broken in {', '.join(broken)}.",
    )


def _figure(groups: dict[tuple[Any, ...], list[Result]]) -> Curves:
    series = [scatter(head, runs, "calibration_error", "reachability_auc") for (head,), runs in groups.items()]
    return Curves(
        title="Scale and reachability, all runs",
        x_label="typical error of reachable pairs",
        y_label="AUC, unreachable pairs",
        log_x=True,
        series=series,
    )


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for (head,), runs in grouped(results, "head").items():
        rows.append([head, len(runs), *mean_cells(runs, MEASURES.values())])
    title = "Heads on a one-way grid with the same budget, means over seeds [range]"
    return Table(title, ["head", "runs", *MEASURES], rows)


EXPERIMENT = Experiment("energy-heads", "Heads compared", CLAIM, trials, conclude)
