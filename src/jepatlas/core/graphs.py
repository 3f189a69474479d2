"""Directed graphs with edge costs, for discrete worlds and exact energies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["Graph"]


@dataclass(frozen=True)
class Graph:
    """Nodes 0 … size − 1 and edges source[e] → target[e] at cost[e] ≥ 0, ordered by source, then target.

    Of parallel edges the cheapest is kept. Edges of cost +∞ are dropped; edges of cost 0 are kept.

    >>> graph = Graph(3, np.array([1, 0, 0, 2]), np.array([2, 1, 1, 0]), np.array([0.0, 5.0, 2.0, np.inf]))
    >>> list(zip(graph.source.tolist(), graph.target.tolist(), graph.cost.tolist()))
    [(0, 1, 2.0), (1, 2, 0.0)]
    """

    size: int
    source: np.ndarray  # (e,) integers
    target: np.ndarray  # (e,) integers
    cost: np.ndarray  # (e,) float64

    def __post_init__(self) -> None:
        cost = np.asarray(self.cost, dtype=np.float64)
        source, target = (self._nodes(getattr(self, name), name) for name in ("source", "target"))
        if not source.shape == target.shape == cost.shape or cost.ndim != 1:
            raise InputError(
                f"A graph's edges need one source, target and cost each, but there are {source.shape}, "
                f"{target.shape} and {cost.shape}."
            )
        wrong = np.isnan(cost) | (cost < 0)
        if wrong.any():
            first = int(np.argmax(wrong))
            raise InputError(
                f"The edge {source[first]} → {target[first]} has cost {cost[first]:g}, but costs must be ≥ 0: "
                "a cycle of negative cost would have no cheapest path."
            )
        keep = _cheapest(source, target, cost)
        if len(keep) == 0:
            raise InputError("The graph has no edges of finite cost. Give at least one.")
        for name, array in (("source", source), ("target", target), ("cost", cost)):
            object.__setattr__(self, name, array[keep])

    def _nodes(self, nodes: np.ndarray, name: str) -> np.ndarray:
        nodes = np.asarray(nodes)
        if nodes.size and not np.issubdtype(nodes.dtype, np.integer):
            raise InputError(f"{name} must hold integer node numbers, but its type is {nodes.dtype}.")
        outside = (nodes < 0) | (nodes >= self.size)
        if outside.any():
            raise InputError(
                f"{name} contains the node {nodes[outside][0]}, but the graph's nodes are 0 … {self.size - 1}."
            )
        return nodes.astype(np.int64)

    @property
    def reversed(self) -> Self:
        """The graph with all edges reversed: costs from a node in it are costs to that node in this graph."""
        return type(self)(self.size, self.target, self.source, self.cost)


def _cheapest(source: np.ndarray, target: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Indices of the cheapest finite edge of each pair of nodes."""
    order = np.lexsort((cost, target, source))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(source[order]) != 0) | (np.diff(target[order]) != 0)
    kept = order[first]
    return kept[np.isfinite(cost[kept])]
