"""A one-way grid in the latents of a trained agent, and the accuracy of energies on it.

The grid lies in the plane of the agent's training states.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from jepatlas.core.arrays import write_arrays
from jepatlas.core.stats import spearman
from jepatlas.energy import graph_energies, reachability_errors
from jepatlas.recipes import WalkConfig
from jepatlas.workflows.runs import load_objective
from jepatlas.worlds import OneWayGrid

__all__ = ["agreement", "grid_encoder", "write_walks"]

SPREAD = 1.5  # half-width of the grid in standard deviations of the training states

Encode = Callable[[np.ndarray], np.ndarray]


def grid_encoder(folder: Path, grid: OneWayGrid) -> Encode:
    """The map from positions of cells to the latents of the agent in a run folder."""
    recipe, objective = load_objective(folder)

    def encode(positions: np.ndarray) -> np.ndarray:
        z = torch.as_tensor(SPREAD * grid.observe(positions), dtype=torch.float32)
        with torch.no_grad():
            return objective.encode(recipe.world.observe(z)).double().numpy()

    return encode


def write_walks(path: Path, grid: OneWayGrid, walk: WalkConfig, encode: Encode, seed: int) -> None:
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
