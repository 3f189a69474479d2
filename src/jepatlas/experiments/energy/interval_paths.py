"""Numerical paths of least action between maps of the interval, compared with their closed form.

A map of [0, 1] is given by its inner knots. If these move at velocities u, linear between them, the effort is the
length of the slope of the velocity,

    L(φ, u)² = ∫u_x² dx = Σ (Δu)² / Δφ        +∞ if knots coincide
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.energy.action import minimal_paths
from jepatlas.energy.exact import interval_energies
from jepatlas.experiments.energy.exact_worlds import random_maps

__all__ = ["SEGMENTS", "IntervalEffort", "path_errors"]

SEGMENTS = (4, 8, 16)  # of a path


@dataclass(frozen=True)
class IntervalEffort:
    """The effort of moving k inner knots of a map; Σ(Δu)² ≥ λ_min ‖u‖², and Δφ ≤ 1."""

    knots: int

    @property
    def floor(self) -> float:
        return 2 * float(np.sin(np.pi / (2 * (self.knots + 1))))

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        widths = torch.nn.functional.pad(x, (1, 1)).diff(dim=-1) + _end_of_interval(x)
        slopes = torch.nn.functional.pad(v, (1, 1)).diff(dim=-1)
        inside = (widths > 0).all(-1)
        squares = (slopes.square() / torch.where(widths > 0, widths, 1.0)).sum(-1)
        moving = squares > 0
        root = torch.where(moving, squares, 1.0).sqrt() * moving
        return torch.where(inside, root, torch.inf)


def _end_of_interval(x: Tensor) -> Tensor:
    """One in the place of the last width, which ends at 1 instead of 0."""
    return torch.nn.functional.one_hot(torch.tensor(x.shape[-1]), x.shape[-1] + 1).to(x)


def path_errors(settings: dict[str, Any]) -> dict[str, float]:
    """Largest relative error of numerical paths between random maps, and largest asymmetry of these paths."""
    maps = random_maps(2 * settings["pairs"], settings["seed"], settings["pieces"])
    start = maps[::2]
    goal = maps[1::2]
    exact = np.diag(interval_energies(start, goal))
    effort = IntervalEffort(settings["pieces"] - 1)
    found: dict[str, float] = {}
    for segments in SEGMENTS:
        there = _actions(start, goal, effort, segments)
        back = _actions(goal, start, effort, segments)
        found[f"error_{segments}"] = float(np.abs(there / exact - 1).max())
        found[f"asymmetry_path_{segments}"] = float((np.abs(there - back) / (there + back)).max())
    return found


def _actions(start: np.ndarray, goal: np.ndarray, effort: IntervalEffort, segments: int) -> np.ndarray:
    """Actions of numerical paths; the ends of the maps do not move."""
    paths = minimal_paths(start[:, 1:-1], goal[:, 1:-1], effort, steps=segments)
    return np.array([path.action for path in paths])
