"""Exact energies on a directed graph: the least cost of a path from x to y, +∞ where there is none.

    E(x, y) = min over paths x = n₀ → n₁ → … → y of Σ cost(nᵢ → nᵢ₊₁),    E(x, x) = 0

by scipy's Dijkstra. Energies to a goal are energies from it in the reversed graph, so a goal costs one search however
many nodes start from; so does a set of goals, to which the distance is that of its nearest member.
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
    """E(source, goal), (sources, goals); all nodes where none are named.

    >>> graph_energies(Graph(3, np.array([0, 1]), np.array([1, 2]), np.array([2.0, 0.0]))).tolist()
    [[0.0, 2.0, 2.0], [inf, 0.0, 0.0], [inf, inf, 0.0]]
    """
    x = np.arange(graph.size) if sources is None else _checked(graph, sources, "source")
    y = np.arange(graph.size) if goals is None else _checked(graph, goals, "goal")
    if len(y) < len(x):
        return dijkstra(_sparse(graph.reversed), indices=y)[:, x].T
    return dijkstra(_sparse(graph), indices=x)[:, y]


def energy_to_set(graph: Graph, goals: Nodes) -> np.ndarray:
    """From every node, the energy to the nearest of the goals, (size,)."""
    return dijkstra(_sparse(graph.reversed), indices=_checked(graph, goals, "goal"), min_only=True)


def shortest_path(graph: Graph, source: int, goals: int | Nodes) -> np.ndarray:
    """The nodes of a cheapest path from a source to the nearest of the goals, both included; empty if there is none."""
    start = int(_checked(graph, [source], "source")[0])
    ends = _checked(graph, np.atleast_1d(goals), "goal")
    energy, following, _ = dijkstra(_sparse(graph.reversed), indices=ends, min_only=True, return_predecessors=True)
    if np.isinf(energy[start]):
        return np.empty(0, dtype=np.int64)
    path = [start]
    while (node := int(following[path[-1]])) >= 0:  # the goal itself has none: a negative number
        path.append(node)
    return np.array(path)


def _sparse(graph: Graph) -> csr_array:
    """Row to column. An edge at cost 0 stays: it is stored, and only arithmetic and dense forms would lose it."""
    starts = np.searchsorted(graph.source, np.arange(graph.size + 1))
    return csr_array((graph.cost, graph.target, starts), shape=(graph.size, graph.size))


def _checked(graph: Graph, nodes: Nodes, name: str) -> np.ndarray:
    found = np.asarray(nodes)
    if found.ndim != 1 or len(found) == 0 or not np.issubdtype(found.dtype, np.integer):
        raise InputError(f"Give at least one {name}, as a list of node numbers; got {nodes!r}.")
    outside = (found < 0) | (found >= graph.size)
    if outside.any():
        raise InputError(f"The {name} {found[outside][0]} is not in the graph, whose nodes are 0 … {graph.size - 1}.")
    return found
