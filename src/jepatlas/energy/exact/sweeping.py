"""The compiled heart of the eikonal solver: semi-Lagrangian updates, swept over the grid until nothing changes.

    T(x) = min over p on a square ring round x of { T(p) + F(x − p) },    F: Zermelo's time in the field halfway

A ring surrounds its node whole, so every direction of arrival is represented whatever the anisotropy, and no order of
updates has to be known: sweeps in four directions repeat wherever something near by has changed.

Between two nodes T is interpolated as T₀ + τ: T₀ is the closed form in the current at the source, which has the kink
there, and τ a parabola whose curvature is the harmonic mean of those at both nodes, none where they differ in sign.
That is of fourth order where T is smooth and linear at kinks.

Where the current is faster than the vehicle, T is +∞ outside a cone, and an edge with one end outside has no T between:
every leg loses up to a node along the border of what can be reached. So such nodes also look at the nodes of a long
ring, along straight lines in pieces: long legs are few.

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
    "Frame",
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


class Frame(NamedTuple):
    """Lengths between nodes, (x, y), and what T₀ is made of: row and column of the source, and the field there."""

    steps: tuple[float, float]
    source: tuple[float, float]
    origin: Field
    factored: bool  # else T₀ = 0


class Problem(NamedTuple):
    """All that an update reads."""

    frame: Frame
    halfway: np.ndarray  # (2h − 1, 2w − 1, 5) the field at nodes and halfway between them
    passable: np.ndarray  # (h, w)
    start: np.ndarray  # (h, w) times along straight lines from the sources near by, +∞ elsewhere
    plain: np.ndarray  # (h, w) T₀
    by_wall: np.ndarray  # (h, w)
    seen: np.ndarray  # (h, w, 4R(R + 1)) what nodes near walls see of the rings round them
    smooth: bool  # parabolas, or straight lines between nodes
    torrent: bool  # whether the current is faster than the vehicle anywhere


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
            new = _renewed(values, problem, i, j, work)
            if problem.torrent and not problem.smooth and is_torrent(field_at(problem.halfway, 2 * i, 2 * j)):
                new = min(new, _least_on_long_ring(values, problem, i, j))
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


@numba.njit(cache=True, error_model="numpy")
def _renewed(values: np.ndarray, problem: Problem, i: int, j: int, work: np.ndarray) -> float:
    new = problem.start[i, j]
    first = 1 if problem.by_wall[i, j] else RADIUS  # a wall hides parts of the large ring; smaller ones look past it
    for radius in range(first, RADIUS + 1):
        _gather(values, problem, (i, j, radius), work)
        new = min(new, _least_on_ring(work, problem.frame, (i, j, radius)))
        field = field_at(problem.halfway, 2 * i, 2 * j)
        if is_torrent(field):  # its cone of arrival may lie between two nodes of the ring
            steps = problem.frame.steps
            place = _place_on_ring(-field[1] / steps[1], -field[0] / steps[0], radius)
            new = min(new, _cost(work, problem.frame, (i, j, radius), place))
            new = min(new, _search(work, problem.frame, (i, j, radius), place))
    return new


@numba.njit(cache=True, error_model="numpy")
def _least_on_long_ring(values: np.ndarray, problem: Problem, i: int, j: int) -> float:
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


@numba.njit(cache=True, error_model="numpy")
def _least_on_ring(work: np.ndarray, frame: Frame, ring: Ring) -> float:
    """T(x) by a ring: from its best node on, and from other valleys that may be deeper between nodes."""
    count, best = 8 * ring[2], 0
    for place in range(count + 1):
        work[place, 8] = _cost(work, frame, ring, float(place))
        if work[place, 8] < work[best, 8]:
            best = place
    least = work[best, 8]
    for turn in range(count):
        place = (best + turn) % count
        cost, left, right = work[place, 8], work[place - 1 if place > 0 else count - 1, 8], work[place + 1, 8]
        # A convex valley lies no deeper below its node than the node below its higher neighbour.
        deep = max(left, right) == np.inf or 2 * cost - max(left, right) < least
        if cost < np.inf and cost <= min(left, right) and deep:
            least = min(least, _search(work, frame, ring, float(place)))
    return least


@numba.njit(cache=True, error_model="numpy")
def _search(work: np.ndarray, frame: Frame, ring: Ring, middle: float) -> float:
    """Golden section over the two edges round a place; where both probes are out of reach, towards the middle."""
    low, high, least = middle - 1, middle + 1, np.inf
    left, right = high - 2 * GOLDEN, low + 2 * GOLDEN
    at_left, at_right = _cost(work, frame, ring, left), _cost(work, frame, ring, right)
    for _ in range(SEARCHES):
        least = min(least, at_left, at_right)
        if at_left == np.inf and at_right == np.inf:
            low, high = left, right
            left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
            at_left, at_right = _cost(work, frame, ring, left), _cost(work, frame, ring, right)
        elif at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = _cost(work, frame, ring, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = _cost(work, frame, ring, right)
    return min(least, at_left, at_right)


@numba.njit(cache=True, error_model="numpy")
def _cost(work: np.ndarray, frame: Frame, ring: Ring, place: float) -> float:
    """T(p) + F(x − p) for a place on the ring, counted in nodes along it."""
    floor = int(np.floor(place))
    share, a = place - floor, floor % (8 * ring[2])
    b = a + 1 if share > 0 else a
    if work[a, 0] == np.inf or work[b, 0] == np.inf:
        return np.inf
    di = (1 - share) * RINGS[ring[2], a, 0] + share * RINGS[ring[2], b, 0]
    dj = (1 - share) * RINGS[ring[2], a, 1] + share * RINGS[ring[2], b, 1]
    field = mixed(_field_of(work, a), _field_of(work, b), share)
    time = travel_time(-dj * frame.steps[0], -di * frame.steps[1], field)
    if share == 0:
        return work[a, 0] + time
    tau = (1 - share) * work[a, 1] + share * work[b, 1] - share * (1 - share) / 2 * work[a, 2]
    return time + tau + plain_time(frame, ring[0] + di, ring[1] + dj)


@numba.njit(cache=True, error_model="numpy")
def _field_of(work: np.ndarray, place: int) -> Field:
    return work[place, 3], work[place, 4], work[place, 5], work[place, 6], work[place, 7]


@numba.njit(cache=True, error_model="numpy")
def plain_time(frame: Frame, row: float, column: float) -> float:
    """T₀ at a place."""
    if not frame.factored:
        return 0.0
    dx, dy = (column - frame.source[1]) * frame.steps[0], (row - frame.source[0]) * frame.steps[1]
    return travel_time(dx, dy, frame.origin)


@numba.njit(cache=True, error_model="numpy")
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
def plain_times(shape: tuple[int, int], frame: Frame) -> np.ndarray:
    """T₀ at the nodes."""
    times = np.empty(shape)
    for i in range(shape[0]):
        for j in range(shape[1]):
            times[i, j] = plain_time(frame, float(i), float(j))
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
                found[n] = min(found[n], leg_time(field, problem.passable, problem.frame.steps, source, (row, column)))
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
                    nearest,
                    values[m, n] + leg_time(field, problem.passable, problem.frame.steps, corner, (row, column)),
                )
    if tau == np.inf:  # a corner is out of reach: on from the best of the others
        return nearest
    return max(tau + plain_time(problem.frame, row, column), 0.0)  # T₀ and −T₀ cancel at the source, but for rounding


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
def _place_on_ring(di: float, dj: float, radius: int) -> float:
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
