"""Sampled points, joined to their neighbours by straight edges at their effort: the least action over them.

    cost(x → y) = S of the segment from x to y,   and of the segment from y to x for the way back

A predicate or mask says which edges may be gone in which direction: so a world has one-way doors, and pairs without any
way. Paths along edges have corners, so the least cost over them is above that of the continuous world. Points may be
latents, with an effort on latents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.graphs import Graph
from jepatlas.energy.action.effort import Effort
from jepatlas.energy.action.effort_check import require_effort
from jepatlas.energy.action.euler_lagrange import path_residual
from jepatlas.energy.action.path import Path, path_action, step_efforts

__all__ = ["Admissible", "EffortGraph", "effort_graph"]

Admissible = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Which steps from x to y may be gone, (m, d), (m, d) → (m,) of bool."""

PIECES = 4  # of an edge, for its action
CHECKED = 64  # points that an effort is held to its conditions at


@dataclass(frozen=True)
class EffortGraph:
    """Points and what it costs to go from one to another along edges; no graph where no edge may be gone."""

    points: np.ndarray  # (n, d)
    effort: Effort
    graph: Graph | None

    def energies(self, sources: np.ndarray | None = None) -> np.ndarray:
        """Least action from each source (all, where none are named) to every point; +∞ where there is no way."""
        rows = np.arange(len(self.points)) if sources is None else np.asarray(sources)
        if self.graph is None:
            return np.where(rows[:, None] == np.arange(len(self.points)), 0.0, np.inf)
        return dijkstra(_sparse(self.graph), indices=rows)

    def path(self, start: int, goal: int) -> Path:
        """Along edges, each in as many steps as its action was taken in."""
        nodes = self._nodes(start, goal)
        if nodes is None:
            return Path(self.points[:0], np.inf, np.nan)
        points = _in_pieces(self.points[nodes])
        return Path(points, path_action(points, self.effort), path_residual(points, self.effort))

    def _nodes(self, start: int, goal: int) -> list[int] | None:
        if start == goal:
            return [start]
        if self.graph is None:
            return None
        _, before = dijkstra(_sparse(self.graph), indices=start, return_predecessors=True)
        nodes = [goal]
        while nodes[-1] != start:
            if (previous := int(before[nodes[-1]])) < 0:
                return None
            nodes.append(previous)
        return nodes[::-1]


def effort_graph(
    points: np.ndarray, effort: Effort, *, neighbours: int = 12, admissible: Admissible | np.ndarray | None = None
) -> EffortGraph:
    """Join each point to its nearest neighbours, both ways. A mask (n, n) says which of row → column may be gone."""
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or len(points) < 2 or neighbours < 1:
        raise InputError(
            f"A graph needs at least 2 points (n, d) and 1 neighbour, but {points.shape} and {neighbours} were given."
        )
    check_finite("points", points)
    require_effort(effort, points[:: max(1, len(points) // CHECKED)])
    source, target = _neighbour_edges(points, min(neighbours, len(points) - 1))
    with torch.no_grad():
        cost = step_efforts(torch.as_tensor(_segments(points[source], points[target])), effort).sum(-1).numpy()
    cost = np.where(_allowed(admissible, points, source, target), cost, np.inf)
    graph = Graph(len(points), source, target, cost) if np.isfinite(cost).any() else None
    return EffortGraph(points, effort, graph)


def _neighbour_edges(points: np.ndarray, neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """Each pair of neighbours in both directions, once."""
    near = KDTree(points).query(points, neighbours + 1)[1]
    pairs = np.stack([np.repeat(np.arange(len(points)), neighbours + 1), near.ravel()], 1)
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    source, target = both[both[:, 0] != both[:, 1]].T
    return source, target


def _segments(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    share = np.linspace(0, 1, PIECES + 1)[None, :, None]
    return (1 - share) * start[:, None] + share * end[:, None]


def _in_pieces(corners: np.ndarray) -> np.ndarray:
    if len(corners) == 1:
        return corners
    segments = _segments(corners[:-1], corners[1:])
    return np.concatenate([segments[:, :-1].reshape(-1, corners.shape[1]), corners[-1:]])


def _allowed(
    admissible: Admissible | np.ndarray | None, points: np.ndarray, source: np.ndarray, target: np.ndarray
) -> np.ndarray:
    if admissible is None:
        return np.ones(len(source), dtype=bool)
    if isinstance(admissible, np.ndarray):
        if admissible.shape != (len(points), len(points)):
            raise InputError(
                f"A mask of {len(points)} points is ({len(points)}, {len(points)}), not {admissible.shape}."
            )
        return admissible[source, target].astype(bool)
    return np.asarray(admissible(points[source], points[target]), dtype=bool)


def _sparse(graph: Graph) -> csr_array:
    """Its edges are ordered by source; those at cost 0, between equal points, are stored and stay."""
    starts = np.searchsorted(graph.source, np.arange(graph.size + 1))
    return csr_array((graph.cost, graph.target, starts), shape=(graph.size, graph.size))
