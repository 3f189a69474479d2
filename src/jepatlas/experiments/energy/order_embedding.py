"""Implication as energy: do embeddings learned from rules alone represent the implications?

    AUC of −E for implied against not implied, and the share of implied pairs with E(p, q) < E(q, p)

over pairs that no rule joins, so nothing that is scored was trained on. A symmetric energy has a direction of exactly
½. A fact is a one-hot row, so its embedding is a row of a table. A rule p → q is a step of cost 1; goals are drawn from
all facts of the rules. Other implied pairs are not given: they follow from the triangle inequality over rules, while
the objective pushes all pairs apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import nn

from jepatlas.core.figures import CurvePanel, Curves, Table
from jepatlas.core.graphs import Graph
from jepatlas.core.records import Estimate, Experience, Verdict
from jepatlas.core.seeding import forked_rng, numpy_generator
from jepatlas.data import StepStream
from jepatlas.energy import HEADS, EmbeddedEnergy, QRLConfig, graph_energies
from jepatlas.energy.audit.weighted_statistics import WeightedAuc
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, count_met, outcome_of_criteria, point_estimates
from jepatlas.experiments.engine.seed_tables import cell, mean_and_interval, mean_and_range, mean_cells, scatter, select
from jepatlas.training import OneCycleSchedule, TrainingConfig, fingerprint, train

__all__ = ["EXPERIMENT", "implications", "run", "scores"]

GRAPHS = ("tree", "dag")
QUASIMETRIC = ("iqe", "mrn")
SYMMETRIC = "l2"
ALL_HEADS = (*QUASIMETRIC, SYMMETRIC)
WANTED = 0.95  # share of implied pairs in the right direction, at every seed
WIDTH = 64
PARENTS = 2  # of each fact of a DAG

CLAIM = Claim(
    statement="Implications are a directed relation, which a quasimetric energy can represent and a symmetric one "
    "cannot.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, section 5 (beyond RL) "
    "and Proposition 2",
    proven="that no symmetric energy which is finite exactly on reachable pairs can represent a one-way relation",
    assumed="for learning: nothing is said of whether an energy finds it from rules",
)


SCALES = {
    "tiny": ({"facts": 20, "steps": 30}, 1),
    "small": ({"facts": 200, "steps": 2000}, 3),
    "paper": ({"facts": 1000, "steps": 10_000}, 10),
}
"""Settings of a trial, and number of seeds."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    settings, seeds = SCALES[scale]
    coordinates = grid(graph=GRAPHS, head=ALL_HEADS, seed=range(seed, seed + seeds))
    return [Trial(at, run, at | settings) for at in coordinates]


def run(settings: Plain, folder: str) -> Plain:
    graph = implications(settings["graph"], settings["facts"], settings["seed"])
    with forked_rng(settings["seed"], "weights"):
        energy = EmbeddedEnergy(HEADS[settings["head"]]().build(WIDTH), nn.Linear(graph.size, WIDTH, bias=False))
    config = TrainingConfig(
        steps=settings["steps"],
        batch_size=512,
        lr=1e-2,
        schedule=OneCycleSchedule(),
        weight_decay=0.0,
        collapse=0.0,
        checkpoint_every=settings["steps"],
    )
    objective = QRLConfig(multiplier_rate=10.0).build(energy)
    steps = StepStream(_rules_as_steps(graph), config.batch_size, settings["seed"])
    outcome = train(objective, steps, config, Path(folder), recipe=fingerprint(settings))
    if outcome.status != "finished":
        verdicts = [outcome.verdict.to_json()] if outcome.verdict else []
        return {"status": outcome.status, "verdicts": verdicts}
    facts = torch.eye(graph.size)
    found = scores(energy.all_pairs(facts, facts).double().numpy(), graph)
    return {"status": "finished", "verdicts": as_verdicts(found, "over pairs of facts that no rule joins")}


def implications(kind: str, facts: int, seed: int) -> Graph:
    """Rules among facts, of which fact 0 is the most general: in a tree every other fact implies one earlier fact, in
    a DAG two."""
    rng = numpy_generator(seed, f"implications/{kind}")
    parents = 1 if kind == "tree" else PARENTS
    rules = [(i, int(j)) for i in range(1, facts) for j in rng.choice(i, min(parents, i), replace=False)]
    premise, conclusion = np.array(rules).T
    return Graph(facts, premise, conclusion, np.ones(len(rules)))


