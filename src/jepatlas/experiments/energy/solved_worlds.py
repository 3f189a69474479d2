"""Worlds with energies from a discretised solver: varying currents and landmarks.

The solver is run at two resolutions, and the finer solution is used:

    ε = max |E_fine − E_coarse| / max(E_fine, s/10)        slack = 2ε,  with s the median energy

Both solvers are of second order, so ε is about three times the error of the finer solution. (For first order it would
be equal to it.) E(x, z) may be too large by ε and both legs too small by ε, so a gap in the triangle inequality up to
2ε can be due to the solver.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.seeding import numpy_generator
from jepatlas.energy.exact import LandmarkEffort, energies_from, energies_to, landmark_energies
from jepatlas.experiments.energy.exact_worlds import GOALS, ExactWorld, Size
from jepatlas.workflows.energy.ground_truth import medium_of
from jepatlas.worlds import AnyCurrent, CurrentWorld, ShearCurrent, VortexCurrent

__all__ = ["landmarks", "random_sets", "shear", "solver_slack", "vortex"]

SMALL = 0.1  # of the median energy: smaller energies are not a reference for relative gaps
INSIDE = 0.95  # of the box: places away from its boundary
SEGMENTS = 8  # of the coarser paths of landmarks
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def solver_slack(coarse: np.ndarray, fine: np.ndarray) -> float:
    """2ε of two finite solutions (n, n), see the module docstring.

    >>> solver_slack(np.array([[0.0, 1.01], [2.0, 0.0]]), np.array([[0.0, 1.0], [2.0, 0.0]])).__round__(6)
    0.02
    """
    scale = float(np.median(fine[fine > 0]))
    return float(2 * (np.abs(fine - coarse) / np.maximum(fine, SMALL * scale)).max())


def shear(size: Size, seed: int, rate: float = 0.9) -> ExactWorld:
    """A current with opposite directions on the two sides."""
    return _in_current(ShearCurrent(rate), size, seed)


def vortex(size: Size, seed: int, speed: float = 0.8) -> ExactWorld:
    return _in_current(VortexCurrent(speed), size, seed)


def _in_current(current: AnyCurrent, size: Size, seed: int) -> ExactWorld:
    """Energies from every place, and a separate solution of energies to a set of places."""
    world = CurrentWorld(current=current)
    z = INSIDE * world.states(size.places, seed)
    coarse, fine = (_solved(world, z, resolution) for resolution in (size.resolution, 2 * size.resolution - 1))
    slack = max(solver_slack(one, other) for one, other in zip(coarse, fine, strict=True))
    return ExactWorld(fine[0], z, slack, coarse[0], fine[1])


def _solved(world: CurrentWorld, z: np.ndarray, resolution: int) -> tuple[np.ndarray, np.ndarray]:
    medium = medium_of(world, resolution)
    return np.stack([energies_from(medium, place)(z) for place in z]), energies_to(medium, z[:GOALS])(z)


def landmarks(size: Size, seed: int, ratio: float = 8.0) -> ExactWorld:
    """Four landmarks in the plane; contracting the field costs `ratio` times as much as expanding it."""
    sets, effort = random_sets(size.sets, seed), LandmarkEffort(0.7, expand=0.5, contract=0.5 * ratio)
    coarse, fine = (landmark_energies(sets, effort, segments) for segments in (SEGMENTS, 2 * SEGMENTS))
    return ExactWorld(fine, sets.reshape(len(sets), -1), solver_slack(coarse, fine), coarse)


def random_sets(count: int, seed: int) -> np.ndarray:
    """Corners of a square of random size, slightly displaced: (count, 4, 2)."""
    rng = numpy_generator(seed, "landmarks")
    return rng.uniform(0.7, 1.4, (count, 1, 1)) * SQUARE + 0.15 * rng.standard_normal((count, 4, 2))
