"""Exact shortest paths among walls, by the visibility graph: a shortest path only bends at corners.

    d(x, y) = min( |x − y| if y is visible from x,  min over corners c visible from x of |x − c| + d(c, y) )

"Visible" means that the straight line is free; with one-way doors this depends on the direction. Doors end in walls, so
no path bends at the end of a door. Unreachable points are at distance +∞.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jepatlas.worlds.walls import Walls

__all__ = ["Geodesics"]

TRIED = 2  # corners tested at once, most promising first; usually the first or second is visible


@dataclass(frozen=True)
class Geodesics:
    """Lengths of shortest paths of a point among walls."""

    walls: Walls

    def to(self, goal: np.ndarray, x: np.ndarray) -> np.ndarray:
        """From each point to the goal: (2,), (b, 2) → (b,)."""
        via = np.vstack([goal, self.corners])
        rest = np.append(0.0, self._from_corners(goal))
        return self._shortest(x, via, rest, outgoing=True)

    def from_(self, start: np.ndarray, x: np.ndarray) -> np.ndarray:
        """From the start to each point: (2,), (b, 2) → (b,)."""
        via = np.vstack([start, self.corners])
        rest = np.append(0.0, self._to_corners(start))
        return self._shortest(x, via, rest, outgoing=False)

    @cached_property
    def corners(self) -> np.ndarray:
        """Corners of walls that are not inside another wall, (c, 2)."""
        low, high = self.walls.low[self.walls.solid], self.walls.high[self.walls.solid]
        corners = [np.stack([a[:, 0], b[:, 1]], -1) for a in (low, high) for b in (low, high)]
        unique = np.unique(np.concatenate(corners), axis=0)
        return unique[~self.walls.inside(unique)]

    @cached_property
    def _between_corners(self) -> np.ndarray:
        """d between corners, (c, c)."""
        from scipy.sparse.csgraph import dijkstra  # noqa: PLC0415  (slow to import)

        return dijkstra(self._visible_lengths(self.corners, self.corners))

    def _visible_lengths(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """|x − y| if y is visible from x, else +∞: (a, 2), (b, 2) → (a, b)."""
        start, end = np.repeat(x, len(y), axis=0), np.tile(y, (len(x), 1))
        length = np.linalg.norm(end - start, axis=-1)
        return np.where(self.walls.clear(start, end), length, np.inf).reshape(len(x), len(y))

    def _from_corners(self, goal: np.ndarray) -> np.ndarray:
        """d from every corner to the goal, (c,)."""
        goal = np.asarray(goal, dtype=np.float64)[None]
        return (self._visible_lengths(self.corners, goal).T + self._between_corners).min(-1, initial=np.inf)

    def _to_corners(self, start: np.ndarray) -> np.ndarray:
        """d from the start to every corner, (c,)."""
        start = np.asarray(start, dtype=np.float64)[None]
        return (self._visible_lengths(start, self.corners) + self._between_corners.T).min(-1, initial=np.inf)

    def _shortest(self, x: np.ndarray, via: np.ndarray, rest: np.ndarray, *, outgoing: bool) -> np.ndarray:
        """min over points v of `via` of |x − v| + rest(v), if v is visible from x (or, if not outgoing, x from v).

        Points are tested in the order of that sum, so the first visible one is the minimum.
        """
        x = np.asarray(x, dtype=np.float64)
        total = np.linalg.norm(x[:, None] - via, axis=-1) + rest
        order = total.argsort(-1)
        best = np.full(len(x), np.inf)
        open_rows = np.arange(len(x))
        for first in range(0, len(via), TRIED):
            tried = order[open_rows, first : first + TRIED]
            here = np.repeat(x[open_rows], tried.shape[1], axis=0)
            there = via[tried.ravel()]
            visible = self.walls.clear(here, there) if outgoing else self.walls.clear(there, here)
            sums = np.take_along_axis(total[open_rows], tried, -1)
            best[open_rows] = np.where(visible.reshape(tried.shape), sums, np.inf).min(-1)
            open_rows = open_rows[np.isinf(best[open_rows])]
            if not len(open_rows):
                break
        return best
