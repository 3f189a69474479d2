"""Exact distances among walls: a shortest path bends only at corners, so it runs through the graph of what sees what.

    d(x, y) = min( |x − y| if y is seen from x,  min over corners c seen from x of |x − c| + d(c, y) )

"Seen" means that one gets there straight; a one-way door makes that a matter of direction. A door's line ends in walls,
so that no path bends at it. What cannot be reached is at distance +∞.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import dijkstra

from jepatlas.core.errors import InputError
from jepatlas.worlds.walls import Walls

__all__ = ["Geodesics", "check_places"]

TRIED = 2  # corners looked at in one go, the most promising first; mostly the first or the second is seen


@dataclass(frozen=True)
class Geodesics:
    """Lengths of shortest paths among walls, which are those that the moving point itself meets."""

    walls: Walls

    def to(self, goal: np.ndarray, x: np.ndarray) -> np.ndarray:
        """From each of the points to the goal: (2,), (b, 2) → (b,)."""
        beyond = self._ends(goal, back=False)
        return self._nearest(x, np.vstack([goal, self.corners]), np.append(0.0, beyond), back=False)

    def from_(self, start: np.ndarray, x: np.ndarray) -> np.ndarray:
        """From the start to each of the points: (2,), (b, 2) → (b,)."""
        beyond = self._ends(start, back=True)
        return self._nearest(x, np.vstack([start, self.corners]), np.append(0.0, beyond), back=True)

    @cached_property
    def corners(self) -> np.ndarray:
        """Corners of the walls that are not within another, (c, 2)."""
        low, high = self.walls.low[self.walls.solid], self.walls.high[self.walls.solid]
        every = [np.stack([a[:, 0], b[:, 1]], -1) for a in (low, high) for b in (low, high)]
        corners = np.unique(np.concatenate(every), axis=0)
        return corners[~self.walls.inside(corners)]

    @cached_property
    def _between(self) -> np.ndarray:
        """d from corner to corner, (c, c)."""
        return dijkstra(self._lengths(self.corners, self.corners))

    def _lengths(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """|x − y| where y is seen from x, else +∞: (a, 2), (b, 2) → (a, b)."""
        pairs = np.repeat(x, len(y), axis=0), np.tile(y, (len(x), 1))
        length = np.linalg.norm(pairs[1] - pairs[0], axis=-1)
        return np.where(self.walls.clear(*pairs), length, np.inf).reshape(len(x), len(y))

    def _ends(self, place: np.ndarray, back: bool) -> np.ndarray:
        """d from every corner to a place, or back from the place to every corner: (c,)."""
        place = np.asarray(place, dtype=np.float64)[None]
        if back:
            return (self._lengths(place, self.corners) + self._between.T).min(-1, initial=np.inf)
        return (self._lengths(self.corners, place).T + self._between).min(-1, initial=np.inf)

    def _nearest(self, x: np.ndarray, over: np.ndarray, beyond: np.ndarray, back: bool) -> np.ndarray:
        """min over places o seen from x of |x − o| + beyond(o).

        The places are tried in the order of that sum, so the first one that is seen is the best.
        """
        x = np.asarray(x, dtype=np.float64)
        total = np.linalg.norm(x[:, None] - over, axis=-1) + beyond
        order = total.argsort(-1)
        best, open_ = np.full(len(x), np.inf), np.arange(len(x))
        for first in range(0, len(over), TRIED):
            tried = order[open_, first : first + TRIED]
            here, there = np.repeat(x[open_], tried.shape[1], axis=0), over[tried.ravel()]
            seen = (self.walls.clear(there, here) if back else self.walls.clear(here, there)).reshape(tried.shape)
            sums = np.where(seen, np.take_along_axis(total[open_], tried, -1), np.inf)
            best[open_] = sums.min(-1)
            open_ = open_[np.isinf(best[open_])]
            if not len(open_):
                break
        return best


def check_places(
    place: np.ndarray, states: np.ndarray, admits: Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """A place and states as numbers, (2,) and (b, 2), or a refusal that names the one that cannot be."""
    if np.shape(place) != (2,) or np.shape(states)[1:] != (2,):
        shapes = f"{np.shape(place)} and {np.shape(states)}"
        raise InputError(f"Distances join a place (2,) and states (b, 2), but {shapes} were given.")
    every = np.vstack([place, states]).astype(np.float64)
    if not (allowed := admits(every)).all():
        raise InputError(f"The place {every[~allowed][0].tolist()} is in a wall, or outside the world.")
    return every[0], every[1:]
