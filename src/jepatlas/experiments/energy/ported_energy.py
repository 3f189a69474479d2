"""An energy learned on one agent's latents, used on another's: E₂(x, y) = E₁(Mx, My), with M a map between the two.

The axioms hold for any M. Accuracy is preserved if the agents differ by what M can undo: for LeJEPA agents of a
Gaussian world, a rotation. The error of the map matters more on a finer grid, so grids of several sizes fill the same
square. An energy is not defined away from its training latents, so it is learned on each grid without and with a jitter
of up to JITTER of a cell. The control is M fitted on shuffled pairs, also a rotation.

The agents are trained apart on the open plane, each through its own mixing. The grid lies in that plane, and the map is
fitted on states of the open plane: the second agent sees nothing of the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # its parts are loaded on first use
import torch

from jepatlas.alignment.maps import ProcrustesMap
from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.energy import PortedEnergy, graph_energies, reachability_errors
from jepatlas.energy.audit import audit
from jepatlas.experiments.alignment.latent_pairs import TrainedPair, paired_recipes, train_pair
from jepatlas.experiments.energy.learned_energies import BUDGETS, energy_recipe, fit_energy, named, quasimetric
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, Outcome, as_verdicts, count_met, exact_verdicts
from jepatlas.experiments.engine.seed_tables import cell, finished_only, mean_and_range
from jepatlas.recipes import EnergyRecipe, StepFile, WalkConfig
from jepatlas.workflows.energy import EnergyEvaluation, evaluate_run
from jepatlas.workflows.runs import load_objective
from jepatlas.worlds import OneWayGrid

__all__ = ["EXPERIMENT", "agreement", "run"]

SPREAD = 1.5  # half-width of the grid in standard deviations of the training states
TEST = 1000  # shared states that the map is scored on

Encode = Callable[[np.ndarray], np.ndarray]
NEAR = 0.02
SIZES = (8, 12)
JITTER = 0.3
PLAIN, MOVED = "", "-jitter"
ARMS = tuple(f"{size}{how}" for how in (PLAIN, MOVED) for size in SIZES)
ENERGIES = {"own": "agent 1", "ported": "agent 2, ported", "shuffled": "agent 2, shuffled pairs"}

CLAIM = Claim(
    statement="An energy carried to another agent through an invertible map of latents remains a quasimetric; between "
    "identified agents it loses hardly any accuracy.",
    source="The first part follows from Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric "
    "Spaces, Definition 1; the second is our reading of W = Q₂Q₁ᵀ in When Does LeJEPA Learn a World Model?",
    proven="the first part, for every map",
    assumed="for the second that both agents are at LeJEPA's optimum in a Gaussian world",
)


@dataclass(frozen=True)
class Plan:
    steps: int  # of the agents
    seeds: int
    pairs: int  # that the map is fitted on
    shuffles: int


SCALES = {"tiny": Plan(40, 1, 200, 2), "small": Plan(6000, 3, 2000, 20), "paper": Plan(20_000, 5, 20_000, 100)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan, arms = SCALES[scale], []
    for how in (PLAIN, MOVED):
        for size in SIZES:
            grid = to_plain(OneWayGrid(size, size, size // 2))
            arms.append({"name": f"{size}{how}", "grid": grid, "jitter": JITTER if how else 0.0})
    every = []
    for s in range(seed, seed + plan.seeds):
        settings = {
            "recipes": paired_recipes(scale, 2, plan.steps, s),
            "energy": to_plain(
                energy_recipe(scale, s, source=StepFile(), walk=WalkConfig())
            ),  # the trial adds the file
            "seed": s,
            "arms": arms,
            "walk": to_plain(BUDGETS[scale].walk),
            "pairs": plan.pairs,
            "shuffles": plan.shuffles,
        }
        every.append(Trial({"seed": s}, run, settings))
    return every


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train both agents; on every grid learn an energy on latents of the first one, and audit it on latents of both."""
    place, seed, pairs = Path(folder), settings["seed"], settings["pairs"]
    record, pair = train_pair(settings["recipes"], folder, pairs + TEST, seed)
    if pair is None:
        return record
    found = ProcrustesMap().fit(pair.b[:pairs], pair.a[:pairs])
    r2 = float(found.score(pair.b[pairs:], pair.a[pairs:]))
    verdicts = exact_verdicts({"map_r2": r2}, TEST, "of the map from agent 2 to agent 1")
    for arm in settings["arms"]:
        record, found_here = _arm(settings | arm, pair, found.map_, place)
        if record["status"] != "finished":
            return record
        verdicts += found_here
    return record | {"verdicts": verdicts}


