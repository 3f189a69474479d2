"""The compiled heart of the eikonal solver: updates of nodes, swept over the grid until nothing changes.

No order of updates has to be known: sweeps in four directions repeat wherever something near by has changed.
"""

from __future__ import annotations

import numba
import numpy as np

from jepatlas.energy.exact.legs import field_at, is_torrent
from jepatlas.energy.exact.problem import Problem
from jepatlas.energy.exact.rings import LONG_RADIUS, RADIUS
from jepatlas.energy.exact.updates import least_on_long_ring, renewed

__all__ = ["sweep"]


@numba.njit(cache=True, error_model="numpy")
def sweep(values: np.ndarray, problem: Problem, tolerance: float, rounds: int) -> None:
    """Update `values` in place, in rounds of four sweeps, until none changes by more than a share of it.

    Linear updates can only lower a value, and so they end. Parabolas replace it; where a field is as rough as the grid
    they may go on and on by parts of a thousandth, so their rounds are counted.
    """
    waiting = problem.passable.copy()
    work = np.empty((8 * RADIUS + 1, 9))
    changed = True
    while changed and rounds > 0:
        changed = False
        for direction in range(4):
            if _sweep_once(values, problem, (direction, tolerance), waiting, work):
                changed = True
        rounds -= 1


@numba.njit(cache=True, error_model="numpy")
def _sweep_once(
    values: np.ndarray, problem: Problem, rule: tuple[int, float], waiting: np.ndarray, work: np.ndarray
) -> bool:
    """One sweep, in one of four directions; whether any value changed."""
    (height, width), (direction, tolerance) = values.shape, rule
    changed = False
    for node in range(height * width):
        row, column = divmod(node, width)
        i = row if direction < 2 else height - 1 - row
        j = column if direction % 2 == 0 else width - 1 - column
        if waiting[i, j]:
            waiting[i, j] = False
            new = renewed(values, problem, i, j, work)
            if problem.torrent and not problem.smooth and is_torrent(field_at(problem.halfway, 2 * i, 2 * j)):
                new = min(new, least_on_long_ring(values, problem, i, j))
            if _differs(values[i, j], new, tolerance) and (new < values[i, j] or problem.smooth):
                values[i, j] = new
                changed = True
                _awaken(waiting, problem, i, j)
    return changed


@numba.njit(cache=True, error_model="numpy")
def _differs(old: float, new: float, tolerance: float) -> bool:
    """Never from a number to +∞: what was reached on a long leg may be out of reach of short ones."""
    return old != new and not abs(new - old) <= tolerance * new


@numba.njit(cache=True, error_model="numpy")
def _awaken(waiting: np.ndarray, problem: Problem, i: int, j: int) -> None:
    """All whose rings, or the nodes next to them that tell their curvature, hold this node."""
    reach = (LONG_RADIUS if problem.torrent and not problem.smooth else RADIUS) + 1
    for row in range(max(i - reach, 0), min(i + reach + 1, waiting.shape[0])):
        for column in range(max(j - reach, 0), min(j + reach + 1, waiting.shape[1])):
            waiting[row, column] = problem.passable[row, column]
