"""A directed graph with costs: what discrete worlds give and exact energies are computed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["Graph"]


@dataclass(frozen=True)
class Graph:
    """Nodes 0 … size − 1 and edges source[e] → target[e] at cost[e] ≥ 0, ordered by source, then target.

    Of parallel edges the cheapest is kept; an edge at cost +∞ is none; an edge at cost 0 is one.

    >>> graph = Graph(3, np.array([1, 0, 0, 2]), np.array([2, 1, 1, 0]), np.array([0.0, 5.0, 2.0, np.inf]))
    >>> list(zip(graph.source.tolist(), graph.target.tolist(), graph.cost.tolist()))
    [(0, 1, 2.0), (1, 2, 0.0)]
    """

    size: int
    source: np.ndarray  # (e,) whole numbers
    target: np.ndarray  # (e,) whole numbers
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
                f"The edge {source[first]} → {target[first]} costs {cost[first]:g}. Costs must be numbers ≥ 0: "
                "with a negative one, going round in circles would pay."
            )
        keep = _cheapest(source, target, cost)
        if len(keep) == 0:
            raise InputError("The graph has no edges of finite cost. Give at least one.")
        for name, array in (("source", source), ("target", target), ("cost", cost)):
            object.__setattr__(self, name, array[keep])

    def _nodes(self, nodes: np.ndarray, name: str) -> np.ndarray:
        nodes = np.asarray(nodes)
        if nodes.size and not np.issubdtype(nodes.dtype, np.integer):
            raise InputError(f"The {name}s of edges are node numbers, but they came as {nodes.dtype}.")
        outside = (nodes < 0) | (nodes >= self.size)
        if outside.any():
            raise InputError(
                f"An edge has the {name} {nodes[outside][0]}, but the graph's nodes are 0 … {self.size - 1}."
            )
        return nodes.astype(np.int64)

    @property
    def reversed(self) -> Self:
        """Every edge turned round: energies from a node in it are energies to that node here."""
        return type(self)(self.size, self.target, self.source, self.cost)


def _cheapest(source: np.ndarray, target: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Which edges to keep: the cheapest of each pair of nodes, if it is finite."""
    order = np.lexsort((cost, target, source))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(source[order]) != 0) | (np.diff(target[order]) != 0)
    kept = order[first]
    return kept[np.isfinite(cost[kept])]
