"""Fast sweeping with semi-Lagrangian updates on square rings, compiled.

    T(x) = min over p on a square ring around x of { T(p) + F(x − p) },    F: the leg time in the field halfway
    T(p) = T₀(p) + τ(p),    τ = (1 − s) τ_a + s τ_b − s (1 − s) β / 2    at the share s between ring nodes a and b

T₀ is the closed form in the field at the source, which has the kink of T at the source. β is the harmonic mean of the
second differences of τ at both nodes, and 0 where they differ in sign. So the interpolation is of fourth order where T
is smooth and linear at kinks. A ring surrounds its node, so every direction of arrival is represented for any
anisotropy.

Where the current is faster than the vehicle, T is +∞ outside a cone and edges with one end outside have no
interpolation: each leg would lose up to one node along the border of the reachable set. Nodes there also use straight
lines from the nodes of a long ring, which need few legs.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.kernels import compiled
from jepatlas.energy.exact.eikonal_legs import (
    LONG_RADIUS,
    RADIUS,
    Field,
    Frame,
    Problem,
    background_time,
    field_at,
    interpolated,
    is_fast,
    leg_time,
    line_is_clear,
    travel_time,
)

__all__ = ["sweep", "visible_ring_nodes"]

GOLDEN = 0.6180339887498949
SEARCHES = 10  # golden-section steps: they narrow two edges to 0.01 of one; the error is of the order of its square

Ring = tuple[int, int, int]
"""Row and column of the centre, and the radius."""


def _ring_nodes(radius: int) -> list[tuple[int, int]]:
    """Rows and columns of the nodes of a ring relative to its centre, starting in a corner."""
    along = range(-radius, radius)
    top = [(-radius, k) for k in along]
    right = [(k, radius) for k in along]
    opposite = [(-a, -b) for a, b in (*top, *right)]
    return [*top, *right, *opposite]


def _ring_table() -> np.ndarray:
    """The nodes of all rings, [radius, place]; the place after the last is the first again."""
    table = np.zeros((LONG_RADIUS + 1, 8 * LONG_RADIUS + 1, 2), dtype=np.int64)
    for radius in range(1, LONG_RADIUS + 1):
        table[radius, : 8 * radius + 1] = [*_ring_nodes(radius), (-radius, -radius)]
    return table


RINGS = _ring_table()


@compiled(error_model="numpy")
def sweep(values: np.ndarray, problem: Problem, tolerance: float, rounds: int) -> None:
    """Update `values` in place in rounds of four sweep directions, until no relative change exceeds the tolerance.

    Linear updates only lower values, so they converge. Parabolic updates replace values; in fields as rough as the grid
    they can oscillate by about a thousandth, so the number of rounds is limited.
    """
    active = problem.passable.copy()
    work = np.empty((8 * RADIUS + 1, 9))
    changed = True
    while changed and rounds > 0:
        changed = False
        for direction in range(4):
            if _sweep_once(values, problem, (direction, tolerance), active, work):
                changed = True
        rounds -= 1


@compiled(error_model="numpy")
def visible_ring_nodes(passable: np.ndarray, near_wall: np.ndarray) -> np.ndarray:
    """For nodes near walls, which nodes of the rings up to RADIUS are visible, (h, w, 4R(R + 1))."""
    height, width = passable.shape
    visible = np.zeros((height, width, 4 * RADIUS * (RADIUS + 1)), dtype=np.bool_)
    for i in range(height):
        for j in range(width):
            if near_wall[i, j]:
                for radius in range(1, RADIUS + 1):
                    for place in range(8 * radius):
                        di, dj = RINGS[radius, place, 0], RINGS[radius, place, 1]
                        clear = line_is_clear(passable, i, j, i + di, j + dj)
                        visible[i, j, 4 * radius * (radius - 1) + place] = clear
    return visible


@compiled(error_model="numpy")
def _sweep_once(
    values: np.ndarray, problem: Problem, rule: tuple[int, float], active: np.ndarray, work: np.ndarray
) -> bool:
    """One sweep in one of four directions; whether any value changed."""
    (height, width), (direction, tolerance) = values.shape, rule
    changed = False
    for node in range(height * width):
        row, column = divmod(node, width)
        i = row if direction < 2 else height - 1 - row
        j = column if direction % 2 == 0 else width - 1 - column
        if active[i, j]:
            active[i, j] = False
            new = _updated(values, problem, i, j, work)
            if problem.fast and not problem.smooth and is_fast(field_at(problem.halfway, 2 * i, 2 * j)):
                new = min(new, _least_on_long_ring(values, problem, i, j))
            if _differs(values[i, j], new, tolerance) and (new < values[i, j] or problem.smooth):
                values[i, j] = new
                changed = True
                _activate_neighbours(active, problem, i, j)
    return changed


@compiled(error_model="numpy")
def _differs(old: float, new: float, tolerance: float) -> bool:
    """Whether a value changed; never from finite to +∞, since only a long leg may reach a node."""
    return old != new and not abs(new - old) <= tolerance * new


@compiled(error_model="numpy")
def _activate_neighbours(active: np.ndarray, problem: Problem, i: int, j: int) -> None:
    """Mark all nodes whose update reads this node."""
    radius = (LONG_RADIUS if problem.fast and not problem.smooth else RADIUS) + 1
    for row in range(max(i - radius, 0), min(i + radius + 1, active.shape[0])):
        for column in range(max(j - radius, 0), min(j + radius + 1, active.shape[1])):
            active[row, column] = problem.passable[row, column]


@compiled(error_model="numpy")
def _updated(values: np.ndarray, problem: Problem, i: int, j: int, work: np.ndarray) -> float:
    """The semi-Lagrangian update of one node."""
    new = problem.start[i, j]
    first = 1 if problem.near_wall[i, j] else RADIUS  # walls hide parts of the large ring from the node
    for radius in range(first, RADIUS + 1):
        _gather(values, problem, (i, j, radius), work)
        new = min(new, _least_on_ring(work, problem.frame, (i, j, radius)))
        field = field_at(problem.halfway, 2 * i, 2 * j)
        if is_fast(field):  # the cone of arrival may lie between two nodes of the ring
            steps = problem.frame.steps
            place = _place_on_ring(-field[1] / steps[1], -field[0] / steps[0], radius)
            new = min(new, _cost(work, problem.frame, (i, j, radius), place))
            new = min(new, _golden_section(work, problem.frame, (i, j, radius), place))
    return new


@compiled(error_model="numpy")
def _least_on_long_ring(values: np.ndarray, problem: Problem, i: int, j: int) -> float:
    """The least T(p) + leg time over the nodes p of the long ring."""
    field, least = problem.halfway[::2, ::2], np.inf
    for place in range(8 * LONG_RADIUS):
        row, column = i + RINGS[LONG_RADIUS, place, 0], j + RINGS[LONG_RADIUS, place, 1]
        if 0 <= row < values.shape[0] and 0 <= column < values.shape[1] and values[row, column] < least:
            a, b = (float(row), float(column)), (float(i), float(j))
            time = leg_time(field, problem.passable, problem.frame.steps, a, b)
            least = min(least, float(values[row, column]) + time)
    return least


@compiled(error_model="numpy")
def _gather(values: np.ndarray, problem: Problem, ring: Ring, work: np.ndarray) -> None:
    """Fill the work array, one row per place: T (+∞ if hidden), τ, β towards the next place, and the field halfway.

    Compiled code spends its time on reference counts when it is passed many arrays, so the search gets this one only.
    """
    i, j, radius = ring
    halfway, background, visible = problem.halfway, problem.background, problem.visible
    near_wall = problem.near_wall[i, j]
    height, width = values.shape
    for place in range(8 * radius + 1):
        di, dj = RINGS[radius, place, 0], RINGS[radius, place, 1]
        row, column = i + di, j + dj
        work[place, 0] = np.inf
        if not (0 <= row < height and 0 <= column < width):
            continue
        if near_wall and not visible[i, j, 4 * radius * (radius - 1) + place % (8 * radius)]:
            continue
        work[place, 0] = values[row, column]
        work[place, 1] = values[row, column] - background[row, column]
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
                work[place, 2] = _curvature(values, background, ends[0], (ei, ej))


@compiled(error_model="numpy")
def _curvature(values: np.ndarray, background: np.ndarray, first: tuple[int, int], step: tuple[int, int]) -> float:
    """β: the harmonic mean of the second differences of τ at the inner two of four nodes in a row."""
    (i, j), (ei, ej) = first, step
    before = values[i, j] - background[i, j]
    a = values[i + ei, j + ej] - background[i + ei, j + ej]
    b = values[i + 2 * ei, j + 2 * ej] - background[i + 2 * ei, j + 2 * ej]
    after = values[i + 3 * ei, j + 3 * ej] - background[i + 3 * ei, j + 3 * ej]
    at_a, at_b = before - 2 * a + b, a - 2 * b + after
    return 2 * at_a * at_b / (at_a + at_b) if at_a * at_b > 0 and max(at_a, at_b) < np.inf else 0.0


@compiled(error_model="numpy")
def _least_on_ring(work: np.ndarray, frame: Frame, ring: Ring) -> float:
    """The least cost on a ring: at its nodes, and between nodes around every local minimum that may be lower."""
    count, best = 8 * ring[2], 0
    for place in range(count + 1):
        work[place, 8] = _cost(work, frame, ring, float(place))
        if work[place, 8] < work[best, 8]:
            best = place
    least = work[best, 8]
    for turn in range(count):
        place = (best + turn) % count
        here, left, right = work[place, 8], work[place - 1 if place > 0 else count - 1, 8], work[place + 1, 8]
        # A convex function is at most max(left, right) − here below its value at the node.
        may_be_lower = max(left, right) == np.inf or 2 * here - max(left, right) < least
        if here < np.inf and here <= min(left, right) and may_be_lower:
            least = min(least, _golden_section(work, frame, ring, float(place)))
    return least


@compiled(error_model="numpy")
def _golden_section(work: np.ndarray, frame: Frame, ring: Ring, middle: float) -> float:
    """Golden-section search on the two edges around a place; towards the middle if both probes are unreachable."""
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


@compiled(error_model="numpy")
def _cost(work: np.ndarray, frame: Frame, ring: Ring, place: float) -> float:
    """T(p) + F(x − p) at a place on the ring, counted in nodes along it."""
    floor = int(np.floor(place))
    share, a = place - floor, floor % (8 * ring[2])
    b = a + 1 if share > 0 else a
    if work[a, 0] == np.inf or work[b, 0] == np.inf:
        return np.inf
    di = (1 - share) * RINGS[ring[2], a, 0] + share * RINGS[ring[2], b, 0]
    dj = (1 - share) * RINGS[ring[2], a, 1] + share * RINGS[ring[2], b, 1]
    field = interpolated(_field_of(work, a), _field_of(work, b), share)
    time = travel_time(-dj * frame.steps[0], -di * frame.steps[1], field)
    if share == 0:
        return work[a, 0] + time
    tau = (1 - share) * work[a, 1] + share * work[b, 1] - share * (1 - share) / 2 * work[a, 2]
    return time + tau + background_time(frame, ring[0] + di, ring[1] + dj)


@compiled(error_model="numpy")
def _field_of(work: np.ndarray, place: int) -> Field:
    return work[place, 3], work[place, 4], work[place, 5], work[place, 6], work[place, 7]


@compiled(error_model="numpy")
def _place_on_ring(di: float, dj: float, radius: int) -> float:
    """The place where a ray from the centre meets the ring."""
    largest = max(abs(di), abs(dj))
    row, column = radius * di / largest, radius * dj / largest
    if -di == largest:
        return column + radius
    if dj == largest:
        return row + 3 * radius
    if di == largest:
        return 5 * radius - column
    return 7 * radius - row
