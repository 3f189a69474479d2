"""Proposition 2: a symmetric energy cannot represent one-way reachability, however it is learned.

On the two directions of one-way pairs a symmetric score has an AUC of exactly ½. Over all ordered pairs it cannot
exceed  1 − ½W² / ((2U + W)(2B + W)),  where W unordered pairs are one-way, U unreachable, and B reachable in both
directions. A quasimetric head with the same network, objective and steps can.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.core.figures import Curve, Curves, Table
from jepatlas.core.records import Verdict
from jepatlas.experiments.energy.learned_energies import energy_trial
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, outcome_in_stages
from jepatlas.experiments.engine.seed_tables import grouped, mean_and_interval, mean_and_range, mean_cells, scatter

__all__ = ["EXPERIMENT", "SYMMETRIC"]

QUASIMETRIC = ("iqe", "mrn")
SYMMETRIC = ("l2", "squared-l2", "cosine")
ROUNDING = 1e-9
WANTED = 0.95  # least AUC of one-way pairs with a quasimetric head
MEASURES = {
    "AUC, one-way pairs": "one_way_auc",
    "AUC, all pairs": "reachability_auc",
    "ceiling of symmetric scores": "symmetric_ceiling",
    "Spearman": "spearman",
}

CLAIM = Claim(
    statement="A symmetric energy that is finite on reachable pairs cannot represent directed reachability.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, Proposition 2",
    proven="for every symmetric energy; that quasimetric ones can learn it is not part of the proposition",
    assumed="that the energy alone distinguishes unreachable from reachable",
)

SCALES = {
    "tiny": (("iqe", "l2"), 1),
    "small": ((*QUASIMETRIC, *SYMMETRIC), 3),
    "paper": ((*QUASIMETRIC, *SYMMETRIC), 10),
}
"""Heads, and number of seeds."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    heads, seeds = SCALES[scale]
    return [energy_trial(scale, **at) for at in grid(head=heads, seed=range(seed, seed + seeds))]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if all criteria are met, and in part if those on symmetric heads are."""
    del scale
    symmetric = [r for r in results if r.at["head"] in SYMMETRIC]
    directed = [r for r in results if r.at["head"] in QUASIMETRIC]
    half = [abs(r.value("one_way_auc") - 0.5) <= ROUNDING for r in symmetric]
    below = [r.value("reachability_auc") <= r.value("symmetric_ceiling") + ROUNDING for r in symmetric]
    good = [r.estimate("one_way_auc").low >= WANTED for r in directed]
    criteria = (
        Criterion.for_all("symmetric heads: one-way AUC of ½", half, "all runs"),
        Criterion.for_all("symmetric heads: AUC at most the ceiling", below, "all runs"),
        Criterion.for_all(f"quasimetric heads: one-way AUC ≥ {WANTED}", good, "all runs"),
    )
    one_way = mean_and_range(directed, "one_way_auc").value
    control = mean_and_range(symmetric, "one_way_auc").value
    return Finding(
        outcome_in_stages(all(half) and all(below), all(good)),
        f"AUC of one-way pairs: {one_way:.3f} with quasimetric heads, {control:.3f} with symmetric ones.",
        criteria=criteria,
        verdicts=tuple(_verdict(head, runs) for (head,), runs in grouped(directed, "head").items()),
        figures=(_figure(results),),
        tables=(_table(results),),
    )


def _verdict(head: str, runs: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        f"one_way_auc_{head}",
        mean_and_interval(runs, "one_way_auc"),
        direction="higher",
        threshold=WANTED,
        null=0.5,
        good="The energy represents one-way reachability.",
        bad="It is not shown that the energy represents one-way reachability.",
    )


def _figure(results: Sequence[Result]) -> Curves:
    measured = [r for r in results if np.isfinite(r.value("one_way_auc"))]
    series = []
    for (head,), runs in grouped(measured, "head").items():
        series.append(scatter(head, runs, "reachability_auc", "one_way_auc"))
    ceiling = mean_and_range(results, "symmetric_ceiling").value
    series.append(Curve("ceiling of symmetric scores", [ceiling, ceiling], [0.5, 1.0], dash=True))
    return Curves(
        title="One-way reachability, all runs",
        x_label="AUC over all pairs",
        y_label="AUC over one-way pairs",
        series=series,
    )


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for (head,), runs in grouped(results, "head").items():
        kind = "symmetric" if head in SYMMETRIC else "quasimetric"
        rows.append([head, kind, len(runs), *mean_cells(runs, MEASURES.values())])
    return Table("A one-way grid, means over seeds [range]", ["head", "kind", "runs", *MEASURES], rows)


EXPERIMENT = Experiment("one-way-reachability", "One-way reachability", CLAIM, trials, conclude)
