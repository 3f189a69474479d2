"""The compiled heart of the eikonal solver: semi-Lagrangian updates, swept over the grid until nothing changes.

    T(x) = min over p on a square ring round x of { T(p) + F(x − p) },    F: Zermelo's time in the field halfway

A ring surrounds its node whole, so every direction of arrival is represented whatever the anisotropy, and no order of
updates has to be known: sweeps in four directions repeat wherever something near by has changed.

Between two nodes T is interpolated as T₀ + τ: T₀ is the closed form in the current at the source, which has the kink
there, and τ a parabola whose curvature is the harmonic mean of those at both nodes, none where they differ in sign.
That is of fourth order where T is smooth and linear at kinks.

Where the current is faster than the vehicle, T is +∞ outside a cone, and an edge with one end outside has no T between:
every leg loses up to a node along the border of what can be reached. So such nodes also look at a long ring, whose
legs are few, along straight lines in pieces.

Rows and columns count nodes, and a cell is the square round its node. A field is five numbers a node: the current and
the metric of own motion, (W_x, W_y, G_xx, G_xy, G_yy); a velocity v can be had if (v − W)ᵀ G (v − W) ≤ 1. All this is
one file because numba's cache knows of changes in the file of a function alone, not in those it calls.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

__all__ = [
    "LONG_RADIUS",
    "RADIUS",
    "Problem",
    "leg_times",
    "look_round",
    "plain_times",
    "sample_field",
    "start_times",
    "sweep",
    "values_at",
]

RADIUS = 3  # nodes from the centre to a side: smaller rings interpolate T more often, larger ones bend ways less
LONG_RADIUS = 12  # of straight lines from a source, and where the current is faster than the vehicle; see above
GOLDEN = 0.6180339887498949
SEARCHES = 10  # narrows two edges of a ring to 0.01 of one; what is lost is of the order of its square

Field = tuple[float, float, float, float, float]
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


class Problem(NamedTuple):
    """All that an update reads. Rows and columns count nodes; `steps` are the lengths between them, (x, y)."""

    halfway: np.ndarray  # (2h − 1, 2w − 1, 5) the field at nodes and halfway between them
    passable: np.ndarray  # (h, w)
    start: np.ndarray  # (h, w) times along straight lines from the sources near by, +∞ elsewhere
    plain: np.ndarray  # (h, w) T₀; zeros where there is no factoring
    by_wall: np.ndarray  # (h, w)
    seen: np.ndarray  # (h, w, 4R(R + 1)) what nodes near walls see of the rings round them
    steps: tuple[float, float]
    source: tuple[float, float]  # row, column
    origin: Field  # at the source
    factored: bool
    smooth: bool  # parabolas, or straight lines between nodes
    torrent: bool  # whether the current is faster than the vehicle anywhere


@numba.njit(cache=True, error_model="numpy")
def sweep(values: np.ndarray, problem: Problem, tolerance: float, rounds: int) -> bool:
    """Update `values` in place until none changes by more than a share of it; whether that was reached in time.

    Linear updates only ever lower a value, so they end; smooth ones replace it, and begin where the linear ones ended.
    In a torrent these, too, only lower it: what was reached on a long leg may be out of reach of short ones.
    """
    height, width = values.shape
    waiting = problem.passable.copy()
    costs = np.empty(8 * LONG_RADIUS)
    for _ in range(rounds):
        changed = False
        for direction in range(4):
            for node in range(height * width):
                row, column = divmod(node, width)
                i = row if direction < 2 else height - 1 - row
                j = column if direction % 2 == 0 else width - 1 - column
                if waiting[i, j]:
                    waiting[i, j] = False
                    new = _renewed(values, problem, i, j, costs)
                    if _differs(values[i, j], new, tolerance) and (new < values[i, j] or _may_rise(problem, i, j)):
                        values[i, j] = new
                        changed = True
                        _awaken(waiting, problem, i, j)
        if not changed:
            return True
    return False


@numba.njit(cache=True, error_model="numpy")
def _differs(old: float, new: float, tolerance: float) -> bool:
    return old != new and not abs(new - old) <= tolerance * new


@numba.njit(cache=True, error_model="numpy")
def _may_rise(problem: Problem, i: int, j: int) -> bool:
    return problem.smooth and not is_torrent(field_at(problem.halfway, 2 * i, 2 * j))


@numba.njit(cache=True, error_model="numpy")
def _awaken(waiting: np.ndarray, problem: Problem, i: int, j: int) -> None:
    """All whose rings, or the nodes next to them that tell their curvature, hold this node."""
    reach = (LONG_RADIUS if problem.torrent and not problem.smooth else RADIUS) + 1
    for row in range(max(i - reach, 0), min(i + reach + 1, waiting.shape[0])):
        for column in range(max(j - reach, 0), min(j + reach + 1, waiting.shape[1])):
            waiting[row, column] = problem.passable[row, column]


@numba.njit(cache=True, error_model="numpy")
def _renewed(values: np.ndarray, problem: Problem, i: int, j: int, costs: np.ndarray) -> float:
    new = problem.start[i, j]
    first = 1 if problem.by_wall[i, j] else RADIUS  # a wall hides parts of the large ring; smaller ones look past it
    for radius in range(first, RADIUS + 1):
        new = min(new, least_on_ring(values, problem, (i, j, radius), costs))
    if not problem.smooth and is_torrent(field_at(problem.halfway, 2 * i, 2 * j)):
        new = min(new, least_on_ring(values, problem, (i, j, LONG_RADIUS), costs))
    return new


@numba.njit(cache=True, error_model="numpy")
def least_on_ring(values: np.ndarray, problem: Problem, ring: Ring, costs: np.ndarray) -> float:
    """T(x) by this ring; `costs` is working space for its nodes."""
    count = 8 * ring[2]
    best = 0
    for place in range(count):
        costs[place] = _cost_at_node(values, problem, ring, place)
        if costs[place] < costs[best]:
            best = place
    least = costs[best]
    if least < np.inf:
        least = min(least, _search(values, problem, ring, float(best)))
    for place in range(count):
        cost, beside = costs[place], max(costs[place - 1 if place > 0 else count - 1], costs[(place + 1) % count])
        is_valley = cost <= costs[place - 1 if place > 0 else count - 1] and cost <= costs[(place + 1) % count]
        # A convex valley lies no deeper below its node than the node below its higher neighbour.
        if is_valley and cost < np.inf and place != best and (beside == np.inf or 2 * cost - beside < least):
            least = min(least, _search(values, problem, ring, float(place)))
    return min(least, _least_upstream(values, problem, ring))


@numba.njit(cache=True, error_model="numpy")
def _least_upstream(values: np.ndarray, problem: Problem, ring: Ring) -> float:
    """Where the current is faster than the vehicle: its cone of arrival may lie between two nodes of the ring."""
    field = field_at(problem.halfway, 2 * ring[0], 2 * ring[1])
    if not is_torrent(field):
        return np.inf
    place = place_on_ring(-field[1] / problem.steps[1], -field[0] / problem.steps[0], ring[2])
    return min(_cost(values, problem, ring, place), _search(values, problem, ring, place))


@numba.njit(cache=True, error_model="numpy")
def _search(values: np.ndarray, problem: Problem, ring: Ring, middle: float) -> float:
    """Golden section over the two edges round a place; where both probes are out of reach, towards the middle."""
    low, high, least = middle - 1, middle + 1, np.inf
    left, right = high - 2 * GOLDEN, low + 2 * GOLDEN
    at_left, at_right = _cost(values, problem, ring, left), _cost(values, problem, ring, right)
    for _ in range(SEARCHES):
        least = min(least, at_left, at_right)
        if at_left == np.inf and at_right == np.inf:
            low, high = left, right
            left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
            at_left, at_right = _cost(values, problem, ring, left), _cost(values, problem, ring, right)
        elif at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = _cost(values, problem, ring, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = _cost(values, problem, ring, right)
    return min(least, at_left, at_right)


@numba.njit(cache=True, error_model="numpy", forceinline=True)
def _cost_at_node(values: np.ndarray, problem: Problem, ring: Ring, place: int) -> float:
    value = _seen(values, problem, ring, place)
    if value == np.inf:
        return value
    di, dj = RINGS[ring[2], place, 0], RINGS[ring[2], place, 1]
    if ring[2] > RADIUS:
        return value + _long_leg(problem, ring, float(di), float(dj))
    field = field_at(problem.halfway, 2 * ring[0] + di, 2 * ring[1] + dj)
    return value + travel_time(-dj * problem.steps[0], -di * problem.steps[1], field)


@numba.njit(cache=True, error_model="numpy")
def _long_leg(problem: Problem, ring: Ring, di: float, dj: float) -> float:
    """From an offset to the centre."""
    centre = (float(ring[0]), float(ring[1]))
    field = problem.halfway[::2, ::2]
    return leg_time(field, problem.passable, problem.steps, (centre[0] + di, centre[1] + dj), centre)


@numba.njit(cache=True, error_model="numpy", forceinline=True)
def _cost(values: np.ndarray, problem: Problem, ring: Ring, place: float) -> float:
    """T(p) + F(x − p) for a place on the ring, counted in nodes along it."""
    floor = int(np.floor(place))
    share, first = place - floor, floor % (8 * ring[2])
    if share == 0:
        return _cost_at_node(values, problem, ring, first)
    if _seen(values, problem, ring, first) == np.inf or _seen(values, problem, ring, first + 1) == np.inf:
        return np.inf
    a = (RINGS[ring[2], first, 0], RINGS[ring[2], first, 1])
    b = (RINGS[ring[2], first + 1, 0], RINGS[ring[2], first + 1, 1])
    di, dj = a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])
    if ring[2] > RADIUS:
        time = _long_leg(problem, ring, di, dj)
    else:
        one = field_at(problem.halfway, 2 * ring[0] + a[0], 2 * ring[1] + a[1])
        other = field_at(problem.halfway, 2 * ring[0] + b[0], 2 * ring[1] + b[1])
        field = mixed(one, other, share)
        time = travel_time(-dj * problem.steps[0], -di * problem.steps[1], field)
    if time == np.inf:
        return time
    a, b = (ring[0] + a[0], ring[1] + a[1]), (ring[0] + b[0], ring[1] + b[1])
    return time + between(values, problem, a, b, share)


@numba.njit(cache=True, error_model="numpy", forceinline=True)
def _seen(values: np.ndarray, problem: Problem, ring: Ring, place: int) -> float:
    """The value of a node of the ring; +∞ if it lies behind a wall or outside the world."""
    i, j, radius = ring
    di, dj = RINGS[radius, place, 0], RINGS[radius, place, 1]
    if not (0 <= i + di < values.shape[0] and 0 <= j + dj < values.shape[1]):
        return np.inf
    if (
        radius <= RADIUS
        and problem.by_wall[i, j]
        and not problem.seen[i, j, 4 * radius * (radius - 1) + place % (8 * radius)]
    ):
        return np.inf
    return values[i + di, j + dj]


@numba.njit(cache=True, error_model="numpy", forceinline=True)
def between(values: np.ndarray, problem: Problem, a: tuple[int, int], b: tuple[int, int], share: float) -> float:
    """T a share of the way from node a to its neighbour b."""
    return plain(problem, a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])) + _tau(
        values, problem, a, b, share
    )


@numba.njit(cache=True, error_model="numpy", forceinline=True)
def plain(problem: Problem, row: float, column: float) -> float:
    """T₀ at a place."""
    if not problem.factored:
        return 0.0
    dx, dy = (column - problem.source[1]) * problem.steps[0], (row - problem.source[0]) * problem.steps[1]
    return travel_time(dx, dy, problem.origin)


@numba.njit(cache=True, error_model="numpy", forceinline=True)
def _tau(values: np.ndarray, problem: Problem, a: tuple[int, int], b: tuple[int, int], share: float) -> float:
    """τ = T − T₀ between two nodes."""
    at_a, at_b = values[a] - problem.plain[a], values[b] - problem.plain[b]
    tau = at_a + share * (at_b - at_a)
    before, after = (2 * a[0] - b[0], 2 * a[1] - b[1]), (2 * b[0] - a[0], 2 * b[1] - a[1])
    if not (problem.smooth and _inside(values, before) and _inside(values, after)):
        return tau
    bend_a = values[before] - problem.plain[before] - 2 * at_a + at_b
    bend_b = values[after] - problem.plain[after] - 2 * at_b + at_a
    if bend_a * bend_b > 0 and max(bend_a, bend_b) < np.inf:
        tau -= share * (1 - share) * bend_a * bend_b / (bend_a + bend_b)
    return tau


@numba.njit(cache=True, error_model="numpy", forceinline=True)
def _inside(values: np.ndarray, node: tuple[int, int]) -> bool:
    return 0 <= node[0] < values.shape[0] and 0 <= node[1] < values.shape[1]


@numba.njit(cache=True, error_model="numpy", forceinline=True)
def is_torrent(field: Field) -> bool:
    """Whether the current is as fast as the vehicle, or faster."""
    wx, wy, gxx, gxy, gyy = field
    return gxx * wx * wx + 2 * gxy * wx * wy + gyy * wy * wy >= 1


@numba.njit(cache=True, error_model="numpy")
def start_times(
    field: np.ndarray, free: np.ndarray, steps: tuple[float, float], sources: np.ndarray, reach: int
) -> np.ndarray:
    """Times on straight lines from the nearest of the sources (k, 2) to nodes within reach of it, +∞ elsewhere."""
    height, width = free.shape
    times = np.full((height, width), np.inf)
    for row, column in sources:
        for i in range(max(int(np.ceil(row)) - reach, 0), min(int(row) + reach + 1, height)):
            for j in range(max(int(np.ceil(column)) - reach, 0), min(int(column) + reach + 1, width)):
                times[i, j] = min(times[i, j], leg_time(field, free, steps, (row, column), (float(i), float(j))))
    return times


@numba.njit(cache=True, error_model="numpy")
def plain_times(
    shape: tuple[int, int], source: tuple[float, float], origin: Field, steps: tuple[float, float]
) -> np.ndarray:
    """T₀ at the nodes: the closed form, were the field everywhere as it is at the source."""
    times = np.empty(shape)
    for i in range(shape[0]):
        for j in range(shape[1]):
            dx, dy = (j - source[1]) * steps[0], (i - source[0]) * steps[1]
            times[i, j] = travel_time(dx, dy, origin)
    return times


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
def values_at(
    values: np.ndarray, problem: Problem, field: np.ndarray, sources: np.ndarray, places: np.ndarray
) -> np.ndarray:
    """T at places (n, 2): between nodes T₀ + τ with τ bilinear, and straight from a source that is near."""
    found = np.empty(len(places))
    for n in range(len(places)):
        row, column = places[n]
        found[n] = _value_at(values, problem, field, row, column)
        for k in range(len(sources)):
            if max(abs(sources[k, 0] - row), abs(sources[k, 1] - column)) <= RADIUS:
                source = (sources[k, 0], sources[k, 1])
                found[n] = min(found[n], leg_time(field, problem.passable, problem.steps, source, (row, column)))
    return found


@numba.njit(cache=True, error_model="numpy")
def _value_at(values: np.ndarray, problem: Problem, field: np.ndarray, row: float, column: float) -> float:
    i, j = min(int(row), values.shape[0] - 2), min(int(column), values.shape[1] - 2)
    a, b = row - i, column - j
    tau, nearest = 0.0, np.inf
    for m in (i, i + 1):
        for n in (j, j + 1):
            weight = (a if m > i else 1 - a) * (b if n > j else 1 - b)
            if weight > 0:
                tau += weight * (values[m, n] - problem.plain[m, n])
                corner = (float(m), float(n))
                nearest = min(
                    nearest, values[m, n] + leg_time(field, problem.passable, problem.steps, corner, (row, column))
                )
    if tau == np.inf:  # a corner is out of reach: on from the best of the others
        return nearest
    return tau + plain(problem, row, column)


@numba.njit(cache=True, error_model="numpy", forceinline=True)
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
def leg_time(
    field: np.ndarray, free: np.ndarray, steps: tuple[float, float], a: tuple[float, float], b: tuple[float, float]
) -> float:
    """From a to b on a straight line, +∞ through a wall; in pieces no longer than RADIUS, each in its own field."""
    if not clear_line(free, a[0], a[1], b[0], b[1]):
        return np.inf
    di, dj = b[0] - a[0], b[1] - a[1]
    pieces = max(int(np.ceil(max(abs(di), abs(dj)) / RADIUS)), 1)
    total = 0.0
    for piece in range(pieces):
        share = (piece + 0.5) / pieces
        here = sample_field(field, a[0] + share * di, a[1] + share * dj)
        total += travel_time(dj / pieces * steps[0], di / pieces * steps[1], here)
    return total


@numba.njit(cache=True, error_model="numpy")
def sample_field(field: np.ndarray, row: float, column: float) -> Field:
    """The field at a place between nodes, bilinear."""
    i, j = min(int(row), field.shape[0] - 2), min(int(column), field.shape[1] - 2)
    upper = mixed(field_at(field, i, j), field_at(field, i, j + 1), column - j)
    lower = mixed(field_at(field, i + 1, j), field_at(field, i + 1, j + 1), column - j)
    return mixed(upper, lower, row - i)


@numba.njit(cache=True, error_model="numpy", forceinline=True)
def field_at(field: np.ndarray, i: int, j: int) -> Field:
    """The numbers of a node; a view of them would cost more than all that is done with them."""
    return field[i, j, 0], field[i, j, 1], field[i, j, 2], field[i, j, 3], field[i, j, 4]


@numba.njit(cache=True, error_model="numpy", forceinline=True)
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
