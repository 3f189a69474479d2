"""Moves among walls: straight until a wall is met, then along it.

While a wall is touched it takes away the part of the velocity that goes across it, and gives it back where the wall
ends. So a move is never longer than it was meant to be, and a push against a wall does not hold one fast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.worlds.walls import Walls, crossing_times

__all__ = ["slide"]

REST = 1e-9  # how far from a wall a stopped point comes to rest: further than rounding, nearer than anyone sees
TURNS = 4  # walls left behind in one move, at most; beyond that it is over


def slide(walls: Walls, x: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Where moves by `shift` end, (b, 2), (b, 2) → (b, 2)."""
    ends = x + shift
    going = _may_meet(walls, x, ends).nonzero()[0]
    x, shift, left = x[going], shift[going], np.ones(len(going))  # of those who still go, and the part that is left
    for _ in range(TURNS if len(going) else 0):
        contact = _first_contact(walls, x, left[:, None] * shift)
        ends[going] = contact.place
        met = contact.met
        if not met.any():
            break
        going, shift, left = going[met], shift[met], (left * (1 - contact.time))[met]
        x, left = _along(walls, contact.of(met), shift, left)
        ends[going] = x
        more = left > 0
        if not more.any():
            break
        going, x, shift, left = going[more], x[more], shift[more], left[more]
    return ends


def _may_meet(walls: Walls, x: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Whether a wall reaches into the rectangle of a move, (b,): most moves are in the open, and done."""
    low, high = np.minimum(x, ends)[:, None], np.maximum(x, ends)[:, None]
    both = (walls.low <= high) & (walls.high >= low)
    return np.logical_or.reduce(both[..., 0] & both[..., 1], axis=-1)


@dataclass(frozen=True)
class Contact:
    """What moves meet first."""

    met: np.ndarray  # (b,): whether anything is met
    time: np.ndarray  # (b,): when, as a part of the move; 1 where nothing is
    wall: np.ndarray  # (b,): which wall
    axis: np.ndarray  # (b,): across which axis it stops the move
    place: np.ndarray  # (b, 2): where one is then

    def of(self, rows: np.ndarray) -> Contact:
        return Contact(self.met[rows], self.time[rows], self.wall[rows], self.axis[rows], self.place[rows])


def _first_contact(walls: Walls, x: np.ndarray, shift: np.ndarray) -> Contact:
    near, far = crossing_times(walls.low, walls.high, x, shift)
    enter, leave = near.max(-1), far.min(-1)
    # a door is a line, entered and left at once, and there only for those who come against its way
    met = np.where(walls.solid, enter < leave, (enter <= leave) & (shift @ walls.way.T < 0))
    enter = np.where(met & (enter >= 0) & (enter <= 1), enter, np.inf)
    rows, wall = np.arange(len(x)), enter.argmin(-1)
    time, axis = enter[rows, wall], near[rows, wall].argmax(-1)
    met, time = time <= 1, np.minimum(time, 1.0)
    place = x + time[:, None] * shift
    rest = np.where(shift[rows, axis] > 0, walls.low[wall, axis] - REST, walls.high[wall, axis] + REST)
    place[rows, axis] = np.where(met, rest, place[rows, axis])
    return Contact(met, time, wall, axis, place)


def _along(walls: Walls, contact: Contact, shift: np.ndarray, left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the walls end that were met, or another is met, or the move is over; and which part of it is left."""
    rows, along = np.arange(len(shift)), 1 - contact.axis
    speed = shift[rows, along]
    end = np.where(speed > 0, walls.high[contact.wall, along] + REST, walls.low[contact.wall, along] - REST)
    with np.errstate(divide="ignore", invalid="ignore"):
        time = np.where(speed == 0, np.inf, (end - contact.place[rows, along]) / speed)
    time = np.minimum(time, left)
    only_along = np.zeros_like(shift)
    only_along[rows, along] = time * speed
    then = _first_contact(walls, contact.place, only_along)
    return then.place, np.where(then.met, 0.0, left - time)  # two walls at once leave nowhere to go
