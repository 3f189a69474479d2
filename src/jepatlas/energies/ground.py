"""The ground truth of a world: its states, what is seen of them, and the exact energies between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jepatlas.base.errors import InputError
from jepatlas.energies.current_truth import current_energies
from jepatlas.energy import graph_energies
from jepatlas.recipes import EnergyRecipe, EnergyWorld, StepFile, mixed
from jepatlas.worlds import AnyMixing, CurrentWorld

__all__ = ["Ground", "ground_of", "world_ground"]

STATES = 400  # of a large world: all pairs of them are judged
PLACES = 64  # of a world without cells, each of which is a solution of its own


@dataclass(frozen=True)
class Ground:
    """States to judge an energy at; `truth` is None where nobody knows it."""

    x: np.ndarray  # (n, p) observations
    truth: np.ndarray | None = None  # (n, n), +∞ where there is no way
    positions: np.ndarray | None = None  # (n, 2) where the states lie in a plane

    @property
    def unreachable(self) -> float:
        """Share of ordered pairs without a way."""
        assert self.truth is not None
        return float(np.isinf(self.truth).sum() / (len(self.truth) * (len(self.truth) - 1)))

    @cached_property
    def gridded(self) -> bool:
        """Whether positions are cells of a grid, that can be drawn as one."""
        return self.positions is not None and bool((self.positions == self.positions.round()).all())


def ground_of(recipe: EnergyRecipe, seed: int = 0) -> Ground:
    """States of what an energy was learned from: a world's own, or the `points` (and their `truth`) of a file."""
    if isinstance(recipe.source, StepFile):
        return _file_ground(recipe.source, recipe.mixing)
    return world_ground(recipe.source, recipe.mixing, seed)


def world_ground(world: EnergyWorld, mixing: AnyMixing | None = None, seed: int = 0) -> Ground:
    if isinstance(world, CurrentWorld):
        z = world.states(PLACES, seed)
        return Ground(_seen(world.observe(z), mixing), current_energies(world, z), z)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(world.positions))[:STATES])
    z = world.positions[chosen]
    truth = graph_energies(world.graph, sources=chosen, goals=chosen)
    return Ground(_seen(world.observe(z), mixing), truth, z if z.shape[1] == 2 else None)


def _seen(x: np.ndarray, mixing: AnyMixing | None) -> np.ndarray:
    return x if mixing is None else mixed(mixing, x)


def _file_ground(source: StepFile, mixing: AnyMixing | None) -> Ground:
    arrays = source.read()
    x = np.asarray(arrays["x"], float)
    x = x[:, None] if x.ndim == 1 else x
    points = arrays.get("points")
    if points is None:
        if "truth" in arrays:
            raise InputError(f"{source.path} has 'truth' but no 'points': the states that its rows and columns are.")
        distinct = np.unique(x, axis=0)
        chosen = np.sort(np.random.default_rng(0).permutation(len(distinct))[:STATES])
        return Ground(_seen(distinct[chosen], mixing))
    points = np.asarray(points, float)
    if points.ndim != 2 or points.shape[1] != x.shape[1]:
        raise InputError(f"{source.path}: 'points' must be (n, {x.shape[1]}), as x is, but it is {points.shape}.")
    truth = arrays.get("truth")
    if truth is not None and truth.shape != (len(points), len(points)):
        raise InputError(
            f"{source.path}: 'truth' is {truth.shape}, but {len(points)} points have {len(points)}² energies."
        )
    return Ground(_seen(points, mixing), truth)
