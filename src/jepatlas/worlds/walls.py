"""Axis-aligned walls with one-way doors: free space, lines of sight, and motion that slides along walls.

`Walls.grown(radius)` turns the walls seen in pictures into those that the centre of an agent collides with. A one-way
door is a line segment that only stops motion against its direction; a point on the line counts as having passed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

__all__ = ["CLEARANCE", "Box", "Walls", "join_lines", "segment", "slide"]

GRAZE = 1e-7  # a line of sight may overlap a wall by this much
FAR = 100.0  # outer extent of the four walls around the box
PAIRS = 1 << 18  # pairs of a line and a wall that are tested at once
CLEARANCE = 1e-9  # distance from a wall at which a stopped point rests: larger than rounding errors
MAX_SLIDES = 4  # walls passed in one move

Box = tuple[tuple[float, float], tuple[float, float]]
"""The lower and the upper corner of a rectangle."""


@dataclass(frozen=True)
class Walls:
    """Rectangles from `low` to `high`; a row with a nonzero `direction` is a one-way door."""

    low: np.ndarray  # (m, 2)
    high: np.ndarray  # (m, 2)
    direction: np.ndarray  # (m, 2): zero for a solid wall, else a unit vector along an axis

    @classmethod
    def build(cls, solid: Iterable[Box] = (), doors: Iterable[tuple[Box, tuple[int, int]]] = ()) -> Walls:
        """From rectangles, and from line segments with the direction in which they can be passed."""
        boxes = list(solid)
        directions = [(0, 0)] * len(boxes)
        for line, direction in doors:
            boxes.append(line)
            directions.append(direction)
        corners = np.array(boxes, dtype=np.float64).reshape(-1, 2, 2)
        return cls(corners[:, 0], corners[:, 1], np.array(directions, dtype=np.float64).reshape(-1, 2))

    @cached_property
    def solid(self) -> np.ndarray:
        return np.logical_and.reduce(self.direction == 0, axis=-1)

    def grown(self, margin: float) -> Walls:
        """Solid walls enlarged by a margin on every side; doors are unchanged."""
        by = margin * self.solid[:, None]
        return replace(self, low=self.low - by, high=self.high + by)

    def enclosed(self, half: float) -> Walls:
        """With four more walls around the box [−half, half]²."""
        outer = Walls.build(
            [
                ((-FAR, -FAR), (-half, FAR)),
                ((half, -FAR), (FAR, FAR)),
                ((-FAR, -FAR), (FAR, -half)),
                ((-FAR, half), (FAR, FAR)),
            ]
        )
        return Walls(
            np.concatenate([self.low, outer.low]),
            np.concatenate([self.high, outer.high]),
            np.concatenate([self.direction, outer.direction]),
        )

    def inside(self, x: np.ndarray) -> np.ndarray:
        """Whether points (..., 2) are strictly inside a solid wall."""
        (left, bottom), (right, top) = self.low[self.solid].T, self.high[self.solid].T
        first, second = x[..., 0, None], x[..., 1, None]  # one axis at a time is much faster for images
        within = (left < first) & (first < right) & (bottom < second) & (second < top)
        return np.logical_or.reduce(within, axis=-1)

    def clear(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Whether the straight line from x to y is free, (b, 2), (b, 2) → (b,)."""
        rows = max(1, PAIRS // max(1, len(self.low)))
        parts = [self._clear(x[i : i + rows], y[i : i + rows]) for i in range(0, len(x), rows)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)

    def _clear(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        shift = y - x
        graze = GRAZE * self.solid[:, None]
        near, far = _crossing_times(self.low + graze, self.high - graze, x, shift)
        enter, leave = near.max(-1), far.min(-1)
        through = (enter < leave) & (enter < 1) & (leave > 0)
        # A door is entered and left at the same time. A point on its line has passed it, so going back is blocked.
        against = (enter <= leave) & (enter < 1) & (enter >= 0) & (shift @ self.direction.T < 0)
        return ~np.where(self.solid, through, against).any(-1)


def _crossing_times(
    low: np.ndarray, high: np.ndarray, x: np.ndarray, shift: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Times at which x + t·shift enters and leaves the slab [low, high] of each axis, (b, m, 2) each."""
    x, shift = x[:, None], shift[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        to_low, to_high = (low - x) / shift, (high - x) / shift
    near, far = np.minimum(to_low, to_high), np.maximum(to_low, to_high)
    still = shift == 0
    if still.any():  # inside the slab always, or never
        between = (low < x) & (x < high)
        near = np.where(still, np.where(between, -np.inf, np.inf), near)
        far = np.where(still, np.where(between, np.inf, -np.inf), far)
    return near, far


def segment(start: tuple[float, float], end: tuple[float, float], thickness: float) -> Box:
    """A wall along the line from start to end, extended by half its thickness at both ends so that walls join.

    >>> segment((0.0, 0.0), (0.0, 1.0), 0.5)
    ((-0.25, -0.25), (0.25, 1.25))
    """
    half = thickness / 2
    low = (min(start[0], end[0]) - half, min(start[1], end[1]) - half)
    high = (max(start[0], end[0]) + half, max(start[1], end[1]) + half)
    return low, high


def join_lines(lines: Iterable[Box]) -> list[Box]:
    """Merge axis-aligned lines that continue each other; lines run from their lower to their upper end.

    >>> join_lines([((0.0, 0.0), (1.0, 0.0)), ((1.0, 0.0), (2.0, 0.0)), ((0.0, 0.0), (0.0, 1.0))])
    [((0.0, 0.0), (0.0, 1.0)), ((0.0, 0.0), (2.0, 0.0))]
    """
    lines = list(lines)
    joined: list[Box] = []
    for along in (1, 0):
        across = 1 - along
        parallel = [line for line in lines if line[0][across] == line[1][across]]
        parallel.sort(key=lambda line: (line[0][across], line[0][along]))
        for start, end in parallel:
            if joined and joined[-1][1] == start and joined[-1][0][across] == end[across]:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((start, end))
    return joined


def slide(walls: Walls, x: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """End points of moves by `shift` that slide along walls, (b, 2), (b, 2) → (b, 2).

    While a wall is touched, the velocity component across it is zero; it is restored where the wall ends. So a move is
    never longer than `shift`, and pushing against a wall does not stop the motion along it.
    """
    ends = x + shift
    active = np.flatnonzero(_may_collide(walls, x, ends))
    x, shift, remaining = x[active], shift[active], np.ones(len(active))
    for _ in range(MAX_SLIDES):
        if not len(active):
            break
        contact = _first_contact(walls, x, remaining[:, None] * shift)
        ends[active] = contact.place
        hit = contact.hit
        active, shift = active[hit], shift[hit]
        remaining = (remaining * (1 - contact.time))[hit]
        x, remaining = _slide_along(walls, contact.of(hit), shift, remaining)
        ends[active] = x
        moving = remaining > 0
        active, x, shift, remaining = active[moving], x[moving], shift[moving], remaining[moving]
    return ends


def _may_collide(walls: Walls, x: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Whether a wall overlaps the bounding box of a move, (b,); most moves need no further test."""
    low, high = np.minimum(x, ends)[:, None], np.maximum(x, ends)[:, None]
    overlap = (walls.low <= high) & (walls.high >= low)
    return np.logical_or.reduce(overlap[..., 0] & overlap[..., 1], axis=-1)


@dataclass(frozen=True)
class _Contact:
    """The first collision of each move."""

    hit: np.ndarray  # (b,): whether there is a collision
    time: np.ndarray  # (b,): when, as a fraction of the move; 1 without a collision
    wall: np.ndarray  # (b,): index of the wall
    axis: np.ndarray  # (b,): the axis across which the wall stops the move
    place: np.ndarray  # (b, 2): the position at that time

    def of(self, rows: np.ndarray) -> _Contact:
        return _Contact(self.hit[rows], self.time[rows], self.wall[rows], self.axis[rows], self.place[rows])


def _first_contact(walls: Walls, x: np.ndarray, shift: np.ndarray) -> _Contact:
    near, far = _crossing_times(walls.low, walls.high, x, shift)
    enter, leave = near.max(-1), far.min(-1)
    # A door is entered and left at the same time, and only blocks moves against its direction.
    blocks = np.where(walls.solid, enter < leave, (enter <= leave) & (shift @ walls.direction.T < 0))
    enter = np.where(blocks & (enter >= 0) & (enter <= 1), enter, np.inf)
    rows, wall = np.arange(len(x)), enter.argmin(-1)
    time, axis = enter[rows, wall], near[rows, wall].argmax(-1)
    hit = time <= 1
    time = np.minimum(time, 1.0)
    place = x + time[:, None] * shift
    rest = np.where(shift[rows, axis] > 0, walls.low[wall, axis] - CLEARANCE, walls.high[wall, axis] + CLEARANCE)
    place[rows, axis] = np.where(hit, rest, place[rows, axis])
    return _Contact(hit, time, wall, axis, place)


def _slide_along(
    walls: Walls, contact: _Contact, shift: np.ndarray, remaining: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Slide along the touched wall until it ends, another wall is hit, or the move is over.

    Returns the positions and the remaining fractions of the moves.
    """
    rows, along = np.arange(len(shift)), 1 - contact.axis
    speed = shift[rows, along]
    end = np.where(speed > 0, walls.high[contact.wall, along] + CLEARANCE, walls.low[contact.wall, along] - CLEARANCE)
    with np.errstate(divide="ignore", invalid="ignore"):
        time = np.where(speed == 0, np.inf, (end - contact.place[rows, along]) / speed)
    time = np.minimum(time, remaining)
    tangential = np.zeros_like(shift)
    tangential[rows, along] = time * speed
    second = _first_contact(walls, contact.place, tangential)
    # In a corner of two walls the move is over.
    return second.place, np.where(second.hit, 0.0, remaining - time)
