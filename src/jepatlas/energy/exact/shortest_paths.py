"""Exact energies on a directed graph: the least cost of a path from x to y, +∞ if there is none.

    E(x, y) = min over paths x = n₀ → n₁ → … → y of Σ cost(nᵢ → nᵢ₊₁),    E(x, x) = 0

by Dijkstra's algorithm. Energies to a goal are energies from it in the reversed graph, so all energies to one goal, or
to the nearest of a set of goals, take a single search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from jepatlas.core.errors import InputError
from jepatlas.core.graphs import Graph

__all__ = ["energy_to_set", "graph_energies", "shortest_path"]

Nodes = Sequence[int] | np.ndarray


def graph_energies(graph: Graph, sources: Nodes | None = None, goals: Nodes | None = None) -> np.ndarray:
    """E(source, goal), (sources, goals). Both default to all nodes.

    >>> graph_energies(Graph(3, np.array([0, 1]), np.array([1, 2]), np.array([2.0, 0.0]))).tolist()
    [[0.0, 2.0, 2.0], [inf, 0.0, 0.0], [inf, inf, 0.0]]
    """
    x = np.arange(graph.size) if sources is None else _check_nodes(graph, sources, "source")
    y = np.arange(graph.size) if goals is None else _check_nodes(graph, goals, "goal")
    if len(y) < len(x):
        return dijkstra(_sparse(graph.reversed), indices=y)[:, x].T
    return dijkstra(_sparse(graph), indices=x)[:, y]


def energy_to_set(graph: Graph, goals: Nodes) -> np.ndarray:
    """The energy from every node to the nearest of the goals, (size,)."""
    return dijkstra(_sparse(graph.reversed), indices=_check_nodes(graph, goals, "goal"), min_only=True)


def shortest_path(graph: Graph, source: int, goals: int | Nodes) -> np.ndarray:
    """The nodes of a cheapest path from a source to the nearest goal, both included; empty if there is none."""
    start = int(_check_nodes(graph, [source], "source")[0])
    ends = _check_nodes(graph, np.atleast_1d(goals), "goal")
    energy, following, _ = dijkstra(_sparse(graph.reversed), indices=ends, min_only=True, return_predecessors=True)
    if np.isinf(energy[start]):
        return np.empty(0, dtype=np.int64)
    path = [start]
    while (node := int(following[path[-1]])) >= 0:  # negative at the goal, which has no successor
        path.append(node)
    return np.array(path)


def _sparse(graph: Graph) -> csr_array:
    """The cost matrix, row to column. Stored edges of cost 0 stay edges; a dense matrix would lose them."""
    starts = np.searchsorted(graph.source, np.arange(graph.size + 1))
    return csr_array((graph.cost, graph.target, starts), shape=(graph.size, graph.size))


def _check_nodes(graph: Graph, nodes: Nodes, name: str) -> np.ndarray:
    found = np.asarray(nodes)
    if found.ndim != 1 or len(found) == 0 or not np.issubdtype(found.dtype, np.integer):
        raise InputError(f"{name} must be one or more node numbers, but {nodes!r} was given.")
    outside = (found < 0) | (found >= graph.size)
    if outside.any():
        raise InputError(f"{name} {found[outside][0]} is not a node: the nodes are 0 … {graph.size - 1}.")
    return found
