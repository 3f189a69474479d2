"""Walls along the axes and one-way doors in them: where one can be, and whether one gets straight from x to y.

A point meets a wall with a margin: `grown` by the radius of an agent, walls are what its centre cannot enter. A one-way
door is a line that stops only those who cross it against its way; on the line one has passed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

__all__ = ["Box", "Walls", "crossing_times", "joined_lines", "segment", "walls"]

GRAZE = 1e-7  # a line of sight may touch a wall by so much
FAR = 100.0  # the walls round the box reach that far out
PAIRS = 1 << 18  # of moves and walls looked at in one go


@dataclass(frozen=True)
class Walls:
    """Rectangles from `low` to `high`; one with a `way` is a line that can only be crossed along it."""

    low: np.ndarray  # (m, 2)
    high: np.ndarray  # (m, 2)
    way: np.ndarray  # (m, 2): zero for a solid wall, else a unit vector along an axis

    @cached_property
    def solid(self) -> np.ndarray:
        return np.logical_and.reduce(self.way == 0, axis=-1)

    def grown(self, margin: float) -> Walls:
        """Solid walls thicker by a margin on every side; doors as they are."""
        by = margin * self.solid[:, None]
        return replace(self, low=self.low - by, high=self.high + by)

    def closed(self, half: float) -> Walls:
        """With four walls more, round the box [−half, half]²."""
        outer = [((-FAR, -FAR), (-half, FAR)), ((half, -FAR), (FAR, FAR))]
        outer += [((-FAR, -FAR), (FAR, -half)), ((-FAR, half), (FAR, FAR))]
        return _joined(self, walls(outer))

    def inside(self, x: np.ndarray) -> np.ndarray:
        """Whether points (..., 2) are within a solid wall; its faces are not."""
        (left, down), (right, up) = self.low[self.solid].T, self.high[self.solid].T
        first, second = x[..., 0, None], x[..., 1, None]  # axis by axis, which is far quicker for pictures
        within = (left < first) & (first < right) & (down < second) & (second < up)
        return np.logical_or.reduce(within, axis=-1)

    def clear(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Whether one gets straight from x to y, (b, 2), (b, 2) → (b,)."""
        rows = max(1, PAIRS // max(1, len(self.low)))
        parts = [self._clear(x[i : i + rows], y[i : i + rows]) for i in range(0, len(x), rows)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)

    def _clear(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        shift = y - x
        graze = GRAZE * self.solid[:, None]
        near, far = crossing_times(self.low + graze, self.high - graze, x, shift)
        enter, leave = near.max(-1), far.min(-1)
        through = (enter < leave) & (enter < 1) & (leave > 0)
        # at a door the two times are one; a point on its line has passed it already, so that coming back is refused
        against = (enter <= leave) & (enter < 1) & (enter >= 0) & (shift @ self.way.T < 0)
        return ~np.where(self.solid, through, against).any(-1)


def crossing_times(
    low: np.ndarray, high: np.ndarray, x: np.ndarray, shift: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """When x + t·shift comes between the sides low and high, and when it leaves them, on each axis: (b, m, 2) each."""
    x, shift = x[:, None], shift[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        to_low, to_high = (low - x) / shift, (high - x) / shift
    near, far = np.minimum(to_low, to_high), np.maximum(to_low, to_high)
    still = shift == 0
    if still.any():  # between the sides always, or never
        between = (low < x) & (x < high)
        near = np.where(still, np.where(between, -np.inf, np.inf), near)
        far = np.where(still, np.where(between, np.inf, -np.inf), far)
    return near, far


Box = tuple[tuple[float, float], tuple[float, float]]
"""The lower and the upper corner of a rectangle."""


def segment(start: tuple[float, float], end: tuple[float, float], thickness: float) -> Box:
    """A wall along the line from start to end, which reaches half its thickness beyond both, so that walls join.

    >>> segment((0.0, 0.0), (0.0, 1.0), 0.5)
    ((-0.25, -0.25), (0.25, 1.25))
    """
    (a, b), (c, d), half = start, end, thickness / 2
    return (min(a, c) - half, min(b, d) - half), (max(a, c) + half, max(b, d) + half)


def joined_lines(lines: Iterable[Box]) -> list[Box]:
    """Lines along the axes, from their lower to their upper end, with those made one that go on from each other.

    >>> joined_lines([((0.0, 0.0), (1.0, 0.0)), ((1.0, 0.0), (2.0, 0.0)), ((0.0, 0.0), (0.0, 1.0))])
    [((0.0, 0.0), (0.0, 1.0)), ((0.0, 0.0), (2.0, 0.0))]
    """
    lines, joined = list(lines), list[Box]()
    for along in (1, 0):
        mine = [line for line in lines if line[0][1 - along] == line[1][1 - along]]
        for start, end in sorted(mine, key=lambda line: (line[0][1 - along], line[0][along])):
            if joined and joined[-1][1] == start and joined[-1][0][1 - along] == end[1 - along]:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((start, end))
    return joined


def walls(solid: Iterable[Box] = (), doors: Iterable[tuple[Box, tuple[int, int]]] = ()) -> Walls:
    """From rectangles, and lines with the way they let one through."""
    solid, doors = list(solid), list(doors)
    boxes = np.array([*solid, *(line for line, _ in doors)], dtype=np.float64).reshape(-1, 2, 2)
    way = np.array([*((0, 0) for _ in solid), *(way for _, way in doors)], dtype=np.float64).reshape(-1, 2)
    return Walls(boxes[:, 0], boxes[:, 1], way)


def _joined(first: Walls, second: Walls) -> Walls:
    return Walls(
        *(np.concatenate([getattr(part, name) for part in (first, second)]) for name in ("low", "high", "way"))
    )
