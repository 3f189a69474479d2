"""What one trial of `registration-energies` does: paths of maps against their closed form, and landmarks both ways.

A map of [0, 1] is given by its inner knots. Where these move at velocities u, which is straight between them, the
effort is the length of the velocity's slope,

    L(φ, u)² = ∫u_x² dx = Σ (Δu)² / Δφ        +∞ where knots have met

and it is the room's own descent on paths that minimises it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.records import Estimate
from jepatlas.energy.action import minimal_paths
from jepatlas.energy.audit import asymmetry_index, closure
from jepatlas.energy.audit.triangle import relative_gap
from jepatlas.energy.exact import LandmarkEffort, interval_energies, landmark_energies, strain_energies
from jepatlas.experiments.energy.exact_worlds import random_maps
from jepatlas.experiments.energy.solved_worlds import random_sets, solver_slack
from jepatlas.experiments.engine.experiment import as_verdicts

__all__ = ["EFFORTS", "SEGMENTS", "IntervalEffort", "run"]

SEGMENTS = (4, 8, 16)  # of paths of maps
EFFORTS = {
    "plain": LandmarkEffort(0.7),
    "even": LandmarkEffort(0.7, expand=2.0, contract=2.0),
    "uneven": LandmarkEffort(0.7, expand=0.5, contract=4.0),
}
SQUEEZE = 4.0  # price of squeezing over that of stretching


@dataclass(frozen=True)
class IntervalEffort:
    """The effort of moving k inner knots of a map; Σ(Δu)² is at least its least eigenvalue times ‖u‖², and Δφ ≤ 1."""

    knots: int

    @property
    def floor(self) -> float:
        return 2 * float(np.sin(np.pi / (2 * (self.knots + 1))))

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        widths = torch.nn.functional.pad(x, (1, 1)).diff(dim=-1) + _last(x)
        slopes = torch.nn.functional.pad(v, (1, 1)).diff(dim=-1)
        inside = (widths > 0).all(-1)
        squares = (slopes.square() / torch.where(widths > 0, widths, 1.0)).sum(-1)
        moving = squares > 0
        root = torch.where(moving, squares, 1.0).sqrt() * moving
        return torch.where(inside, root, torch.inf)


def _last(x: Tensor) -> Tensor:
    """One for the last width, which is up to 1 and not to 0."""
    return torch.nn.functional.one_hot(torch.tensor(x.shape[-1]), x.shape[-1] + 1).to(x)


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    del folder
    found = _paths(settings) | _closed_forms(settings)
    there_and_back = dict[str, list[list[float]]]()
    sets = random_sets(settings["sets"], settings["seed"])
    for name, effort in EFFORTS.items():
        coarse, fine = (landmark_energies(sets, effort, settings["segments"] // part) for part in (2, 1))
        found |= {f"{key}_{name}": value for key, value in _judged(fine).items()}
        found[f"slack_{name}"] = solver_slack(coarse, fine)
        row, column = np.triu_indices(len(fine), 1)
        there_and_back[name] = np.stack([fine[row, column], fine[column, row]], 1).tolist()
    estimates = {name: Estimate(value, value, value, 1) for name, value in found.items()}
    return {"status": "finished", "verdicts": as_verdicts(estimates, ""), "there_and_back": there_and_back}


def _paths(settings: dict[str, Any]) -> dict[str, float]:
    """Of random pairs of maps the largest relative error of paths by descent, and how much their way back differs."""
    maps = random_maps(2 * settings["pairs"], settings["seed"], settings["pieces"])
    start, goal = maps[::2], maps[1::2]
    exact = np.diag(interval_energies(start, goal))
    effort, found = IntervalEffort(settings["pieces"] - 1), dict[str, float]()
    for segments in SEGMENTS:
        there, back = (
            np.array([path.action for path in minimal_paths(x[:, 1:-1], y[:, 1:-1], effort, steps=segments)])
            for x, y in ((start, goal), (goal, start))
        )
        found[f"error_{segments}"] = float(np.abs(there / exact - 1).max())
        found[f"asymmetry_path_{segments}"] = float((np.abs(there - back) / (there + back)).max())
    return found


def _closed_forms(settings: dict[str, Any]) -> dict[str, float]:
    maps = random_maps(settings["maps"], settings["seed"], settings["pieces"])
    energies = {"interval": interval_energies(maps, maps), "strain": strain_energies(maps, maps, 1.0, SQUEEZE)}
    return {f"{key}_{name}": value for name, matrix in energies.items() for key, value in _judged(matrix).items()}


def _judged(matrix: np.ndarray) -> dict[str, float]:
    """The index of asymmetry, and the largest gap that any way through other states leaves."""
    others = ~np.eye(len(matrix), dtype=bool)
    gaps = relative_gap(matrix, closure(matrix), float(np.median(matrix[others])))
    return {"asymmetry": float(asymmetry_index(matrix)[others].mean()), "triangle": float(gaps.max())}
