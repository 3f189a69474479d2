"""The semi-Lagrangian update of one node.

    T(x) = min over p on a square ring round x of { T(p) + F(x − p) },    F: Zermelo's time in the field halfway

Between two nodes T − T₀ is a parabola whose curvature is the harmonic mean of those at both nodes, and none where they
differ in sign: at kinks it is a line.

Where the current is faster than the vehicle, T is +∞ outside a cone, and an edge with one end outside has no T between:
every leg loses up to a node along the border of what can be reached. So such nodes also look at the nodes of a long
ring, along straight lines in pieces: long legs are few.
"""

from __future__ import annotations

import numba
import numpy as np

from jepatlas.energy.exact.legs import field_at, is_torrent, leg_time
from jepatlas.energy.exact.problem import Problem
from jepatlas.energy.exact.ring_search import cost, least_on_ring, search
from jepatlas.energy.exact.rings import LONG_RADIUS, RADIUS, RINGS, Ring, place_on_ring

__all__ = ["least_on_long_ring", "renewed"]


@numba.njit(cache=True, error_model="numpy")
def renewed(values: np.ndarray, problem: Problem, i: int, j: int, work: np.ndarray) -> float:
    new = problem.start[i, j]
    first = 1 if problem.by_wall[i, j] else RADIUS  # a wall hides parts of the large ring; smaller ones look past it
    for radius in range(first, RADIUS + 1):
        _gather(values, problem, (i, j, radius), work)
        new = min(new, least_on_ring(work, problem.frame, (i, j, radius)))
        field = field_at(problem.halfway, 2 * i, 2 * j)
        if is_torrent(field):  # its cone of arrival may lie between two nodes of the ring
            steps = problem.frame.steps
            place = place_on_ring(-field[1] / steps[1], -field[0] / steps[0], radius)
            new = min(new, cost(work, problem.frame, (i, j, radius), place))
            new = min(new, search(work, problem.frame, (i, j, radius), place))
    return new


@numba.njit(cache=True, error_model="numpy")
def least_on_long_ring(values: np.ndarray, problem: Problem, i: int, j: int) -> float:
    """From its nodes only."""
    field, least = problem.halfway[::2, ::2], np.inf
    for place in range(8 * LONG_RADIUS):
        row, column = i + RINGS[LONG_RADIUS, place, 0], j + RINGS[LONG_RADIUS, place, 1]
        if 0 <= row < values.shape[0] and 0 <= column < values.shape[1] and values[row, column] < least:
            a, b = (float(row), float(column)), (float(i), float(j))
            time = leg_time(field, problem.passable, problem.frame.steps, a, b)
            least = min(least, float(values[row, column]) + time)
    return least


@numba.njit(cache=True, error_model="numpy")
def _gather(values: np.ndarray, problem: Problem, ring: Ring, work: np.ndarray) -> None:
    """What a ring holds, a row a place: T, or +∞ where unseen; τ; its bend on the way to the next; the field halfway.

    Compiled code that is handed many arrays spends its time on counting who holds them, so the rest is handed this one.
    """
    i, j, radius = ring
    halfway, plain, seen, hidden = problem.halfway, problem.plain, problem.seen, problem.by_wall[i, j]
    height, width = values.shape
    for place in range(8 * radius + 1):
        di, dj = RINGS[radius, place, 0], RINGS[radius, place, 1]
        row, column = i + di, j + dj
        work[place, 0] = np.inf
        if not (0 <= row < height and 0 <= column < width):
            continue
        if hidden and not seen[i, j, 4 * radius * (radius - 1) + place % (8 * radius)]:
            continue
        work[place, 0] = values[row, column]
        work[place, 1] = values[row, column] - plain[row, column]
        work[place, 2] = 0.0
        for k in range(5):
            work[place, 3 + k] = halfway[2 * i + di, 2 * j + dj, k]
        if problem.smooth and place < 8 * radius:
            ei, ej = RINGS[radius, place + 1, 0] - di, RINGS[radius, place + 1, 1] - dj
            ends = ((row - ei, column - ej), (row + 2 * ei, column + 2 * ej))
            if (
                min(ends[0][0], ends[1][0], ends[0][1], ends[1][1]) >= 0
                and max(ends[0][0], ends[1][0]) < height
                and max(ends[0][1], ends[1][1]) < width
            ):
                work[place, 2] = _bend(values, plain, ends[0], (ei, ej))


@numba.njit(cache=True, error_model="numpy")
def _bend(values: np.ndarray, plain: np.ndarray, first: tuple[int, int], step: tuple[int, int]) -> float:
    """The harmonic mean of the second differences of τ at the inner two of four nodes in a row."""
    (i, j), (ei, ej) = first, step
    before = values[i, j] - plain[i, j]
    a = values[i + ei, j + ej] - plain[i + ei, j + ej]
    b = values[i + 2 * ei, j + 2 * ej] - plain[i + 2 * ei, j + 2 * ej]
    after = values[i + 3 * ei, j + 3 * ej] - plain[i + 3 * ei, j + 3 * ej]
    at_a, at_b = before - 2 * a + b, a - 2 * b + after
    return 2 * at_a * at_b / (at_a + at_b) if at_a * at_b > 0 and max(at_a, at_b) < np.inf else 0.0
