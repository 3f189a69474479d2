"""Ground truth of an energy: states of a world or file, their observations, and the exact energies between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.seeding import numpy_generator
from jepatlas.energy.audit.sample import true_energies
from jepatlas.energy.exact import Medium, energies_from, graph_energies, zermelo
from jepatlas.recipes import EnergyRecipe, EnergyWorld, StepFile, apply_mixing
from jepatlas.worlds import AnyMixing, ConstantCurrent, CurrentWorld

__all__ = [
    "GroundTruth",
    "closed_form_energies",
    "current_energies",
    "ground_truth_of",
    "medium_of",
    "world_ground_truth",
]

STATES = 400  # evaluated in large worlds
PLACES = 64  # evaluated in continuous worlds, each by its own solution
RESOLUTION = 101  # nodes per side for currents: the error is far below that of learning


@dataclass(frozen=True)
class GroundTruth:
    """States at which an energy is evaluated; `truth` is None if it is unknown."""

    x: np.ndarray  # (n, p) observations
    truth: np.ndarray | None = None  # (n, n), +∞ for unreachable pairs
    positions: np.ndarray | None = None  # (n, 2) if the states lie in a plane

    @property
    def unreachable(self) -> float:
        """Share of unreachable ordered pairs."""
        assert self.truth is not None
        return float(np.isinf(self.truth).sum() / (len(self.truth) * (len(self.truth) - 1)))

    @cached_property
    def gridded(self) -> bool:
        """Whether the positions are integer, so that they can be drawn as a grid."""
        return self.positions is not None and bool((self.positions == self.positions.round()).all())


def ground_truth_of(recipe: EnergyRecipe, seed: int = 0) -> GroundTruth:
    """States of the recipe's world, or the `points` (and their `truth`) of its file."""
    if isinstance(recipe.source, StepFile):
        return _file_ground_truth(recipe.source, recipe.mixing)
    return world_ground_truth(recipe.source, recipe.mixing, seed)


def world_ground_truth(world: EnergyWorld, mixing: AnyMixing | None = None, seed: int = 0) -> GroundTruth:
    """A sample of the world's states, with observations through the mixing."""
    if isinstance(world, CurrentWorld):
        z = world.states(PLACES, seed)
        return GroundTruth(_observe(world.observe(z), mixing), current_energies(world, z), z)
    chosen = _sample(len(world.positions), seed)
    z = world.positions[chosen]
    truth = graph_energies(world.graph, sources=chosen, goals=chosen)
    return GroundTruth(_observe(world.observe(z), mixing), truth, z if z.shape[1] == 2 else None)


def current_energies(world: CurrentWorld, z: np.ndarray) -> np.ndarray:
    """Travel times between all places, (n, 2) → (n, n): in closed form if possible, else by the eikonal solver."""
    exact = closed_form_energies(world, z[:, None], z[None])
    if exact is not None:
        return exact
    medium = medium_of(world)
    return np.stack([energies_from(medium, place)(z) for place in z]) * ~np.eye(len(z), dtype=bool)


def closed_form_energies(world: CurrentWorld, x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """Zermelo's times from x to y, which broadcast; None if the current varies.

    Straight paths stay in the box, so the formula for the whole plane holds.
    """
    if not isinstance(world.current, ConstantCurrent):
        return None
    return zermelo(x, y, world.velocity(np.zeros(2)), world.speed)


def medium_of(world: CurrentWorld, resolution: int | None = None) -> Medium:
    """The world as a medium of the eikonal solver; rows are the second coordinate, columns the first."""
    axis, current = world.on_grid(RESOLUTION if resolution is None else resolution)
    step = float(axis[1] - axis[0])
    corner = (float(axis[0]), float(axis[0]))
    return Medium(current, speed=world.speed, origin=corner, spacing=(step, step))


def _sample(count: int, seed: int) -> np.ndarray:
    """Sorted indices of at most STATES states."""
    return np.sort(numpy_generator(seed, "ground").permutation(count)[:STATES])


def _observe(x: np.ndarray, mixing: AnyMixing | None) -> np.ndarray:
    return x if mixing is None else apply_mixing(mixing, x)


def _file_ground_truth(source: StepFile, mixing: AnyMixing | None) -> GroundTruth:
    arrays = source.read()
    x = np.asarray(arrays["x"], float)
    x = x[:, None] if x.ndim == 1 else x
    try:
        points = _file_points(arrays, x)
        truth = _file_truth(arrays)
    except InputError as error:
        raise InputError(f"{source.path}: {error}") from error
    return GroundTruth(_observe(points, mixing), truth)


def _file_points(arrays: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """The `points` of a file, or a sample of the distinct rows of x."""
    if "points" not in arrays:
        if "truth" in arrays:
            raise InputError("'truth' requires 'points', the states of its rows and columns, but there are none.")
        points = np.unique(x, axis=0)
        points = points[_sample(len(points), 0)]
    else:
        points = arrays["points"]
        points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2 or points.shape[1] != x.shape[1]:
            raise InputError(f"'points' must be (n, {x.shape[1]}) like x, but its shape is {points.shape}.")
        check_finite("points", points)
    if len(points) < 2:
        raise InputError(f"At least 2 points are needed to evaluate an energy, but there is {len(points)}.")
    return points.astype(float)


def _file_truth(arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    if "truth" not in arrays:
        return None
    truth = true_energies(arrays["truth"])
    count = len(arrays["points"])
    if len(truth) != count:
        raise InputError(f"'truth' must be ({count}, {count}) for {count} points, but its shape is {truth.shape}.")
    return truth
