"""Implication as energy: can what follows from what be read off embeddings that were learned from rules alone?

    AUC of −E for implied against not implied, and the share of implied pairs with E(p, q) < E(q, p)

over pairs that no rule joins, so that nothing scored was trained on. A symmetric energy is at exactly ½ in direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.experiments.energy.order_embedding_runs import GRAPHS, run
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, mean_and_interval, mean_and_range, select

__all__ = ["EXPERIMENT"]

QUASIMETRIC, SYMMETRIC = ("iqe", "mrn"), "l2"
KNOWS = 0.95  # of implied pairs in the right direction, in every seed

CLAIM = Claim(
    statement="Implications are a directed relation, which a quasimetric energy can hold and a symmetric one cannot.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, section 5 (beyond RL) "
    "and Proposition 2",
    proven="that no symmetric energy which is finite exactly where there is a way can hold a one-way relation",
    assumed="for learning: nothing is said of whether an energy finds it from rules",
)


@dataclass(frozen=True)
class Plan:
    facts: int
    steps: int
    seeds: int


SCALES = {"tiny": Plan(20, 30, 1), "small": Plan(200, 2000, 3), "paper": Plan(1000, 10_000, 10)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    return [
        Trial(
            {"graph": graph, "head": head, "seed": s},
            run,
            {"graph": graph, "head": head, "facts": plan.facts, "steps": plan.steps, "seed": s},
        )
        for graph, head in product(GRAPHS, (*QUASIMETRIC, SYMMETRIC))
        for s in range(seed, seed + plan.seeds)
    ]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    rules = [
        rule
        for graph, head in product(GRAPHS, QUASIMETRIC)
        for rule in (_knows_direction(results, graph, head), _beats_symmetric(results, graph, head))
    ]
    heads = {head: [result for result in results if result.at["head"] == head] for head in (*QUASIMETRIC, SYMMETRIC)}
    auc = {head: mean_and_range(group, "auc") for head, group in heads.items()}
    direction = {head: mean_and_range(group, "direction") for head, group in heads.items()}
    told = "; ".join(
        f"{head} {auc[head].value:.3f} and {direction[head].value:.3f}" for head in (*QUASIMETRIC, SYMMETRIC)
    )
    best = max(QUASIMETRIC, key=lambda head: auc[head].value)
    return Finding(
        "holds" if all(rules) else "holds in part" if any(rules) else "does not hold",
        f"{SCALES[scale].facts} facts, learned from their rules alone. AUC of implied against not implied, and "
        f"direction of implied pairs, over pairs that no rule joins: {told}. {sum(rules)} of {len(rules)} rules are "
        f"met: direction of at least {KNOWS:g} in every seed, and an AUC above that of {SYMMETRIC}, on every kind of "
        "graph.",
        short=f"AUC {best} {auc[best].value:.3f}, {SYMMETRIC} {auc[SYMMETRIC].value:.3f}",
        verdicts=tuple(_verdict(head, direction[head]) for head in QUASIMETRIC),
        figures=(_figure(results),),
        tables=(_table(results),),
    )


def _knows_direction(results: Sequence[Result], graph: str, head: str) -> bool:
    group = select(results, graph=graph, head=head)
    return all(result.value("direction") >= KNOWS for result in group)


def _beats_symmetric(results: Sequence[Result], graph: str, head: str) -> bool:
    """Student's intervals of both means do not meet."""
    ours, other = (mean_and_interval(select(results, graph=graph, head=name), "auc") for name in (head, SYMMETRIC))
    return ours.low > other.high


def _verdict(head: str, direction: Any) -> Verdict:
    return Verdict.judge(
        f"direction_{head}",
        direction,
        direction="higher",
        threshold=KNOWS,
        null=0.5,
        good="It knows which of two facts implies the other, where no rule joins them.",
        bad="It often takes the conclusion for the premise, where no rule joins them.",
    )


def _figure(results: Sequence[Result]) -> dict[str, Any]:
    panels = [
        {
            "title": graph,
            "series": [
                {
                    "name": head,
                    "points": True,
                    "x": [r.value("direction") for r in select(results, graph=graph, head=head)],
                    "y": [r.value("auc") for r in select(results, graph=graph, head=head)],
                }
                for head in (*QUASIMETRIC, SYMMETRIC)
            ],
        }
        for graph in GRAPHS
    ]
    return {
        "kind": "curves",
        "title": "What follows, and which way",
        "x_label": "direction of implied pairs",
        "y_label": "AUC of implied pairs",
        "panels": panels,
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    keys = ("auc", "auc_unrelated", "direction", "ratio", "implied")
    rows = []
    for graph, head in product(GRAPHS, (*QUASIMETRIC, SYMMETRIC)):
        group = select(results, graph=graph, head=head)
        finished = int(np.sum([result.status == "finished" for result in group]))
        rows.append([graph, head, *(cell(mean_and_range(group, key)) for key in keys), f"{finished} of {len(group)}"])
    columns = [
        "graph",
        "head",
        "AUC",
        "AUC without converses",
        "direction",
        "median E / derivation",
        "share implied",
        "finished",
    ]
    return {"title": "Pairs that no rule joins, means over seeds [extremes]", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("order-embedding", "What follows from what, by embeddings", CLAIM, trials, conclude)
