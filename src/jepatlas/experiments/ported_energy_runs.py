"""What one trial of `ported-energy` does: two agents, a one-way grid that both see, an energy that one of them learns.

The agents are trained apart, on the open plane, through mixings of their own. The grid lies in that plane, and the map
between their latents is fitted on states of the open plane: the second agent is shown nothing of the grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from jepatlas.align.maps import ProcrustesMap
from jepatlas.base.arrays import write_arrays
from jepatlas.base.config import from_plain
from jepatlas.base.records import Estimate, LinearMap
from jepatlas.base.seeding import numpy_generator
from jepatlas.energies import JudgedEnergy, judge_run
from jepatlas.energy import PortedEnergy, audit, graph_energies, reachability_errors
from jepatlas.experiments.agents import Meeting, meet
from jepatlas.experiments.energy_runs import exactly, fit, named
from jepatlas.experiments.latents import inform
from jepatlas.recipes import EnergyRecipe, StepFile, WalkConfig
from jepatlas.runs import load_objective
from jepatlas.worlds import OneWayGrid

__all__ = ["agreement", "run"]

SPREAD = 1.5  # the grid reaches to as many standard deviations of the states that the agents were trained on
TEST = 1000  # shared states that the map is scored on
See = Callable[[np.ndarray], np.ndarray]


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train both agents, learn the energy on the latents of the first, and audit it on those of both.

    It is learned twice: as it is, and with noise as large as the map's own error, √(1 − R²), on the latents.
    """
    place, seed = Path(folder), settings["seed"]
    record, met = meet(settings["recipes"], folder, settings["pairs"] + TEST, seed)
    if met is None:
        return record
    grid, walk = from_plain(OneWayGrid, settings["grid"]), from_plain(WalkConfig, settings["walk"])
    sees = [_eyes(place / f"agent-{number}", grid) for number in range(2)]
    _write_steps(place / "steps.npz", grid, walk, sees[0], seed)
    pairs = settings["pairs"]
    found = ProcrustesMap().fit(met.b[:pairs], met.a[:pairs])
    r2 = float(found.score(met.b[pairs:], met.a[pairs:]))
    verdicts = inform({"map_r2": exactly(r2, TEST)}, "of the map from agent 2 to agent 1")
    for prefix, jitter in (("", 0.0), ("noise_", math.sqrt(max(0.0, 1 - r2)))):
        source = StepFile(str(place / "steps.npz"))
        recipe = replace(from_plain(EnergyRecipe, settings["energy"]), source=source, jitter=jitter)
        record = fit(recipe, place / f"{prefix}energy")
        if record["status"] != "finished":
            return record
        judged = judge_run(place / f"{prefix}energy", seed=seed)
        verdicts += named(f"{prefix}own", judged.record.verdicts)
        there = sees[1](grid.positions).astype(np.float32)
        truth = judged.ground.truth
        assert truth is not None  # it was written with the steps
        audited = audit(_port(judged, found.map_), there, truth=truth, states=len(there))
        verdicts += named(f"{prefix}ported", audited.verdicts)
        if not jitter:
            verdicts += _shuffled(judged, met, there, settings)
    return record | {"verdicts": verdicts}


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


def _shuffled(judged: JudgedEnergy, met: Meeting, there: np.ndarray, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """What maps between shuffled pairs come to."""
    truth, pairs = judged.ground.truth, settings["pairs"]
    assert truth is not None
    rng, controls = numpy_generator(settings["seed"], "shuffled pairs"), []
    for _ in range(settings["shuffles"]):
        shuffled = ProcrustesMap().fit(met.b[:pairs], met.a[rng.permutation(pairs)])
        controls.append(agreement(_matrix(_port(judged, shuffled.map_), there), truth))
    values = {
        f"shuffled_{name}": Estimate(float(column.mean()), float(column.min()), float(column.max()), len(column))
        for name, column in zip(("spearman", "reachability_auc"), np.transpose(controls), strict=True)
    }
    return inform(values, "of maps between shuffled pairs")


def _port(judged: JudgedEnergy, to_source: LinearMap) -> PortedEnergy:
    return PortedEnergy(judged.fitted.energy, to_source)


@torch.no_grad()
def _matrix(energy: PortedEnergy, points: np.ndarray) -> np.ndarray:
    rows = torch.as_tensor(points)
    return energy.all_pairs(rows, rows).double().numpy()


def agreement(energies: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Spearman's correlation over reachable pairs, and the AUC of unreachable ones; a state with itself is no pair."""
    others = ~np.eye(len(truth), dtype=bool)
    way = others & np.isfinite(truth)
    order = float(np.asarray(spearmanr(energies[way], truth[way]))[0])
    return order, reachability_errors(energies[others], truth[others], way[others]).auc
