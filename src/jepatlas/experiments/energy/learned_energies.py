"""Trials that learn an energy and judge it at the states of its world, where the truth is exact.

Every trial names all its coordinates (world, head, learning, coverage, seed), so a trial that two experiments share has
one name and is run once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.graphs import Graph
from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy import HEADS, ExpectileConfig, QRLConfig, graph_energies, symmetric_ceiling
from jepatlas.energy.audit import audit
from jepatlas.experiments.engine.experiment import Plain, Result, Scale, Trial
from jepatlas.experiments.engine.rules import as_verdicts, point_estimates
from jepatlas.nn import MLPConfig
from jepatlas.recipes import EnergyRecipe, EnergyWorld, WalkConfig
from jepatlas.workflows.energy import EnergyEvaluation, evaluate_run
from jepatlas.workflows.runs import resume_run, start_run
from jepatlas.worlds import ConstantCurrent, CurrentWorld, GymTable, OneWayGrid

__all__ = [
    "AXIOMS",
    "BUDGETS",
    "WORLDS",
    "energy_recipe",
    "energy_trial",
    "fit_energy",
    "named",
    "quasimetric",
    "run",
]

AXIOMS = ("nonnegativity", "identity", "triangle", "midpoints")
WORLDS: dict[str, EnergyWorld] = {
    "grid": OneWayGrid(),
    # the longest paths have 22 steps, as on the grid; all states are reachable, and the truth has a closed form
    "current": CurrentWorld(ConstantCurrent(0.5), step=0.2),
    "cliff": GymTable("CliffWalking-v1"),
    "lake": GymTable("FrozenLake8x8-v1"),
}
LEARNING = {"qrl": QRLConfig(), "expectile": ExpectileConfig()}


@dataclass(frozen=True)
class Budget:
    steps: int
    batch_size: int
    walk: WalkConfig
    width: int
    embedding: MLPConfig


WALK = WalkConfig()
EMBEDDING = EnergyRecipe().embedding
BUDGETS = {
    "tiny": Budget(20, 64, WalkConfig(episodes=60, length=20), 32, MLPConfig(width=32, depth=1)),
    "small": Budget(4000, 256, WALK, 256, EMBEDDING),
    "paper": Budget(20_000, 512, WALK, 256, EMBEDDING),
}


def energy_recipe(scale: Scale, seed: int, **choices: Any) -> EnergyRecipe:
    """An energy with the budget of a scale; by default on the one-way grid."""
    budget = BUDGETS[scale]
    recipe = EnergyRecipe(seed=seed, walk=budget.walk, width=budget.width, embedding=budget.embedding)
    training = replace(recipe.training, steps=budget.steps, batch_size=budget.batch_size, checkpoint_every=budget.steps)
    return replace(recipe, training=training, **choices)


def energy_trial(
    scale: Scale,
    seed: int,
    *,
    world: str = "grid",
    head: str = "iqe",
    learning: str = "qrl",
    coverage: float = 1.0,
) -> Trial:
    """A trial that learns one energy of one world."""
    walk = replace(BUDGETS[scale].walk, coverage=coverage)
    recipe = energy_recipe(
        scale, seed, source=WORLDS[world], head=HEADS[head](), learning=LEARNING[learning], walk=walk
    )
    at = {"world": world, "head": head, "learning": learning, "coverage": coverage, "seed": seed}
    return Trial(at, run, {"recipe": to_plain(recipe)})


def run(settings: Plain, folder: str) -> Plain:
    """Train an energy or resume, and judge it."""
    recipe = from_plain(EnergyRecipe, settings["recipe"])
    place = Path(folder)
    record = fit_energy(recipe, place)
    if record["status"] != "finished":
        return record
    judged = evaluate_run(place, seed=recipe.seed)
    verdicts = [verdict.to_json() for verdict in judged.record.verdicts]
    more = as_verdicts(_uncalibrated(judged) | _ceiling(judged), "not judged")
    return record | {"verdicts": verdicts + more + _against_observed(judged), "curve": _curve(judged)}


def fit_energy(recipe: EnergyRecipe, place: Path) -> Plain:
    """Train or resume; the record of a run that did not finish contains the reason."""
    outcome = resume_run(place) if (place / "recipe.yaml").exists() else start_run(recipe, place)
    verdicts = [outcome.verdict.to_json()] if outcome.verdict else []
    return {"status": outcome.status, "step": outcome.step, "verdicts": verdicts}


def _uncalibrated(judged: EnergyEvaluation) -> dict[str, Estimate]:
    """The median ratio before calibration by the costs of observed steps."""
    scale = judged.fitted.scale
    if scale is None:  # discounted values are not calibrated
        return {}
    ratio = judged.audit["median_ratio"].value * judged.fitted.data.unit / scale.value
    return point_estimates({"uncalibrated_ratio": ratio}, scale.n)


def _ceiling(judged: EnergyEvaluation) -> dict[str, Estimate]:
    """Upper bound of the AUC of symmetric scores over all pairs; NaN if all pairs are reachable."""
    assert judged.ground_truth.truth is not None
    return point_estimates(
        {"symmetric_ceiling": symmetric_ceiling(judged.ground_truth.truth)}, judged.ground_truth.truth.size
    )


def _against_observed(judged: EnergyEvaluation) -> list[Plain]:
    """The same energies against shortest paths along observed steps, which differ from the world's at low coverage."""
    if not judged.ground_truth.gridded or judged.fitted.gamma is not None:
        return []
    found = audit(judged.energies, truth=_observed_truth(judged), states=len(judged.energies))
    return named("seen", (v for v in found.verdicts if v.name not in (*AXIOMS, "indiscernibles", "asymmetry")))


def _observed_truth(judged: EnergyEvaluation) -> np.ndarray:
    learnt = judged.fitted.data.learnt
    positions = judged.ground_truth.positions
    assert positions is not None and learnt.z is not None and learnt.z_next is not None
    number = {tuple(place): i for i, place in enumerate(positions.tolist())}
    steps = np.unique(np.column_stack([learnt.z, learnt.z_next, learnt.cost]), axis=0)
    source, target = ([number[tuple(place)] for place in ends.tolist()] for ends in (steps[:, :2], steps[:, 2:4]))
    return graph_energies(Graph(len(positions), np.array(source), np.array(target), steps[:, 4]))


def named(name: str, verdicts: Iterable[Verdict]) -> list[Plain]:
    """Verdicts of one of several energies, prefixed by its name."""
    return [replace(verdict, name=f"{name}_{verdict.name}").to_json() for verdict in verdicts]


def _curve(judged: EnergyEvaluation) -> dict[str, list[float]] | None:
    curve = judged.audit.curve
    if curve is None:
        return None
    return {
        "x": curve.truth.tolist(),
        "y": curve.median.tolist(),
        "low": curve.low.tolist(),
        "high": curve.high.tolist(),
    }


def quasimetric(result: Result, name: str = "") -> bool:
    """Whether a trial's audit found no axiom broken; `name` is the prefix of one of several energies."""
    passed = {verdict["name"]: verdict["passed"] for verdict in result.record.get("verdicts", [])}
    prefix = f"{name}_" if name else ""
    return all(passed.get(prefix + axiom) is True for axiom in AXIOMS)
