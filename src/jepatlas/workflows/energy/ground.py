"""The ground truth of a world: its states, what is seen of them, and the exact energies between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.seeding import numpy_generator
from jepatlas.energy import graph_energies
from jepatlas.energy.audit.sample import true_energies
from jepatlas.recipes import EnergyRecipe, EnergyWorld, StepFile, apply_mixing
from jepatlas.workflows.energy.current_truth import current_energies
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
    chosen = _some(len(world.positions), seed)
    z = world.positions[chosen]
    truth = graph_energies(world.graph, sources=chosen, goals=chosen)
    return Ground(_seen(world.observe(z), mixing), truth, z if z.shape[1] == 2 else None)


def _some(count: int, seed: int) -> np.ndarray:
    """All states, or so many of them as are judged, in order."""
    return np.sort(numpy_generator(seed, "ground").permutation(count)[:STATES])


def _seen(x: np.ndarray, mixing: AnyMixing | None) -> np.ndarray:
    return x if mixing is None else apply_mixing(mixing, x)


def _file_ground(source: StepFile, mixing: AnyMixing | None) -> Ground:
    arrays = source.read()
    x = np.asarray(arrays["x"], float)
    x = x[:, None] if x.ndim == 1 else x
    try:
        points, truth = _points(arrays, x), _truth(arrays)
    except InputError as error:
        raise InputError(f"{source.path}: {error}") from error
    return Ground(_seen(points, mixing), truth)


def _points(arrays: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """Those of a file; where it has none, the distinct states that steps begin in."""
    if "points" not in arrays:
        if "truth" in arrays:
            raise InputError("there is 'truth' but no 'points': the states that its rows and columns are.")
        points = np.unique(x, axis=0)
        points = points[_some(len(points), 0)]
    else:
        points = arrays["points"]
        points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2 or points.shape[1] != x.shape[1]:
            raise InputError(f"'points' must be (n, {x.shape[1]}), as x is, but it is {points.shape}.")
        check_finite("points", points)
    if len(points) < 2:
        raise InputError(f"an energy is judged between at least 2 states, but there is {len(points)} to judge it at.")
    return points.astype(float)


def _truth(arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """One energy for each pair of points, +∞ where there is no way."""
    if "truth" not in arrays:
        return None
    truth, count = true_energies(arrays["truth"]), len(arrays["points"])
    if len(truth) != count:
        raise InputError(f"'truth' is {truth.shape}, but {count} points have {count}² energies.")
    return truth
