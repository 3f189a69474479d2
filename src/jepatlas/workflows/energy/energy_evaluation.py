"""Evaluation of a learned energy: audit, calibration against the truth, reachability errors and landscapes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from jepatlas.core.figures import Landscape
from jepatlas.core.graphs import Graph
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record, Verdict
from jepatlas.energy import LeastAction, discounted, reachability_errors, with_unreachable
from jepatlas.energy.audit import Audit, audit
from jepatlas.results import Result
from jepatlas.workflows.energy.energy_figures import audit_figures, choose_goal, grid_of, landscape
from jepatlas.workflows.energy.energy_files import save_energy
from jepatlas.workflows.energy.fitted_energy import FittedEnergy, load_fitted
from jepatlas.workflows.energy.ground_truth import GroundTruth, ground_truth_of
from jepatlas.worlds import GymTable, OneWayGrid

__all__ = ["EnergyEvaluation", "evaluate_fitted", "evaluate_run", "greedy_path"]

MISSED_ALLOWED = 0.05


@dataclass(frozen=True, repr=False)
class EnergyEvaluation(Result):
    """The evaluation of a learned energy, and the data it was made from."""

    audit: Audit
    fitted: FittedEnergy
    ground_truth: GroundTruth
    energies: np.ndarray  # (n, n) between the states of the ground truth

    record_name: ClassVar[str] = "energy"

    def save(self, folder: Path | str) -> Path:
        """Write the record, and the energy as `energy.safetensors`."""
        folder = super().save(folder)
        save_energy(self.fitted.saved(), folder / "energy.safetensors")
        return folder


def evaluate_run(
    folder: Path, *, seed: int = 0, out: Path | None = None, tolerance: float | None = None
) -> EnergyEvaluation:
    """Evaluate the energy of a run. Writes `records/energy.json` and the energy itself, `energy.safetensors`."""
    fitted = load_fitted(folder)
    ground_truth = ground_truth_of(fitted.recipe, seed)
    title = f"Energy of {folder.name}"
    result = evaluate_fitted(fitted, ground_truth, title=title, seed=seed, tolerance=tolerance)
    result.save(out or folder)
    return result


def evaluate_fitted(
    fitted: FittedEnergy, ground_truth: GroundTruth, *, title: str, seed: int = 0, tolerance: float | None = None
) -> EnergyEvaluation:
    """Evaluate a fitted energy at the states of a ground truth."""
    points = fitted.latents(ground_truth.x).astype(np.float32)
    truth = _comparable_truth(fitted, ground_truth.truth)
    found = audit(fitted.energy, points, truth=truth, states=len(points), tolerance=tolerance, seed=seed)
    found = replace(found, verdicts=tuple(_with_discount_advice(fitted, verdict) for verdict in found.verdicts))
    energies = fitted.matrix(ground_truth.x)
    arrays, figures = _landscapes(fitted, energies, ground_truth)
    record = Record(
        title,
        _summary(fitted, ground_truth, found, energies),
        provenance(seed) | {"trained with seed": fitted.recipe.seed, "states": len(points)},
        (*found.verdicts, *_step_verdicts(fitted)),
        (*figures, *audit_figures(found, fitted.recipe.energy_name)),
        arrays=arrays,
    )
    return EnergyEvaluation(record, found, fitted, ground_truth, energies)


def greedy_path(graph: Graph, to_goal: np.ndarray, start: int, goal: int) -> np.ndarray:
    """The states visited by always taking the step with the least cost + E(next state, goal).

    It ends at the goal, at a dead end, or before a state would repeat. With the exact energy it is a cheapest path.

    >>> chain = Graph(3, np.array([0, 1]), np.array([1, 2]), np.ones(2))
    >>> greedy_path(chain, np.array([2.0, 1.0, 0.0]), 0, 2).tolist()
    [0, 1, 2]
    """
    path = [start]
    while path[-1] != goal:
        edges = np.flatnonzero(graph.source == path[-1])
        if not len(edges):
            break
        best = edges[np.argmin(graph.cost[edges] + to_goal[graph.target[edges]])]
        if int(graph.target[best]) in path:
            break
        path.append(int(graph.target[best]))
    return np.array(path)


def _comparable_truth(fitted: FittedEnergy, truth: np.ndarray | None) -> np.ndarray | None:
    """The truth, discounted if the energy is: undiscounting the energy could violate the triangle inequality."""
    if truth is None or fitted.gamma is None:
        return truth
    unit = fitted.data.unit
    return np.where(np.isfinite(truth), unit * discounted(truth / unit, fitted.gamma), np.inf)


def _with_discount_advice(fitted: FittedEnergy, verdict: Verdict) -> Verdict:
    """Discounted values are not lengths of steps, so they cannot be calibrated on steps."""
    if fitted.gamma is None or verdict.name != "calibration_error" or verdict.passed is not False:
        return verdict
    return replace(
        verdict,
        advice=f"The energy and the truth are both discounted by γ = {fitted.gamma:g} per step. Train longer, or learn "
        "undiscounted energies with --learning qrl. Discounted energies cannot be calibrated on steps.",
    )


def _step_verdicts(fitted: FittedEnergy) -> list[Verdict]:
    """Verdicts from observed steps: `step_scale`, the calibration factor, and `ways_missed`, the reachability error."""
    if isinstance(fitted.energy, LeastAction):
        return list(fitted.energy.verdicts)
    verdicts = []
    if fitted.scale is not None:
        verdicts.append(
            Verdict.judge(
                "step_scale",
                fitted.scale,
                direction="lower",
                null=fitted.data.unit,
                good="The factor that makes the mean energy of held-out steps equal to their mean cost. It is applied.",
            )
        )
    if np.isfinite(fitted.threshold):
        called = f"Pairs above {fitted.threshold:.3g} are called unreachable."
        reachable = "reachable pairs of held-out episodes"
        if fitted.missed.value <= MISSED_ALLOWED:
            bad = f"{called} Few {reachable} are, but there are too few episodes to be sure."
        else:
            bad = (
                f"{called} Too many {reachable} are, so the decision is unreliable. Train longer, or increase "
                "--learning.offset."
            )
        verdicts.append(
            Verdict.judge(
                "ways_missed",
                fitted.missed,
                direction="lower",
                threshold=MISSED_ALLOWED,
                good=f"{called} Few {reachable} are.",
                bad=bad,
            )
        )
    return verdicts


def _summary(fitted: FittedEnergy, ground_truth: GroundTruth, found: Audit, energies: np.ndarray) -> str:
    sentences = [f"On {len(found.states)} states the {fitted.recipe.energy_name} energy is {found.kind}."]
    if "spearman" in found:
        reference = "exact energies" if fitted.gamma is None else "discounted exact energies"
        sentences.append(
            f"Spearman correlation with the {reference}: {found['spearman'].value:.3f}; median ratio "
            f"{found['median_ratio'].value:.3f} (90% of pairs: {found['ratio_5'].value:.3f} to "
            f"{found['ratio_95'].value:.3f})."
        )
    if "one_way_auc" in found:
        sentences.append(
            f"AUC on one-way pairs: {found['one_way_auc'].value:.3f} (0.5 for a symmetric energy); "
            f"{found['one_way_order'].value:.1%} of them have the right direction."
        )
    return " ".join([*sentences, _reachability_sentence(fitted, ground_truth, energies)])


def _reachability_sentence(fitted: FittedEnergy, ground_truth: GroundTruth, energies: np.ndarray) -> str:
    """The share of pairs called unreachable after transitive closure, and its errors."""
    if fitted.recipe.computed:
        return _observed_ways_sentence(ground_truth, energies)
    if not np.isfinite(fitted.threshold):
        return "The energies have no gap that separates unreachable pairs, so no pair is called unreachable."
    others = ~np.eye(len(energies), dtype=bool)
    reachable = np.isfinite(with_unreachable(energies, fitted.threshold))[others]
    sentence = f"{1 - reachable.mean():.1%} of the pairs are called unreachable (threshold {fitted.threshold:.3g})"
    if ground_truth.truth is None:
        return f"{sentence}."
    errors = reachability_errors(energies[others], ground_truth.truth[others], reachable)
    return (
        f"{sentence}: {errors.missed:.1%} of the reachable ones, and all but {errors.imagined:.1%} of the unreachable "
        "ones."
    )


def _observed_ways_sentence(ground_truth: GroundTruth, energies: np.ndarray) -> str:
    """The share of pairs without an observed way, and how many of them have one."""
    others = ~np.eye(len(energies), dtype=bool)
    reachable = np.isfinite(energies)
    sentence = f"No way was observed between {1 - reachable[others].mean():.1%} of the pairs"
    if ground_truth.truth is None:
        return f"{sentence}."
    errors = reachability_errors(energies[others], ground_truth.truth[others], reachable[others])
    return f"{sentence}: {errors.missed:.1%} of the reachable ones, and all but {errors.imagined:.1%} of the others."


def _landscapes(
    fitted: FittedEnergy, energies: np.ndarray, ground_truth: GroundTruth
) -> tuple[dict[str, np.ndarray], list[Landscape]]:
    """Learned and exact energies to and from a goal, if states are cells of a plane; unreachable pairs are +∞."""
    positions = ground_truth.positions
    if positions is None or not ground_truth.gridded:
        return {}, []
    arrays: dict[str, np.ndarray] = {}
    panels = []
    paths = {}
    goal = choose_goal(energies if ground_truth.truth is None else ground_truth.truth)
    for name, matrix in (("learned", with_unreachable(energies, fitted.threshold)), ("exact", ground_truth.truth)):
        if matrix is None:
            continue
        for direction, values in (("to", matrix[:, goal]), ("from", matrix[goal])):
            arrays[f"{name}_{direction}"] = grid_of(positions, values).astype(np.float32)
            panels.append((f"{name}: {direction} the goal", f"{name}_{direction}"))
        path = _path_to_goal(fitted, ground_truth, matrix[:, goal], goal)
        if path is not None:
            arrays[f"{name}_way"] = path
            paths[f"{name}_to"] = [("greedy path", f"{name}_way")]
    row, column = positions[goal]
    return arrays, [landscape("Energies to and from a goal", panels, {}, (column, row), paths)]


def _path_to_goal(fitted: FittedEnergy, ground_truth: GroundTruth, to_goal: np.ndarray, goal: int) -> np.ndarray | None:
    """The greedy path from the farthest state, (k, 2) column before row; None if not all states of a grid are known."""
    world = fitted.recipe.source
    if not isinstance(world, OneWayGrid | GymTable) or ground_truth.truth is None:
        return None
    if len(world.positions) != len(ground_truth.x):
        return None
    exact = ground_truth.truth[:, goal]
    start = int(np.where(np.isfinite(exact), exact, -1).argmax())
    return world.positions[greedy_path(world.graph, to_goal, start, goal)][:, ::-1]