def _arm(
    arm: dict[str, Any], pair: TrainedPair, to_source: LinearMap, place: Path
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """One grid, with or without jitter of the latents during training."""
    grid, walk = from_plain(OneWayGrid, arm["grid"]), from_plain(WalkConfig, arm["walk"])
    encoders = [_grid_encoder(place / f"agent-{number}", grid) for number in range(2)]
    steps = place / f"{arm['name']}.npz"
    _write_steps(steps, grid, walk, encoders[0], arm["seed"])
    recipe = from_plain(EnergyRecipe, arm["energy"])
    recipe = replace(recipe, source=StepFile(str(steps)), jitter=arm["jitter"])
    record = fit_energy(recipe, place / arm["name"])
    if record["status"] != "finished":
        return record, []
    judged, there = evaluate_run(place / arm["name"], seed=arm["seed"]), encoders[1](grid.positions).astype(np.float32)
    audited = audit(_port(judged, to_source), there, truth=judged.ground_truth.truth, states=len(there))
    own, ported, shuffled = (f"{arm['name']}_{name}" for name in ("own", "ported", "shuffled"))
    verdicts = named(own, judged.record.verdicts) + named(ported, audited.verdicts)
    return record, verdicts + _shuffled(shuffled, judged, pair, there, arm)


def _grid_encoder(folder: Path, grid: OneWayGrid) -> Encode:
    """Maps positions of cells to an agent's latents."""
    recipe, objective = load_objective(folder)

    def encode(positions: np.ndarray) -> np.ndarray:
        z = torch.as_tensor(SPREAD * grid.observe(positions), dtype=torch.float32)
        with torch.no_grad():
            return objective.encode(recipe.world.observe(z)).double().numpy()

    return encode


def _write_steps(path: Path, grid: OneWayGrid, walk: WalkConfig, encode: Encode, seed: int) -> None:
    """Walks in an agent's latents, as a step file."""
    walked = grid.walk(walk.episodes, walk.length, seed, walk.coverage)
    assert walked.z is not None and walked.z_next is not None  # worlds provide their states
    steps = {"x": encode(walked.z), "x_next": encode(walked.z_next), "cost": walked.cost, "episode": walked.episode}
    write_arrays(path, steps | {"points": encode(grid.positions), "truth": graph_energies(grid.graph)})


def _shuffled(
    name: str, judged: EnergyEvaluation, pair: TrainedPair, there: np.ndarray, settings: dict[str, Any]
) -> list[dict[str, Any]]:
    """The control: maps fitted on shuffled pairs."""
    truth, pairs = judged.ground_truth.truth, settings["pairs"]
    assert truth is not None
    rng, controls = numpy_generator(settings["seed"], "shuffled pairs"), []
    for _ in range(settings["shuffles"]):
        shuffled = ProcrustesMap().fit(pair.b[:pairs], pair.a[rng.permutation(pairs)])
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
    """Spearman's correlation over reachable pairs, and the AUC over both directions of one-way pairs."""
    reachable = ~np.eye(len(truth), dtype=bool) & np.isfinite(truth)
    order = float(np.asarray(scipy.stats.spearmanr(energies[reachable], truth[reachable]))[0])
    one = np.isfinite(truth) & np.isinf(truth.T)
    both = one | one.T
    return order, reachability_errors(energies[both], truth[both], reachable[both]).auc


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if all criteria are met, and in part if the axioms hold."""
    del scale
    finished = finished_only(results)
    kept = [quasimetric(r, f"{arm}_ported") for r in finished for arm in ARMS]
    near = [_lost(r, arm, "ported") <= NEAR for r in finished for arm in ARMS]
    far = [_lost(r, arm, "shuffled") > NEAR for r in finished for arm in ARMS]
    criteria = (
        Criterion.for_all("ported energies without a broken axiom", kept),
        Criterion.for_all(f"Spearman lost by porting ≤ {NEAR}", near),
        Criterion.for_all(f"Spearman lost with shuffled pairs > {NEAR}", far),
    )
    outcome: Outcome = "does not hold"
    if all(kept):
        outcome = "holds" if all(near) and all(far) else "holds in part"
    lost = [_mean_lost(finished, arm) for arm in ARMS]
    return Finding(
        outcome,
        f"Porting loses {min(lost):.3f} to {max(lost):.3f} of Spearman's correlation; {count_met(kept)} ported "
        "energies are quasimetrics.",
        criteria=criteria,
        verdicts=tuple(_verdict(finished, arm) for arm in ARMS),
        figures=(_figure(finished),),
        tables=(_table(results), _arm_table(finished)),
    )


def _title(arm: str) -> str:
    size = arm.removesuffix(MOVED)
    return f"{size}×{size}" + (" with jitter" if arm.endswith(MOVED) else "")


def _lost(result: Result, arm: str, name: str) -> float:
    """Loss of Spearman's correlation by porting; for shuffled pairs the mean over shuffles."""
    return result.value(f"{arm}_own_spearman") - result.value(f"{arm}_{name}_spearman")


def _mean_lost(results: Sequence[Result], arm: str) -> float:
    return float(np.mean([_lost(r, arm, "ported") for r in results]))


def _verdict(results: Sequence[Result], arm: str) -> Verdict:
    lost = [_lost(r, arm, "ported") for r in results]
    found = Estimate(float(np.mean(lost)), float(np.min(lost)), float(np.max(lost)), len(lost))
    return Verdict.judge(
        f"lost_{arm}",
        found,
        direction="lower",
        threshold=NEAR,
        null=float(np.mean([_lost(r, arm, "shuffled") for r in results])),
        good="The energy keeps its accuracy on the other agent.",
        bad="The energy loses accuracy on the other agent.",
    )


def _figure(results: Sequence[Result]) -> Curves:
    panels = []
    for how in (PLAIN, MOVED):
        series = []
        for name, title in ENERGIES.items():
            x = [size for size in SIZES for _ in results]
            y = [r.value(f"{size}{how}_{name}_spearman") for size in SIZES for r in results]
            series.append(Curve(title, x, y, points=True))
        panels.append(CurvePanel(series, "with jitter" if how else "without jitter"))
    return Curves(
        title="An energy on its own agent and on another, all pairs of agents",
        x_label="cells along a side",
        y_label="Spearman, reachable pairs",
        panels=panels,
        note="Shuffled: mean over shuffles.",
    )


def _arm_table(results: Sequence[Result]) -> Table:
    rows = []
    for arm in ARMS:
        scores = [cell(mean_and_range(results, f"{arm}_{name}_spearman")) for name in ("own", "ported")]
        near = [_lost(r, arm, "ported") <= NEAR for r in results]
        rows.append([_title(arm), *scores, count_met(near), cell(mean_and_range(results, f"{arm}_ported_one_way_auc"))])
    columns = ["grid", "Spearman, own", "Spearman, ported", f"lost ≤ {NEAR}", "one-way AUC, ported"]
    return Table("Means over pairs of agents [range]", columns, rows)


def _table(results: Sequence[Result]) -> Table:
    measures = {"spearman": "Spearman", "one_way_auc": "one-way AUC"}
    rows = []
    for r in results:
        for arm in ARMS:
            cells = [cell(r.estimate(f"{arm}_{name}_{measure}")) for measure in measures for name in ENERGIES]
            gap = cell(r.estimate(f"{arm}_ported_triangle"), 6)
            rows.append([r.at["seed"], r.status, _title(arm), cell(r.estimate("map_r2")), *cells, gap])
    columns = [f"{measure}, {title}" for measure in measures.values() for title in ENERGIES.values()]
    title = "Two agents and one energy; shuffled: mean [range] over shuffles"
    return Table(title, ["seed", "status", "grid", "R² of the map", *columns, "triangle gap, ported"], rows)


EXPERIMENT = Experiment("ported-energy", "An energy ported to another agent", CLAIM, trials, conclude)
