"""States that belong together (of one object, of one time block), as all members see it, without the groups' names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

__all__ = ["common_groups", "numbered"]


def numbered(groups: np.ndarray) -> np.ndarray:
    """Groups by the order of their first rows: which rows are together is told, and nothing else.

    >>> numbered(np.array(["mug", "cup", "mug"])).tolist()
    [0, 1, 0]
    """
    _, first, labels = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels].astype(np.int64)


def common_groups(told: Sequence[np.ndarray]) -> np.ndarray | None:
    """Rows are together where they are in anyone's groups, or through others: no near copy is on both sides of a split.

    >>> common_groups([np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])]).tolist()
    [0, 0, 0, 1]
    """
    if not told:
        return None
    n = size = len(told[0])  # nodes of a graph: the rows, and each member's groups
    nodes = []
    for one in told:
        nodes.append(size + numbered(one))
        size = int(nodes[-1].max()) + 1
    ends = np.tile(np.arange(n), len(told)), np.concatenate(nodes)
    graph = coo_array((np.ones(len(ends[0])), ends), shape=(size, size))
    return numbered(connected_components(graph, directed=False)[1][:n])
