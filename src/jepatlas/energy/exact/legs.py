"""The time that a straight leg d takes, by Zermelo's formula in the field halfway; +∞ through a wall.

    F(d) = the least t with (d − tW)ᵀ G (d − tW) ≤ t²

Rows and columns count nodes, and a cell is the square round its node. A field is five numbers a node: the current and
the metric of own motion, (W_x, W_y, G_xx, G_xy, G_yy); a velocity v can be had if (v − W)ᵀ G (v − W) ≤ 1.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = [
    "Field",
    "clear_line",
    "field_at",
    "is_torrent",
    "leg_time",
    "leg_times",
    "mixed",
    "sample_field",
    "travel_time",
]

PIECE = 3  # nodes at most between the ends of what is travelled in one field

Field = tuple[float, float, float, float, float]


@numba.njit(cache=True, error_model="numpy")
def leg_times(
    field: np.ndarray, free: np.ndarray, steps: tuple[float, float], a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """Times on straight lines from places a (n, 2) to places b (n, 2)."""
    times = np.empty(len(a))
    for n in range(len(a)):
        times[n] = leg_time(field, free, steps, (a[n, 0], a[n, 1]), (b[n, 0], b[n, 1]))
    return times


@numba.njit(cache=True, error_model="numpy")
def leg_time(
    field: np.ndarray, free: np.ndarray, steps: tuple[float, float], a: tuple[float, float], b: tuple[float, float]
) -> float:
    """From a to b on a straight line, +∞ through a wall; in pieces no longer than PIECE, each in its own field."""
    if not clear_line(free, a[0], a[1], b[0], b[1]):
        return np.inf
    di, dj = b[0] - a[0], b[1] - a[1]
    pieces = max(int(np.ceil(max(abs(di), abs(dj)) / PIECE)), 1)
    total = 0.0
    for piece in range(pieces):
        share = (piece + 0.5) / pieces
        here = sample_field(field, a[0] + share * di, a[1] + share * dj)
        total += travel_time(dj / pieces * steps[0], di / pieces * steps[1], here)
    return total


@numba.njit(cache=True, error_model="numpy")
def travel_time(dx: float, dy: float, field: Field) -> float:
    """The least t with (d − tW)ᵀ G (d − tW) ≤ t², +∞ if there is none; see `zermelo` for the formula."""
    wx, wy, gxx, gxy, gyy = field
    length = gxx * dx * dx + 2 * gxy * dx * dy + gyy * dy * dy
    along = gxx * dx * wx + gxy * (dx * wy + dy * wx) + gyy * dy * wy
    room = 1 - (gxx * wx * wx + 2 * gxy * wx * wy + gyy * wy * wy)
    inside = along * along + room * length
    if length == 0:
        return 0.0
    if inside < 0 or (room <= 0 and along <= 0):
        return np.inf
    if along > 0:
        return length / (along + np.sqrt(inside))
    return (np.sqrt(inside) - along) / room


@numba.njit(cache=True, error_model="numpy")
def sample_field(field: np.ndarray, row: float, column: float) -> Field:
    """The field at a place between nodes, bilinear."""
    i, j = min(int(row), field.shape[0] - 2), min(int(column), field.shape[1] - 2)
    upper = mixed(field_at(field, i, j), field_at(field, i, j + 1), column - j)
    lower = mixed(field_at(field, i + 1, j), field_at(field, i + 1, j + 1), column - j)
    return mixed(upper, lower, row - i)


@numba.njit(cache=True, error_model="numpy")
def field_at(field: np.ndarray, i: int, j: int) -> Field:
    """The numbers of a node; a view of them would cost more than all that is done with them."""
    return field[i, j, 0], field[i, j, 1], field[i, j, 2], field[i, j, 3], field[i, j, 4]


@numba.njit(cache=True, error_model="numpy")
def mixed(one: Field, other: Field, share: float) -> Field:
    """A field between two."""
    rest = 1 - share
    return (
        rest * one[0] + share * other[0],
        rest * one[1] + share * other[1],
        rest * one[2] + share * other[2],
        rest * one[3] + share * other[3],
        rest * one[4] + share * other[4],
    )


@numba.njit(cache=True, error_model="numpy")
def is_torrent(field: Field) -> bool:
    """Whether the current is as fast as the vehicle, or faster."""
    wx, wy, gxx, gxy, gyy = field
    return gxx * wx * wx + 2 * gxy * wx * wy + gyy * wy * wy >= 1


@numba.njit(cache=True, error_model="numpy")
def clear_line(passable: np.ndarray, row: float, column: float, to_row: float, to_column: float) -> bool:
    """Whether every cell that a line touches, be it at a corner, can be passed; a cell is the square round its node."""
    eps = 1e-9
    if to_column < column:
        row, column, to_row, to_column = to_row, to_column, row, column
    first, last = int(np.ceil(column - 0.5 - eps)), int(np.floor(to_column + 0.5 + eps))
    slope = (to_row - row) / (to_column - column) if to_column - column > eps else 0.0
    for j in range(first, last + 1):
        start = row + slope * (max(j - 0.5, column) - column)
        stop = row + slope * (min(j + 0.5, to_column) - column) if slope != 0 else to_row
        low, high = min(start, stop), max(start, stop)
        for i in range(int(np.ceil(low - 0.5 - eps)), int(np.floor(high + 0.5 + eps)) + 1):
            inside = 0 <= i < passable.shape[0] and 0 <= j < passable.shape[1]
            if inside and not passable[i, j]:
                return False
    return True
