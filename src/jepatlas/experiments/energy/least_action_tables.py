"""Least action on tables whose energies are known: how many random walks does it take, and can +∞ be trusted?

A least-action energy is computed from n random walks and compared with the exact one. Then as many walks are added. Of
the pairs that had no way, the energy had stated how many would still have none; this is compared with what is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Curve, Curves, Table
from jepatlas.core.records import Estimate, Experience, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import spearman
from jepatlas.energy import fit_least_action, graph_energies, reachability_errors
from jepatlas.energy.audit import audit
from jepatlas.energy.least_action import no_way_confidence
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, outcome_in_stages, point_estimates
from jepatlas.experiments.engine.seed_tables import grouped, mean_cells, scatter
from jepatlas.recipes import EnergyRecipe, EnergyWorld
from jepatlas.worlds import GymTable, OneWayGrid

__all__ = ["EXPERIMENT"]

WORLDS: dict[str, EnergyWorld] = {
    "one-way grid": OneWayGrid(),
    "CliffWalking": GymTable("CliffWalking-v1"),
    "FrozenLake": GymTable("FrozenLake8x8-v1"),
    "Taxi": GymTable("Taxi-v4"),
}
LENGTH = 50  # steps of a walk
STATES = 150  # compared in all pairs
WANTED = {"spearman": 0.98, "auc": 0.95}
ROWS = {
    "Spearman": "spearman",
    "ratio, 5%": "ratio_5",
    "ratio, 95%": "ratio_95",
    "AUC of unreachable pairs": "auc",
    "reachable pairs at +∞": "missed",
    "+∞ still after twice the walks, stated": "stated",
    "found": "remained",
    "broken axioms": "broken",
}

CLAIM = Claim(
    statement="The infimum of accumulated effort over observed trajectories, +∞ if there is none, is a quasimetric. "
    "It becomes the cost-to-go as trajectories are observed.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, Definition 2 and "
    "Theorem 1; the rule is ours",
    proven="for all admissible trajectories; not for observed ones",
    assumed="deterministic steps",
)

SCALES: dict[Scale, tuple[tuple[str, ...], tuple[int, ...], int]] = {
    "tiny": (("one-way grid",), (20,), 1),
    "small": (tuple(WORLDS), (30, 100, 300, 1000), 3),
    "paper": (tuple(WORLDS), (30, 100, 300, 1000, 3000), 10),
}
"""Worlds, numbers of walks, and seeds."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    worlds, walks, seeds = SCALES[scale]
    every = []
    for at in grid(world=worlds, walks=walks, seed=range(seed, seed + seeds)):
        recipe = EnergyRecipe(seed=at["seed"], source=WORLDS[at["world"]])
        every.append(Trial(at, run, {"recipe": to_plain(recipe), "walks": at["walks"]}))
    return every


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Compute the energy of some walks, compare it with the exact one, and add as many walks."""
    del folder  # nothing is trained
    recipe = from_plain(EnergyRecipe, settings["recipe"])
    world: Any = recipe.source
    walks = world.walk(2 * settings["walks"], LENGTH, recipe.seed, 1.0)
    first = walks.episode < np.unique(walks.episode)[settings["walks"]]
    chosen = numpy_generator(recipe.seed, "states").permutation(len(world.positions))[:STATES]
    truth = graph_energies(world.graph, sources=chosen, goals=chosen)
    points = torch.as_tensor(world.observe(world.positions[chosen]))
    energy = fit_least_action(_rows(walks, first), seed=recipe.seed)
    found = energy.all_pairs(points).numpy()
    later = energy.add(_rows(walks, ~first)).all_pairs(points).numpy()
    stated = no_way_confidence(energy, points, points)
    others = ~np.eye(len(chosen), dtype=bool)
    errors = reachability_errors(found[others], truth[others], np.isfinite(found)[others])
    both = others & np.isfinite(found) & np.isfinite(truth)
    ratios = found[both] / truth[both]
    none = others & np.isinf(found)
    numbers = {
        "spearman": spearman(found[both], truth[both]).value,
        "ratio_5": float(np.quantile(ratios, 0.05)),
        "ratio_95": float(np.quantile(ratios, 0.95)),
        "auc": errors.auc,
        "missed": errors.missed,
        "stated": float(stated[none].mean()) if none.any() else float("nan"),
        "remained": float(np.isinf(later[none]).mean()) if none.any() else float("nan"),
        "broken": float(len(audit(energy, points.numpy().astype(np.float32), seed=recipe.seed).failed_axioms)),
    }
    verdicts = as_verdicts(point_estimates(numbers, int(both.sum())), "Over pairs of states.")
    return {"status": "finished", "verdicts": verdicts}


def _rows(walks: Experience, mask: np.ndarray) -> Experience:
    parts = {name: getattr(walks, name)[mask] for name in ("x", "x_next", "cost", "episode")}
    return replace(walks, **parts, z=None, z_next=None)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if no axiom is broken in any run, and with the most walks all runs have a Spearman correlation of at
    least 0.98 and an AUC of at least 0.95; in part if no axiom is broken."""
    most = max(SCALES[scale][1])
    full = [result for result in results if result.at["walks"] == most]
    sound = [result.value("broken") == 0 for result in results]
    good = [all(result.value(name) >= least for name, least in WANTED.items()) for result in full]
    lowest = {name: min(result.value(name) for result in full) for name in WANTED}
    return Finding(
        outcome_in_stages(all(sound), all(good)),
        f"With {most} walks the lowest Spearman correlation with the exact energy is {lowest['spearman']:.3f}, and the "
        f"lowest AUC of unreachable pairs {lowest['auc']:.3f}.",
        verdicts=tuple(
            Verdict.judge(
                name,
                Estimate.exact(lowest[name], len(full)),
                direction="higher",
                threshold=least,
                good=f"Lowest of the runs with {most} walks.",
            )
            for name, least in WANTED.items()
        ),
        criteria=(
            Criterion.for_all("no broken axiom", sound, "all runs"),
            Criterion.for_all(f"{most} walks: Spearman ≥ 0.98 and AUC ≥ 0.95", good, "all runs"),
        ),
        figures=(_figure(results),),
        tables=(_table(results),),
    )


def _figure(results: Sequence[Result]) -> Curves:
    series = [Curve("as stated", [0.0, 1.0], [0.0, 1.0], dash=True)]
    for (world,), runs in grouped(results, "world").items():
        series.append(scatter(world, [run for run in runs if np.isfinite(run.value("stated"))], "stated", "remained"))
    return Curves(
        title="Pairs without a way: share that still has none after as many walks again",
        x_label="stated",
        y_label="found",
        series=series,
    )


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for (world, walks), runs in grouped(results, "world", "walks").items():
        rows.append([world, walks, len(runs), *mean_cells(runs, ROWS.values())])
    return Table("Least action of random walks, means over seeds [range]", ["world", "walks", "runs", *ROWS], rows)


EXPERIMENT = Experiment("least-action-tables", "Least action on known tables", CLAIM, trials, conclude)
