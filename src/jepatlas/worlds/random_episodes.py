"""Episodes of a random policy on a graph of states, and experience from any sequence of states."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.core.errors import check_argument, check_count
from jepatlas.core.graphs import Graph
from jepatlas.core.records import Experience
from jepatlas.core.seeding import numpy_generator

__all__ = ["as_experience", "check_walk", "covered_edges", "walk_graph"]

Observe = Callable[[np.ndarray], np.ndarray]


def check_walk(episodes: int, length: int, coverage: float) -> None:
    check_count("episodes", episodes)
    check_count("length", length)
    check_argument("coverage", coverage, 0 < coverage <= 1, "above 0 and at most 1")


def walk_graph(graph: Graph, episodes: int, length: int, seed: int, coverage: float) -> tuple[np.ndarray, np.ndarray]:
    """Random walks: states (episodes, length + 1), −1 after the end of an episode, and step costs (episodes, length).

    Each step takes one of the outgoing covered edges with equal probability. An episode starts in any state with such
    an edge, and ends in a state without one.
    """
    check_walk(episodes, length, coverage)
    rng = numpy_generator(seed, "walk")
    edges = covered_edges(graph, seed, coverage)  # sorted by source, as in the graph
    first = np.searchsorted(graph.source[edges], np.arange(graph.size + 1))
    degree = np.diff(first)
    states = np.full((episodes, length + 1), -1)
    cost = np.zeros((episodes, length))
    states[:, 0] = rng.choice(np.flatnonzero(degree), episodes)
    for step in range(length):
        active = np.flatnonzero(states[:, step] >= 0)
        active = active[degree[states[active, step]] > 0]
        state = states[active, step]
        edge = edges[first[state] + rng.integers(degree[state])]
        states[active, step + 1] = graph.target[edge]
        cost[active, step] = graph.cost[edge]
    return states, cost


def covered_edges(graph: Graph, seed: int, coverage: float) -> np.ndarray:
    """A random share of the edges, at least one; a larger coverage includes the edges of a smaller one."""
    order = numpy_generator(seed, "coverage").permutation(len(graph.source))
    return np.sort(order[: max(1, round(coverage * len(order)))])


def as_experience(z: np.ndarray, taken: np.ndarray, cost: np.ndarray, observe: Observe) -> Experience:
    """States (episodes, length + 1, n) as a list of steps; `taken` marks the steps (episodes, length) that exist."""
    before, after = z[:, :-1][taken], z[:, 1:][taken]
    return Experience(observe(before), observe(after), cost[taken], np.nonzero(taken)[0], before, after)
