"""Least action by graph search: sampled points joined to their neighbours by straight edges.

    cost(x → y) = action of the segment from x to y;  the reverse edge has the action of the segment from y to x

A predicate or mask says which edges are admissible in which direction, which models one-way doors and unreachable
pairs. Paths along edges have corners, so the cost is an upper bound of the continuous least action; `search_path`
removes the corners by descent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial import KDTree

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError, check_count
from jepatlas.core.graphs import Graph
from jepatlas.energy.action.effort import Effort
from jepatlas.energy.action.effort_check import require_effort
from jepatlas.energy.action.paths import Path, equal_steps, minimal_paths, path_action, path_residual, step_efforts
from jepatlas.energy.exact.shortest_paths import graph_energies, shortest_path

__all__ = ["Admissible", "EffortGraph", "effort_graph", "search_path"]

Admissible = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Which steps from x to y are allowed, (m, d), (m, d) → (m,) of bool."""

PIECES = 4  # segments per edge in the quadrature of its action
CHECKED = 64  # points at which the conditions of an effort are checked


@dataclass(frozen=True)
class EffortGraph:
    """Points joined by edges of finite effort; `graph` is None if there is no such edge."""

    points: np.ndarray  # (n, d)
    effort: Effort
    graph: Graph | None

    def energies(self, sources: np.ndarray | None = None) -> np.ndarray:
        """Least action from each source (default: all points) to every point; +∞ if unreachable."""
        if self.graph is not None:
            return graph_energies(self.graph, sources)
        rows = np.arange(len(self.points)) if sources is None else np.asarray(sources)
        return np.where(rows[:, None] == np.arange(len(self.points)), 0.0, np.inf)

    def path(self, start: int, goal: int) -> Path:
        """The least-action path along edges between two points, given by their indices."""
        if start == goal:
            nodes = np.array([start])
        elif self.graph is None:
            nodes = np.empty(0, dtype=np.int64)
        else:
            nodes = shortest_path(self.graph, start, goal)
        if len(nodes) == 0:
            return Path(self.points[:0], np.inf, np.nan)
        points = _subdivided(self.points[nodes])
        return Path(points, path_action(points, self.effort), path_residual(points, self.effort))


def effort_graph(
    points: np.ndarray, effort: Effort, *, neighbours: int = 12, admissible: Admissible | np.ndarray | None = None
) -> EffortGraph:
    """Join each point to its nearest neighbours in both directions.

    `admissible` is a predicate on steps, or a mask (n, n) of the allowed steps from row to column.
    """
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or len(points) < 2:
        raise InputError(f"points must be (n, d) with n ≥ 2, but their shape is {points.shape}.")
    check_count("neighbours", neighbours)
    check_finite("points", points)
    require_effort(effort, points[:: max(1, len(points) // CHECKED)])
    source, target = _neighbour_edges(points, min(neighbours, len(points) - 1))
    with torch.no_grad():
        cost = step_efforts(torch.as_tensor(_segments(points[source], points[target])), effort).sum(-1).numpy()
    cost = np.where(_allowed(admissible, points, source, target), cost, np.inf)
    graph = Graph(len(points), source, target, cost) if np.isfinite(cost).any() else None
    return EffortGraph(points, effort, graph)


def search_path(
    start: np.ndarray,
    goal: np.ndarray,
    points: np.ndarray,
    effort: Effort,
    *,
    neighbours: int = 12,
    admissible: Admissible | None = None,
    steps: int = 32,
) -> Path:
    """The least-action path from start (d,) to goal (d,): graph search over sampled points, then descent.

    The descent ignores `admissible`; its result is used only if every step of it is admissible.
    """
    start = np.asarray(start, dtype=np.float64)[None]
    goal = np.asarray(goal, dtype=np.float64)[None]
    nodes = np.concatenate([start, goal, points])
    if (nodes[0] == nodes[1]).all():
        return Path(nodes[:1], 0.0, 0.0)
    rough = effort_graph(nodes, effort, neighbours=neighbours, admissible=admissible).path(0, 1)
    if not rough.reached:
        return rough
    initial = equal_steps(rough.points, steps)[None]
    fine = minimal_paths(nodes[:1], nodes[1:2], effort, steps=steps, initial=initial)[0]
    allowed = admissible is None or bool(np.all(admissible(fine.points[:-1], fine.points[1:])))
    return fine if fine.action <= rough.action and allowed else rough


def _neighbour_edges(points: np.ndarray, neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """Sources and targets of the edges between neighbours; each direction once."""
    nearest = KDTree(points).query(points, neighbours + 1)[1]
    pairs = np.stack([np.repeat(np.arange(len(points)), neighbours + 1), nearest.ravel()], 1)
    both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    source, target = both[both[:, 0] != both[:, 1]].T
    return source, target


def _segments(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Points on the segments, (m, d), (m, d) → (m, PIECES + 1, d)."""
    share = np.linspace(0, 1, PIECES + 1)[None, :, None]
    return (1 - share) * start[:, None] + share * end[:, None]


def _subdivided(corners: np.ndarray) -> np.ndarray:
    """The path through the corners with each edge in PIECES steps."""
    if len(corners) == 1:
        return corners
    segments = _segments(corners[:-1], corners[1:])
    return np.concatenate([segments[:, :-1].reshape(-1, corners.shape[1]), corners[-1:]])


def _allowed(
    admissible: Admissible | np.ndarray | None, points: np.ndarray, source: np.ndarray, target: np.ndarray
) -> np.ndarray:
    if admissible is None:
        return np.ones(len(source), dtype=bool)
    if not isinstance(admissible, np.ndarray):
        return np.asarray(admissible(points[source], points[target]), dtype=bool)
    count = len(points)
    if admissible.shape != (count, count):
        raise InputError(
            f"admissible has shape {admissible.shape}, but a mask of {count} points is ({count}, {count})."
        )
    return admissible[source, target].astype(bool)
