"""A small one-way grid, recipes of runs that take a second, and energies with random weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.arrays import write_arrays
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.seeding import forked_rng
from jepatlas.energy import IQEConfig, graph_energies
from jepatlas.nn import MLPConfig
from jepatlas.recipes import EnergyRecipe, WalkConfig
from jepatlas.training import ConstantSchedule
from jepatlas.workflows.energy import EnergySpec, SavedEnergy
from jepatlas.worlds import OneWayGrid

__all__ = ["GRID", "TRUTH", "WORDS", "linear_map", "recipe", "saved", "step_arrays", "write_steps"]

GRID = OneWayGrid(4, 4, wall=2)
TRUTH = graph_energies(GRID.graph)
SMALL = MLPConfig(width=16, depth=1)
WORDS = [
    "--steps",
    "20",
    "--batch-size",
    "32",
    "--schedule",
    "constant",
    "--width",
    "16",
    "--embedding.width",
    "16",
    "--embedding.depth",
    "1",
    "--head.chunks",
    "4",
]


def recipe(steps: int = 60, **changes: Any) -> EnergyRecipe:
    """An energy on the small grid."""
    base = EnergyRecipe(
        source=GRID, walk=WalkConfig(episodes=60, length=12), embedding=SMALL, width=32, head=IQEConfig(chunks=8)
    )
    training = replace(base.training, steps=steps, batch_size=64, lr=1e-2, schedule=ConstantSchedule())
    return replace(base, training=training, **changes)


def saved(dim: int = 2, seed: int = 0, threshold: float = 3.0, **changes: Any) -> SavedEnergy:
    """An untrained energy with a scale other than 1."""
    spec = replace(EnergySpec(dim, SMALL, 32, head=IQEConfig(chunks=8)), **changes)
    with forked_rng(seed, "weights"):
        energy = spec.build().eval().requires_grad_(False)
    energy.scale.fill_(2.5)
    return SavedEnergy(energy, spec, threshold)


def linear_map(d_out: int, d_in: int, seed: int = 0) -> LinearMap:
    """A random map with means and scales, like a standardised fit."""
    rng = np.random.default_rng(seed)
    weight, x_mean, y_mean = rng.standard_normal((d_out, d_in)), rng.standard_normal(d_in), rng.standard_normal(d_out)
    return LinearMap(weight, x_mean, y_mean, rng.uniform(0.5, 2, d_in), rng.uniform(0.5, 2, d_out))


def step_arrays(**changes: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a file with random walks on the small grid."""
    walk = GRID.walk(30, 10, seed=0)
    return {"x": walk.x, "x_next": walk.x_next, "cost": walk.cost, "episode": walk.episode, **changes}


def write_steps(path: Path | str, **changes: np.ndarray) -> Path:
    write_arrays(path, step_arrays(**changes))
    return Path(path)
