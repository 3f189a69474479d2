"""Spanning trees of a square grid of cells, and the pairs of neighbours that they keep furthest apart."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

__all__ = ["Edge", "grid_edges", "long_ways", "spanning_tree"]

Edge = tuple[int, int]
"""Two neighbouring cells of a grid, numbered by rows."""


def grid_edges(side: int) -> list[Edge]:
    """All pairs of neighbours, the lower number first.

    >>> grid_edges(2)
    [(0, 1), (2, 3), (0, 2), (1, 3)]
    """
    cell = np.arange(side * side).reshape(side, side)
    right, up = (cell[:, :-1], cell[:, 1:]), (cell[:-1], cell[1:])
    return [(int(a), int(b)) for pair in (right, up) for a, b in zip(pair[0].flat, pair[1].flat, strict=True)]


def spanning_tree(side: int, rng: np.random.Generator) -> tuple[Edge, ...]:
    """By a walk that goes to a random new neighbour, and back where there is none: long corridors, few short ends."""
    open_: dict[int, list[int]] = {cell: [] for cell in range(side * side)}
    for a, b in grid_edges(side):
        open_[a].append(b)
        open_[b].append(a)
    way, seen, tree = [int(rng.integers(side * side))], set(), []
    while way:
        here = way[-1]
        seen.add(here)
        new = [cell for cell in open_[here] if cell not in seen]
        if not new:
            way.pop()
            continue
        way.append(int(rng.choice(new)))
        tree.append((min(here, way[-1]), max(here, way[-1])))
    return tuple(tree)


def long_ways(side: int, tree: tuple[Edge, ...], count: int) -> tuple[Edge, ...]:
    """Neighbours to join, one after the other: always those that are still furthest apart."""
    edges, found = list(tree), []
    for _ in range(count):
        apart = _lengths(side * side, edges)
        left = [edge for edge in grid_edges(side) if edge not in edges]
        found.append(max(left, key=lambda edge: apart[edge]))
        edges.append(found[-1])
    return tuple(found)


def _lengths(size: int, edges: list[Edge]) -> np.ndarray:
    a, b = np.array(edges).T
    return shortest_path(coo_array((np.ones(len(a)), (a, b)), (size, size)), directed=False, unweighted=True)