def _rules_as_steps(graph: Graph) -> Experience:
    """Each rule is an episode, so that both its facts are among the goals."""
    rows = np.eye(graph.size)
    return Experience(rows[graph.source], rows[graph.target], graph.cost, np.arange(len(graph.cost)))


def scores(energy: np.ndarray, graph: Graph) -> dict[str, Estimate]:
    """AUC, direction and scale on pairs that no rule joins.

    The negatives of `auc` are all pairs that are not implied; `auc_unrelated` leaves out the converses of implied
    pairs, which a symmetric energy cannot distinguish.
    """
    truth = graph_energies(graph)
    joined = np.zeros(truth.shape, dtype=bool)
    joined[graph.source, graph.target] = joined[graph.target, graph.source] = True
    scored = ~joined & ~np.eye(len(truth), dtype=bool)
    implied = np.isfinite(truth) & scored
    unrelated = scored & ~(implied.T & ~implied)
    there = energy[implied]
    back = energy.T[implied]
    right = np.where(there == back, 0.5, there < back)
    values = {
        "auc": _auc(energy[scored], implied[scored]),
        "auc_unrelated": _auc(energy[unrelated], implied[unrelated]),
        "direction": float(right.mean()),
        "implied": float(implied.sum() / scored.sum()),
        "ratio": float(np.median(there / truth[implied])),
    }
    return point_estimates(values, int(implied.sum()))


def _auc(energy: np.ndarray, implied: np.ndarray) -> float:
    return WeightedAuc(-energy, implied)(np.ones(len(energy)))


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    criteria = []
    for graph, head in product(GRAPHS, QUASIMETRIC):
        group = select(results, graph=graph, head=head)
        direction = mean_and_range(group, "direction")
        all_right = all(result.value("direction") >= WANTED for result in group)
        criteria.append(Criterion(f"{graph}, {head}: direction", cell(direction), f"≥ {WANTED}", all_right))
        ours = mean_and_interval(group, "auc")
        other = mean_and_interval(select(results, graph=graph, head=SYMMETRIC), "auc")
        name = f"{graph}, {head}: AUC above that of {SYMMETRIC}"
        criteria.append(Criterion(name, cell(ours), f"> {cell(other)}", ours.low > other.high))
    auc = {head: mean_and_range(select(results, head=head), "auc") for head in ALL_HEADS}
    best = max(QUASIMETRIC, key=lambda head: auc[head].value)
    return Finding(
        outcome_of_criteria(criteria),
        f"AUC of implied pairs: {auc[best].value:.3f} with {best}, {auc[SYMMETRIC].value:.3f} with {SYMMETRIC}.",
        criteria=tuple(criteria),
        verdicts=tuple(_verdict(head, mean_and_range(select(results, head=head), "direction")) for head in QUASIMETRIC),
        figures=(_figure(results),),
        tables=(_table(results),),
    )


def _verdict(head: str, direction: Estimate) -> Verdict:
    return Verdict.judge(
        f"direction_{head}",
        direction,
        direction="higher",
        threshold=WANTED,
        null=0.5,
        good="The direction of implied pairs that no rule joins is right.",
        bad="The direction of implied pairs that no rule joins is often wrong.",
    )


def _figure(results: Sequence[Result]) -> Curves:
    panels = []
    for graph in GRAPHS:
        series = [scatter(head, select(results, graph=graph, head=head), "direction", "auc") for head in ALL_HEADS]
        panels.append(CurvePanel(series, graph))
    return Curves(
        title="Implied pairs and their direction",
        x_label="direction of implied pairs",
        y_label="AUC of implied pairs",
        panels=panels,
    )


def _table(results: Sequence[Result]) -> Table:
    keys = ("auc", "auc_unrelated", "direction", "ratio", "implied")
    rows = []
    for graph, head in product(GRAPHS, ALL_HEADS):
        group = select(results, graph=graph, head=head)
        finished = count_met([result.status == "finished" for result in group])
        rows.append([graph, head, *mean_cells(group, keys), finished])
    columns = ["graph", "head", "AUC", "AUC without converses", "direction", "median E / derivation"]
    return Table("Pairs that no rule joins, means over seeds [range]", [*columns, "share implied", "finished"], rows)


EXPERIMENT = Experiment("order-embedding", "Implications as directed energies", CLAIM, trials, conclude)
