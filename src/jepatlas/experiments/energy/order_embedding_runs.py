"""What one trial of `order-embedding` does: learn an energy between facts from rules alone, and ask it what follows.

A fact is a one-hot row, so its embedding is a row of a table. A rule p → q is a step at cost 1; goals are drawn from
all facts that rules name. Which other pairs are implied is told to no one: what holds them together is the triangle
inequality over rules, against a push that drives all pairs apart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from jepatlas.core.graphs import Graph
from jepatlas.core.records import Estimate, Experience
from jepatlas.core.seeding import forked_rng, numpy_generator
from jepatlas.data import StepStream
from jepatlas.energy import HEADS, EmbeddedEnergy, QRLConfig, graph_energies
from jepatlas.energy.audit.weighted_statistics import WeightedAuc
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.training import OneCycleSchedule, TrainingConfig, fingerprint, train

__all__ = ["GRAPHS", "implications", "run", "scores"]

GRAPHS = ("tree", "dag")
WIDTH = 64
PARENTS = 2  # of each fact of a DAG


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
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
    """Fact 0 is the most general. In a tree every other implies one fact before it, in a DAG two."""
    rng = numpy_generator(seed, f"implications/{kind}")
    parents = 1 if kind == "tree" else PARENTS
    rules = [(i, int(j)) for i in range(1, facts) for j in rng.choice(i, min(parents, i), replace=False)]
    premise, conclusion = np.array(rules).T
    return Graph(facts, premise, conclusion, np.ones(len(rules)))


def _rules_as_steps(graph: Graph) -> Experience:
    """Each rule is an episode of its own: then both its facts are among the goals."""
    rows = np.eye(graph.size)
    return Experience(rows[graph.source], rows[graph.target], graph.cost, np.arange(len(graph.cost)))


def scores(energy: np.ndarray, graph: Graph) -> dict[str, Estimate]:
    """Of pairs that no rule joins: AUC of implied against not implied, direction of implied ones, and order of costs.

    `auc` has all pairs that are not implied for negatives; `auc_unrelated` leaves out the converses of implied ones,
    which a symmetric energy cannot tell.
    """
    truth = graph_energies(graph)
    joined = np.zeros(truth.shape, dtype=bool)
    joined[graph.source, graph.target] = joined[graph.target, graph.source] = True
    open_ = ~joined & ~np.eye(len(truth), dtype=bool)
    implied = np.isfinite(truth) & open_
    related = implied | implied.T
    there, back = energy[implied], energy.T[implied]
    right = np.where(there == back, 0.5, there < back)
    values = {
        "auc": _auc(energy[open_], implied[open_]),
        "auc_unrelated": _auc(energy[open_ & ~(related & ~implied)], implied[open_ & ~(related & ~implied)]),
        "direction": float(right.mean()),
        "implied": float(implied.sum() / open_.sum()),
        "ratio": float(np.median(there / truth[implied])),
    }
    return {name: Estimate(value, value, value, int(implied.sum())) for name, value in values.items()}


def _auc(energy: np.ndarray, implied: np.ndarray) -> float:
    return WeightedAuc(-energy, implied)(np.ones(len(energy)))
