"""What one trial of `ported-energy` does: two agents, one-way grids that both see, energies that one of them learns.

The agents are trained apart, on the open plane, through mixings of their own. The grid lies in that plane, and the map
between their latents is fitted on states of the open plane: the second agent is shown nothing of the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are asked for
import torch

from jepatlas.alignment.maps import ProcrustesMap
from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.energy import PortedEnergy, graph_energies, reachability_errors
from jepatlas.energy.audit import audit
from jepatlas.experiments.alignment.latent_pairs import TrainedPair, train_pair
from jepatlas.experiments.energy.energy_runs import exactly, fit, named
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.recipes import EnergyRecipe, StepFile, WalkConfig
from jepatlas.workflows.energy import EnergyEvaluation, evaluate_run
from jepatlas.workflows.runs import load_objective
from jepatlas.worlds import OneWayGrid

__all__ = ["agreement", "run"]

SPREAD = 1.5  # the grid reaches to as many standard deviations of the states that the agents were trained on
TEST = 1000  # shared states that the map is scored on
See = Callable[[np.ndarray], np.ndarray]


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train both agents; on every grid learn an energy on the latents of the first, and audit it on those of both."""
    place, seed, pairs = Path(folder), settings["seed"], settings["pairs"]
    record, met = train_pair(settings["recipes"], folder, pairs + TEST, seed)
    if met is None:
        return record
    found = ProcrustesMap().fit(met.b[:pairs], met.a[:pairs])
    r2 = float(found.score(met.b[pairs:], met.a[pairs:]))
    verdicts = as_verdicts({"map_r2": exactly(r2, TEST)}, "of the map from agent 2 to agent 1")
    for arm in settings["arms"]:
        record, told = _arm(settings | arm, met, found.map_, place)
        if record["status"] != "finished":
            return record
        verdicts += told
    return record | {"verdicts": verdicts}


def _arm(
    arm: dict[str, Any], met: TrainedPair, to_source: LinearMap, place: Path
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """One grid, with or without noise on the latents while learning."""
    grid, walk = from_plain(OneWayGrid, arm["grid"]), from_plain(WalkConfig, arm["walk"])
    sees = [_eyes(place / f"agent-{number}", grid) for number in range(2)]
    steps = place / f"{arm['name']}.npz"
    _write_steps(steps, grid, walk, sees[0], arm["seed"])
    recipe = from_plain(EnergyRecipe, arm["energy"])
    recipe = replace(recipe, source=StepFile(str(steps)), jitter=arm["jitter"])
    record = fit(recipe, place / arm["name"])
    if record["status"] != "finished":
        return record, []
    judged, there = evaluate_run(place / arm["name"], seed=arm["seed"]), sees[1](grid.positions).astype(np.float32)
    audited = audit(_port(judged, to_source), there, truth=judged.ground_truth.truth, states=len(there))
    own, ported, shuffled = (f"{arm['name']}_{name}" for name in ("own", "ported", "shuffled"))
    told = named(own, judged.record.verdicts) + named(ported, audited.verdicts)
    return record, told + _shuffled(shuffled, judged, met, there, arm)


def _eyes(folder: Path, grid: OneWayGrid) -> See:
    """From cells to an agent's latents."""
    recipe, objective = load_objective(folder)

    def see(positions: np.ndarray) -> np.ndarray:
        z = torch.as_tensor(SPREAD * grid.observe(positions), dtype=torch.float32)
        with torch.no_grad():
            return objective.encode(recipe.world.observe(z)).double().numpy()

    return see


def _write_steps(path: Path, grid: OneWayGrid, walk: WalkConfig, see: See, seed: int) -> None:
    """Walks as an agent sees them, in the form in which latents of any model are learned from."""
    walked = grid.walk(walk.episodes, walk.length, seed, walk.coverage)
    assert walked.z is not None and walked.z_next is not None  # worlds know their states
    steps = {"x": see(walked.z), "x_next": see(walked.z_next), "cost": walked.cost, "episode": walked.episode}
    write_arrays(path, steps | {"points": see(grid.positions), "truth": graph_energies(grid.graph)})


def _shuffled(
    name: str, judged: EnergyEvaluation, met: TrainedPair, there: np.ndarray, settings: dict[str, Any]
) -> list[dict[str, Any]]:
    """What maps between shuffled pairs come to."""
    truth, pairs = judged.ground_truth.truth, settings["pairs"]
    assert truth is not None
    rng, controls = numpy_generator(settings["seed"], "shuffled pairs"), []
    for _ in range(settings["shuffles"]):
        shuffled = ProcrustesMap().fit(met.b[:pairs], met.a[rng.permutation(pairs)])
        controls.append(agreement(_matrix(_port(judged, shuffled.map_), there), truth))
    values = {
        f"{name}_{measure}": Estimate(float(column.mean()), float(column.min()), float(column.max()), len(column))
        for measure, column in zip(("spearman", "one_way_auc"), np.transpose(controls), strict=True)
    }
    return as_verdicts(values, "of maps between shuffled pairs")


def _port(judged: EnergyEvaluation, to_source: LinearMap) -> PortedEnergy:
    return PortedEnergy(judged.fitted.energy, to_source)


@torch.no_grad()
def _matrix(energy: PortedEnergy, points: np.ndarray) -> np.ndarray:
    rows = torch.as_tensor(points)
    return energy.all_pairs(rows, rows).double().numpy()


def agreement(energies: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Spearman's correlation over reachable pairs, and the AUC on one-way pairs, taken in both directions."""
    way = ~np.eye(len(truth), dtype=bool) & np.isfinite(truth)
    order = float(np.asarray(scipy.stats.spearmanr(energies[way], truth[way]))[0])
    one = np.isfinite(truth) & np.isinf(truth.T)
    both = one | one.T
    return order, reachability_errors(energies[both], truth[both], way[both]).auc
