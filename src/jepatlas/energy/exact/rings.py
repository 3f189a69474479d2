"""Square rings round a node, as tables of their nodes, and what can be seen of them past walls.

A ring surrounds its node whole, so every direction of arrival is represented whatever the anisotropy. It starts in a
corner and goes round once; a place on it is counted in nodes along it.
"""

from __future__ import annotations

import numba
import numpy as np

from jepatlas.energy.exact.legs import clear_line

__all__ = ["LONG_RADIUS", "RADIUS", "RINGS", "Ring", "look_round", "place_on_ring"]

RADIUS = 3  # nodes from the centre to a side: smaller rings interpolate T more often, larger ones bend ways less
LONG_RADIUS = 12  # of straight lines from a source, and where the current is faster than the vehicle; see `updates`

Ring = tuple[int, int, int]
"""Row and column of the centre, and the radius."""


def _ring(radius: int) -> list[tuple[int, int]]:
    """Rows and columns, from the centre, of the nodes of a ring, which starts in a corner and goes round once."""
    along = range(-radius, radius)
    sides = ([(-radius, k) for k in along], [(k, radius) for k in along])
    return [*sides[0], *sides[1], *((-a, -b) for side in sides for a, b in side)]


def _rings() -> np.ndarray:
    """All of them, [radius, place]; a place after the last is the first again."""
    table = np.zeros((LONG_RADIUS + 1, 8 * LONG_RADIUS + 1, 2), dtype=np.int64)
    for radius in range(1, LONG_RADIUS + 1):
        table[radius, : 8 * radius + 1] = [*_ring(radius), (-radius, -radius)]
    return table


RINGS = _rings()


@numba.njit(cache=True, error_model="numpy")
def place_on_ring(di: float, dj: float, radius: int) -> float:
    """Where a ray from the centre meets the ring."""
    largest = max(abs(di), abs(dj))
    row, column = radius * di / largest, radius * dj / largest
    if -di == largest:
        return column + radius
    if dj == largest:
        return row + 3 * radius
    if di == largest:
        return 5 * radius - column
    return 7 * radius - row


@numba.njit(cache=True, error_model="numpy")
def look_round(passable: np.ndarray, by_wall: np.ndarray) -> np.ndarray:
    """For nodes near walls, which nodes of which rings they see."""
    height, width = passable.shape
    seen = np.zeros((height, width, 4 * RADIUS * (RADIUS + 1)), dtype=np.bool_)
    for i in range(height):
        for j in range(width):
            if by_wall[i, j]:
                for radius in range(1, RADIUS + 1):
                    for place in range(8 * radius):
                        di, dj = RINGS[radius, place, 0], RINGS[radius, place, 1]
                        seen[i, j, 4 * radius * (radius - 1) + place] = clear_line(passable, i, j, i + di, j + dj)
    return seen
