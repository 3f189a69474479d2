"""What one trial of `ported-energy` does: two agents, a one-way grid that both see, an energy that one of them learns.

The agents are trained apart, on the open plane, through mixings of their own. The grid lies in that plane, and the map
between their latents is fitted on states of the open plane: the second agent is shown nothing of the grid.
"""

from __future__ import annotations

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
    """Train both agents, learn the energy on the latents of the first, and audit it on those of both."""
    place, seed = Path(folder), settings["seed"]
    record, met = meet(settings["recipes"], folder, settings["pairs"] + TEST, seed)
    if met is None:
        return record
    grid, walk = from_plain(OneWayGrid, settings["grid"]), from_plain(WalkConfig, settings["walk"])
    sees = [_eyes(place / f"agent-{number}", grid) for number in range(2)]
    _write_steps(place / "steps.npz", grid, walk, sees[0], seed)
    recipe = replace(from_plain(EnergyRecipe, settings["energy"]), source=StepFile(str(place / "steps.npz")))
    record = fit(recipe, place / "energy")
    if record["status"] != "finished":
        return record
    judged = judge_run(place / "energy", seed=seed)
    ported = _ported(judged, met, sees[1](grid.positions), settings)
    return record | {"verdicts": named("own", judged.record.verdicts) + ported}


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


def _ported(judged: JudgedEnergy, met: Meeting, there: np.ndarray, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The audit on the second agent's latents, the map's R², and what maps between shuffled pairs come to."""
    truth, points, pairs = judged.ground.truth, there.astype(np.float32), settings["pairs"]
    assert truth is not None  # it was written with the steps
    found = ProcrustesMap().fit(met.b[:pairs], met.a[:pairs])
    audited = audit(_port(judged, found.map_), points, truth=truth, states=len(points))
    rng, controls = numpy_generator(settings["seed"], "shuffled pairs"), []
    for _ in range(settings["shuffles"]):
        shuffled = ProcrustesMap().fit(met.b[:pairs], met.a[rng.permutation(pairs)])
        controls.append(agreement(_matrix(_port(judged, shuffled.map_), points), truth))
    values = {
        f"shuffled_{name}": Estimate(float(column.mean()), float(column.min()), float(column.max()), len(column))
        for name, column in zip(("spearman", "reachability_auc"), np.transpose(controls), strict=True)
    }
    values["map_r2"] = exactly(float(found.score(met.b[pairs:], met.a[pairs:])), TEST)
    return named("ported", audited.verdicts) + inform(values, "of maps between the agents")


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
