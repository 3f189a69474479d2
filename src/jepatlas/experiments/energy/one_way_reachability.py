"""Proposition 2: a symmetric energy cannot know one-way doors, whatever it is learned by.

On the two directions of one-way pairs a symmetric score has an AUC of exactly ½; over all ordered pairs it cannot
exceed  1 − ½W² / ((2U + W)(2B + W)),  where of the unordered pairs W are one-way, U out of reach and B in reach both
ways. The same network, objective and steps with a head that is a quasimetric can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.experiments.energy.energy_runs import energy_trial
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, grouped, mean_and_interval, mean_and_range, select

__all__ = ["EXPERIMENT"]

QUASIMETRIC, SYMMETRIC = ("iqe", "mrn"), ("l2", "squared-l2", "cosine")
ROUNDING, KNOWS = 1e-9, 0.95
MEASURES = {
    "AUC, one-way pairs": "one_way_auc",
    "AUC, all pairs": "reachability_auc",
    "ceiling of symmetric scores": "symmetric_ceiling",
    "Spearman": "spearman",
}

CLAIM = Claim(
    statement="A symmetric energy that is finite where there is a way cannot represent directed reachability.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, Proposition 2",
    proven="for every symmetric energy; that quasimetric ones can learn it is not part of the proposition",
    assumed="that unreachable is told from reachable by the energy alone",
)

SCALES = {
    "tiny": (("iqe", "l2"), 1),
    "small": ((*QUASIMETRIC, *SYMMETRIC), 3),
    "paper": ((*QUASIMETRIC, *SYMMETRIC), 10),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    heads, seeds = SCALES[scale]
    return [energy_trial(scale, s, head=head) for head in heads for s in range(seed, seed + seeds)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    symmetric, directed = ([r for r in results if r.at["head"] in heads] for heads in (SYMMETRIC, QUASIMETRIC))
    half = [abs(r.value("one_way_auc") - 0.5) <= ROUNDING for r in symmetric]
    below = [r.value("reachability_auc") <= r.value("symmetric_ceiling") + ROUNDING for r in symmetric]
    know = [r.estimate("one_way_auc").low >= KNOWS for r in directed]
    blind, able = all(half) and all(below), all(know)
    aucs = [mean_and_range(group, "one_way_auc") for group in (directed, symmetric)]
    most, ceiling = mean_and_range(symmetric, "reachability_auc"), mean_and_range(symmetric, "symmetric_ceiling")
    return Finding(
        "holds" if blind and able else "holds in part" if blind else "does not hold",
        f"On one-way pairs the AUC of symmetric heads is 0.5 to {ROUNDING:g} in {sum(half)} of {len(half)} runs, and "
        f"over all pairs at most {most.high:.3f} where symmetric scores can reach {ceiling.value:.3f} (never above it "
        f"in {sum(below)} of {len(below)}). Quasimetric heads reach {cell(aucs[0])} on one-way pairs, at least {KNOWS} "
        f"at the lower limit in {sum(know)} of {len(know)} runs.",
        short=f"one-way AUC {aucs[0].value:.3f}, of symmetric heads {aucs[1].value:.3f}",
        verdicts=tuple(_verdict(head, runs) for (head,), runs in grouped(directed, "head").items()),
        figures=(_figure(results),),
        tables=(_table(results),),
    )


def _verdict(head: str, runs: Sequence[Result]) -> Verdict:
    return Verdict.judge(
        f"one_way_auc_{head}",
        mean_and_interval(runs, "one_way_auc"),
        direction="higher",
        threshold=KNOWS,
        null=0.5,
        good="It knows that there is no way back.",
        bad="It is not shown to know that there is no way back.",
    )


def _figure(results: Sequence[Result]) -> dict[str, Any]:
    series = [
        {
            "name": head,
            "x": [r.value("reachability_auc") for r in runs],
            "y": [r.value("one_way_auc") for r in runs],
            "points": True,
        }
        for (head,), runs in grouped([r for r in results if np.isfinite(r.value("one_way_auc"))], "head").items()
    ]
    ceiling = mean_and_range(results, "symmetric_ceiling").value
    series.append({"name": "ceiling of symmetric scores", "x": [ceiling, ceiling], "y": [0.5, 1.0], "dash": True})
    return {
        "kind": "curves",
        "title": "Who knows that there is no way back: every run",
        "x_label": "AUC over all pairs",
        "y_label": "AUC over one-way pairs",
        "series": series,
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [
            head,
            "symmetric" if head in SYMMETRIC else "quasimetric",
            len(runs),
            *(cell(mean_and_range(runs, name)) for name in MEASURES.values()),
        ]
        for (head,) in grouped(results, "head")
        for runs in [select(results, head=head)]
    ]
    return {
        "title": "A one-way grid, means over seeds [extremes]",
        "columns": ["head", "kind", "runs", *MEASURES],
        "rows": rows,
    }


EXPERIMENT = Experiment("one-way-reachability", "Who knows that there is no way back", CLAIM, trials, conclude)
