"""The way that an energy leads: at every state the step is taken after which step and rest together cost least."""

from __future__ import annotations

import numpy as np

from jepatlas.core.graphs import Graph

__all__ = ["greedy_way"]


def greedy_way(graph: Graph, to_goal: np.ndarray, start: int, goal: int) -> np.ndarray:
    """States from `start` on, by E(state, goal) of every state; it ends at the goal, or where it would go in circles.

    Under the exact energy this is a cheapest way.

    >>> chain = Graph(3, np.array([0, 1]), np.array([1, 2]), np.ones(2))
    >>> greedy_way(chain, np.array([2.0, 1.0, 0.0]), 0, 2).tolist()
    [0, 1, 2]
    """
    way = [start]
    while way[-1] != goal:
        edges = np.flatnonzero(graph.source == way[-1])
        if not len(edges):
            break
        best = edges[np.argmin(graph.cost[edges] + to_goal[graph.target[edges]])]
        if int(graph.target[best]) in way:
            break
        way.append(int(graph.target[best]))
    return np.array(way)
