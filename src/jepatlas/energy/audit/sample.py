"""What is audited: the energies between some states, E(x, y) from row x to column y, with what is known of them.

Of more states than asked for, a seeded sample is taken. Numbers are held to what their dtype can tell: the tolerance is
1024 eps, relative to the energies' own scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import numpy_generator
from jepatlas.energy.audit.given import energy_matrix, precision_of, read_points, true_energies
from jepatlas.energy.audit.rows import RowEnergy, as_row_energy

__all__ = ["Sample", "draw_sample"]

ROUNDINGS = 1024  # times eps: sums over a few thousand dimensions are off by about the root of that
STRICT = 1 / 16  # of the tolerance: between identical inputs there is little to round


@dataclass(frozen=True)
class Sample:
    """Energies between n states, and their positions and true energies where these are known."""

    energies: np.ndarray  # (n, n) from row to column
    states: np.ndarray  # (n,) which of the given states these are
    positions: np.ndarray | None  # (n, d)
    truth: np.ndarray | None  # (n, n)
    tolerance: float  # relative
    seed: int
    energy: RowEnergy | None = None  # where it can be asked for more
    pool: np.ndarray | None = None  # (m, d) all points that were given with it

    @property
    def n(self) -> int:
        return len(self.energies)

    @property
    def others(self) -> np.ndarray:
        """All entries but the diagonal, (n, n)."""
        return ~np.eye(self.n, dtype=bool)

    @cached_property
    def apart(self) -> np.ndarray:
        """Pairs of distinct states, (n, n); rows at the same position are one state."""
        if self.positions is None:
            return self.others
        labels = np.unique(self.positions, axis=0, return_inverse=True)[1].ravel()
        return labels[:, None] != labels

    @cached_property
    def scale(self) -> float:
        """The median of the energies that are finite and positive."""
        usual = self.energies[np.isfinite(self.energies) & (self.energies > 0) & self.others]
        return float(np.median(usual)) if len(usual) else 1.0

    @property
    def rounding(self) -> float:
        """What an energy of zero may be, by rounding alone."""
        return STRICT * self.tolerance * self.scale

    def rng(self, name: str) -> np.random.Generator:
        return numpy_generator(self.seed, f"energy/audit/{name}")

    def pair(self, flat: int | np.integer) -> str:
        """The name of an entry of the matrix, counted row by row."""
        row, column = divmod(int(flat), self.n)
        return f"from state {self.states[row]} to state {self.states[column]}"


def draw_sample(
    energy: np.ndarray | Callable[[Any, Any], Any],
    points: np.ndarray | None,
    truth: np.ndarray | None,
    *,
    states: int,
    tolerance: float | None,
    seed: int,
) -> Sample:
    """Of a matrix, or of a function with the points to call it at."""
    if tolerance is not None and not 0 <= tolerance < np.inf:
        raise InputError(f"The tolerance is a share of an energy, 0 or more, but {tolerance} was given.")
    matrix, positions = energy_matrix(energy), None if points is None else read_points(points)
    exact = None if truth is None else true_energies(truth)
    kept = _kept(_size(matrix, positions, exact), states, seed)
    chosen = None if positions is None else positions[kept].astype(np.float64)
    known = (kept, chosen, None if exact is None else exact[np.ix_(kept, kept)])
    if matrix is not None:
        held = ROUNDINGS * precision_of(matrix) if tolerance is None else tolerance
        return Sample(matrix[np.ix_(kept, kept)].astype(np.float64), *known, held, seed)
    if positions is None or isinstance(energy, np.ndarray):
        raise InputError("An energy that is a function needs points (n, d) to be audited at, but none were given.")
    rows = as_row_energy(energy, positions)
    held = ROUNDINGS * rows.precision if tolerance is None else tolerance
    return Sample(rows.matrix(positions[kept]), *known, held, seed, rows, positions)


def _kept(size: int, states: int, seed: int) -> np.ndarray:
    if size < 2 or states < 2:
        raise InputError(f"An audit needs at least 2 states, but there are {size} and {states} were asked for.")
    return np.sort(numpy_generator(seed, "energy/audit/states").permutation(size)[:states])


def _size(matrix: np.ndarray | None, positions: np.ndarray | None, exact: np.ndarray | None) -> int:
    """How many states there are, by all that is given of them."""
    sizes = {"energies": matrix, "points": positions, "true energies": exact}
    counts = {name: len(given) for name, given in sizes.items() if given is not None}
    if len(set(counts.values())) > 1:
        said = " and ".join(f"{count} rows of {name}" for name, count in counts.items())
        raise InputError(f"There must be one row for each state in everything, but there are {said}.")
    return next(iter(counts.values()), 2)  # with nothing but a function, it is the points that are missing
