"""Learn an energy on one agent's latents of a grid, and audit it on another agent's latents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from jepatlas.alignment.maps import ProcrustesMap
from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import spearman
from jepatlas.energy import PortedEnergy, graph_energies, reachability_errors
from jepatlas.energy.audit import audit
from jepatlas.experiments.alignment.latent_pairs import TrainedPair, train_pair
from jepatlas.experiments.energy.learned_energies import fit_energy, named
from jepatlas.experiments.engine.experiment import Plain
from jepatlas.experiments.engine.rules import as_verdicts, exact_verdicts
from jepatlas.experiments.engine.seed_tables import mean_and_range_of
from jepatlas.recipes import EnergyRecipe, StepFile, WalkConfig
from jepatlas.workflows.energy import EnergyEvaluation, evaluate_run
from jepatlas.workflows.energy.fitted_energy import all_pairs
from jepatlas.workflows.runs import load_objective
from jepatlas.worlds import OneWayGrid

__all__ = ["agreement", "run"]

TEST = 1000  # shared states that the map is scored on
SPREAD = 1.5  # half-width of the grid in standard deviations of the training states

Encode = Callable[[np.ndarray], np.ndarray]


def run(settings: Plain, folder: str) -> Plain:
    """Train both agents; on every grid learn an energy on latents of the first one, and audit it on latents of both."""
    pairs = settings["pairs"]
    record, pair = train_pair(settings["recipes"], folder, pairs + TEST, settings["seed"])
    if pair is None:
        return record
    found = ProcrustesMap().fit(pair.b[:pairs], pair.a[:pairs])
    r2 = float(found.score(pair.b[pairs:], pair.a[pairs:]))
    verdicts = exact_verdicts({"map_r2": r2}, TEST, "of the map from agent 2 to agent 1")
    for arm in settings["arms"]:
        record, found_here = _arm(settings | arm, pair, found.map_, Path(folder))
        if record["status"] != "finished":
            return record
        verdicts += found_here
    return record | {"verdicts": verdicts}


def _arm(arm: Plain, pair: TrainedPair, to_source: LinearMap, place: Path) -> tuple[Plain, list[Plain]]:
    """One grid, with or without jitter of the latents during training."""
    name = arm["name"]
    grid = from_plain(OneWayGrid, arm["grid"])
    encoders = [_grid_encoder(place / f"agent-{number}", grid) for number in range(2)]
    steps = place / f"{name}.npz"
    _write_walks(steps, grid, from_plain(WalkConfig, arm["walk"]), encoders[0], arm["seed"])
    recipe = from_plain(EnergyRecipe, arm["energy"])
    recipe = replace(recipe, source=StepFile(str(steps)), jitter=arm["jitter"])
    record = fit_energy(recipe, place / name)
    if record["status"] != "finished":
        return record, []
    judged = evaluate_run(place / name, seed=arm["seed"])
    there = encoders[1](grid.positions).astype(np.float32)
    ported = PortedEnergy(judged.fitted.energy, to_source)
    audited = audit(ported, there, truth=judged.ground_truth.truth, states=len(there))
    verdicts = named(f"{name}_own", judged.record.verdicts) + named(f"{name}_ported", audited.verdicts)
    return record, verdicts + _shuffled(judged, pair, there, arm)


def _shuffled(judged: EnergyEvaluation, pair: TrainedPair, there: np.ndarray, arm: Plain) -> list[Plain]:
    """The control: maps fitted on shuffled pairs."""
    pairs = arm["pairs"]
    truth = judged.ground_truth.truth
    assert truth is not None
    rng = numpy_generator(arm["seed"], "shuffled pairs")
    orders = []
    aucs = []
    for _ in range(arm["shuffles"]):
        shuffled = ProcrustesMap().fit(pair.b[:pairs], pair.a[rng.permutation(pairs)])
        order, auc = agreement(all_pairs(PortedEnergy(judged.fitted.energy, shuffled.map_), there), truth)
        orders.append(order)
        aucs.append(auc)
    values = {
        f"{arm['name']}_shuffled_spearman": mean_and_range_of(orders),
        f"{arm['name']}_shuffled_one_way_auc": mean_and_range_of(aucs),
    }
    return as_verdicts(values, "of maps between shuffled pairs")


def _grid_encoder(folder: Path, grid: OneWayGrid) -> Encode:
    """The map from positions of cells to the latents of the agent in a run folder."""
    recipe, objective = load_objective(folder)

    def encode(positions: np.ndarray) -> np.ndarray:
        z = torch.as_tensor(SPREAD * grid.observe(positions), dtype=torch.float32)
        with torch.no_grad():
            return objective.encode(recipe.world.observe(z)).double().numpy()

    return encode


def _write_walks(path: Path, grid: OneWayGrid, walk: WalkConfig, encode: Encode, seed: int) -> None:
    """Walks on the grid in an agent's latents, as a step file with the exact energies of all cells."""
    walked = grid.walk(walk.episodes, walk.length, seed, walk.coverage)
    assert walked.z is not None and walked.z_next is not None  # worlds provide their states
    steps = {"x": encode(walked.z), "x_next": encode(walked.z_next), "cost": walked.cost, "episode": walked.episode}
    write_arrays(path, steps | {"points": encode(grid.positions), "truth": graph_energies(grid.graph)})


def agreement(energies: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Spearman's correlation over reachable pairs, and the AUC over both directions of one-way pairs."""
    reachable = ~np.eye(len(truth), dtype=bool) & np.isfinite(truth)
    order = spearman(energies[reachable], truth[reachable]).value
    one_way = np.isfinite(truth) & np.isinf(truth.T)
    both = one_way | one_way.T
    return order, reachability_errors(energies[both], truth[both], reachable[both]).auc
