"""Travel times on straight legs for the eikonal solver, compiled.

    F(d) = the least t with (d − tW)ᵀ G (d − tW) ≤ t²

is Zermelo's time for the displacement d in the field at its midpoint, +∞ through a wall. Places are rows and columns in
units of nodes; the cell of a node is the square around it. A field is five numbers per node: the current and the metric
of own motion, (W_x, W_y, G_xx, G_xy, G_yy); a velocity v is feasible if (v − W)ᵀ G (v − W) ≤ 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jepatlas.core.kernels import compiled

__all__ = [
    "LONG_RADIUS",
    "RADIUS",
    "Field",
    "Frame",
    "Problem",
    "background_time",
    "background_times",
    "field_at",
    "interpolated",
    "is_fast",
    "leg_time",
    "leg_times",
    "line_is_clear",
    "sample_field",
    "source_times",
    "travel_time",
    "values_at",
]

RADIUS = 3  # of the update rings, in nodes: smaller rings interpolate T more often, larger ones bend paths less
LONG_RADIUS = 12  # of straight lines from a source, and of the ring that is used in fast currents
PIECE = 3  # longest part of a leg, in nodes, that uses a single field

Field = tuple[float, float, float, float, float]


class Frame(NamedTuple):
    """The grid spacing (x, y), and the definition of T₀: row and column of the source, and the field there."""

    steps: tuple[float, float]
    source: tuple[float, float]
    origin: Field
    factored: bool  # otherwise T₀ = 0


class Problem(NamedTuple):
    """The data of the eikonal updates."""

    frame: Frame
    halfway: np.ndarray  # (2h − 1, 2w − 1, 5) the field at nodes and at midpoints between neighbours
    passable: np.ndarray  # (h, w)
    start: np.ndarray  # (h, w) times along straight lines from nearby sources, +∞ elsewhere
    background: np.ndarray  # (h, w) T₀
    near_wall: np.ndarray  # (h, w)
    visible: np.ndarray  # (h, w, 4R(R + 1)) which ring nodes are visible, for nodes near walls
    smooth: bool  # parabolic instead of linear interpolation between nodes
    fast: bool  # whether the current is at least as fast as the vehicle anywhere


@compiled(error_model="numpy")
def travel_time(dx: float, dy: float, field: Field) -> float:
    """The least t with (d − tW)ᵀ G (d − tW) ≤ t², +∞ if there is none. See `zermelo` for the formula."""
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


@compiled(error_model="numpy")
def leg_time(
    field: np.ndarray, free: np.ndarray, steps: tuple[float, float], a: tuple[float, float], b: tuple[float, float]
) -> float:
    """The time on a straight line from a to b, in pieces of at most PIECE nodes; +∞ through a wall."""
    if not line_is_clear(free, a[0], a[1], b[0], b[1]):
        return np.inf
    di, dj = b[0] - a[0], b[1] - a[1]
    pieces = max(int(np.ceil(max(abs(di), abs(dj)) / PIECE)), 1)
    total = 0.0
    for piece in range(pieces):
        share = (piece + 0.5) / pieces
        here = sample_field(field, a[0] + share * di, a[1] + share * dj)
        total += travel_time(dj / pieces * steps[0], di / pieces * steps[1], here)
    return total


@compiled(error_model="numpy")
def leg_times(
    field: np.ndarray, free: np.ndarray, steps: tuple[float, float], a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """Times on straight lines from places a (n, 2) to places b (n, 2)."""
    times = np.empty(len(a))
    for n in range(len(a)):
        times[n] = leg_time(field, free, steps, (a[n, 0], a[n, 1]), (b[n, 0], b[n, 1]))
    return times


@compiled(error_model="numpy")
def sample_field(field: np.ndarray, row: float, column: float) -> Field:
    """The field at a place, by bilinear interpolation."""
    i, j = min(int(row), field.shape[0] - 2), min(int(column), field.shape[1] - 2)
    upper = interpolated(field_at(field, i, j), field_at(field, i, j + 1), column - j)
    lower = interpolated(field_at(field, i + 1, j), field_at(field, i + 1, j + 1), column - j)
    return interpolated(upper, lower, row - i)


@compiled(error_model="numpy")
def field_at(field: np.ndarray, i: int, j: int) -> Field:
    """The field at a node as a tuple: creating an array view would cost more than using its values."""
    return field[i, j, 0], field[i, j, 1], field[i, j, 2], field[i, j, 3], field[i, j, 4]


@compiled(error_model="numpy")
def interpolated(one: Field, other: Field, share: float) -> Field:
    rest = 1 - share
    return (
        rest * one[0] + share * other[0],
        rest * one[1] + share * other[1],
        rest * one[2] + share * other[2],
        rest * one[3] + share * other[3],
        rest * one[4] + share * other[4],
    )


@compiled(error_model="numpy")
def is_fast(field: Field) -> bool:
    """Whether the current is at least as fast as the vehicle."""
    wx, wy, gxx, gxy, gyy = field
    return gxx * wx * wx + 2 * gxy * wx * wy + gyy * wy * wy >= 1


@compiled(error_model="numpy")
def line_is_clear(passable: np.ndarray, row: float, column: float, to_row: float, to_column: float) -> bool:
    """Whether every cell that a line touches, including at a corner, is passable."""
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


@compiled(error_model="numpy")
def background_time(frame: Frame, row: float, column: float) -> float:
    """T₀ at a place: the closed form in the field at the source."""
    if not frame.factored:
        return 0.0
    dx, dy = (column - frame.source[1]) * frame.steps[0], (row - frame.source[0]) * frame.steps[1]
    return travel_time(dx, dy, frame.origin)


@compiled(error_model="numpy")
def background_times(shape: tuple[int, int], frame: Frame) -> np.ndarray:
    """T₀ at all nodes."""
    times = np.empty(shape)
    for i in range(shape[0]):
        for j in range(shape[1]):
            times[i, j] = background_time(frame, float(i), float(j))
    return times


@compiled(error_model="numpy")
def source_times(
    field: np.ndarray, free: np.ndarray, steps: tuple[float, float], sources: np.ndarray, radius: int
) -> np.ndarray:
    """Times on straight lines from the nearest of the sources (k, 2), at nodes within `radius`; +∞ elsewhere."""
    height, width = free.shape
    times = np.full((height, width), np.inf)
    for row, column in sources:
        for i in range(max(int(np.ceil(row)) - radius, 0), min(int(row) + radius + 1, height)):
            for j in range(max(int(np.ceil(column)) - radius, 0), min(int(column) + radius + 1, width)):
                times[i, j] = min(times[i, j], leg_time(field, free, steps, (row, column), (float(i), float(j))))
    return times


@compiled(error_model="numpy")
def values_at(
    values: np.ndarray, problem: Problem, field: np.ndarray, sources: np.ndarray, places: np.ndarray
) -> np.ndarray:
    """T at places (n, 2): T₀ + τ with bilinear τ between nodes, and straight lines from nearby sources."""
    times = np.empty(len(places))
    for n in range(len(places)):
        row, column = places[n]
        times[n] = _value_at(values, problem, field, row, column)
        for k in range(len(sources)):
            if max(abs(sources[k, 0] - row), abs(sources[k, 1] - column)) <= RADIUS:
                source = (sources[k, 0], sources[k, 1])
                times[n] = min(times[n], leg_time(field, problem.passable, problem.frame.steps, source, (row, column)))
    return times


@compiled(error_model="numpy")
def _value_at(values: np.ndarray, problem: Problem, field: np.ndarray, row: float, column: float) -> float:
    i, j = min(int(row), values.shape[0] - 2), min(int(column), values.shape[1] - 2)
    a, b = row - i, column - j
    tau, from_corner = 0.0, np.inf
    for m in (i, i + 1):
        for n in (j, j + 1):
            weight = (a if m > i else 1 - a) * (b if n > j else 1 - b)
            if weight > 0:
                tau += weight * (values[m, n] - problem.background[m, n])
                corner = (float(m), float(n))
                from_corner = min(
                    from_corner,
                    values[m, n] + leg_time(field, problem.passable, problem.frame.steps, corner, (row, column)),
                )
    if tau == np.inf:  # a corner is unreachable: continue on a straight line from the best of the others
        return from_corner
    return max(tau + background_time(problem.frame, row, column), 0.0)  # rounding can make the sum negative
