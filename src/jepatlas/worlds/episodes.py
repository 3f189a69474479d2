"""Episodes of a random policy: on a graph of states, and from the states that any world went through."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.core.errors import check_argument, check_count
from jepatlas.core.graphs import Graph
from jepatlas.core.records import Experience
from jepatlas.core.seeding import numpy_generator

__all__ = ["as_experience", "check_walk", "seen_edges", "walk_graph"]

Observe = Callable[[np.ndarray], np.ndarray]


def check_walk(episodes: int, length: int, coverage: float) -> None:
    check_count("episodes", episodes)
    check_count("length", length)
    check_argument("coverage", coverage, 0 < coverage <= 1, "above 0 and at most 1")


def walk_graph(graph: Graph, episodes: int, length: int, seed: int, coverage: float) -> tuple[np.ndarray, np.ndarray]:
    """Random walks: the states (episodes, length + 1), −1 once an episode is over, and what steps cost.

    Each step takes one of the edges that leave the state, all equally likely. An episode begins anywhere that has an
    edge, and is over where there is none.
    """
    check_walk(episodes, length, coverage)
    random = numpy_generator(seed, "walk")
    edges = seen_edges(graph, seed, coverage)  # in the graph's order, which is by source
    first = np.searchsorted(graph.source[edges], np.arange(graph.size + 1))
    degree = np.diff(first)
    states = np.full((episodes, length + 1), -1)
    cost = np.zeros((episodes, length))
    states[:, 0] = random.choice(np.flatnonzero(degree), episodes)
    for step in range(length):
        going = np.flatnonzero(states[:, step] >= 0)
        going = going[degree[states[going, step]] > 0]
        now = states[going, step]
        edge = edges[first[now] + random.integers(degree[now])]
        states[going, step + 1], cost[going, step] = graph.target[edge], graph.cost[edge]
    return states, cost


def seen_edges(graph: Graph, seed: int, coverage: float) -> np.ndarray:
    """The edges that the policy knows of: a random share of all, at least one; a larger share contains a smaller."""
    order = numpy_generator(seed, "coverage").permutation(len(graph.source))
    return np.sort(order[: max(1, round(coverage * len(order)))])


def as_experience(z: np.ndarray, went: np.ndarray, cost: np.ndarray, observe: Observe) -> Experience:
    """States (episodes, length + 1, n) as steps in order; `went` says which of (episodes, length) were made."""
    before, after = z[:, :-1][went], z[:, 1:][went]
    return Experience(observe(before), observe(after), cost[went], np.nonzero(went)[0], before, after)
