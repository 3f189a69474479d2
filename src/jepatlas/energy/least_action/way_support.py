"""How well the cheapest way is supported by steps, and how sure it is that there is none.

    support(x, y) = the least evidence of an edge on the cheapest way, 0 if there is none

If no way leads from x to y, let F be all nodes that can be reached from x. Two things could open a way: an edge that
was seen but leaves F with too little evidence, and an edge that was not seen yet. Of the d edges inside F, s were seen
once. In as many further steps about s new edges are expected (Good–Turing). Each leaves F with probability 1/(d + 2),
by Laplace's rule after d edges of which none does. So

    P(still no way after as many further steps) = Π (1 − evidence of the edges that leave F) · exp(−s / (d + 2)).

This is a statement about more steps of the same policy. A way that this policy never takes cannot be excluded.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from jepatlas.energy.least_action.cells import nearest_centres
from jepatlas.energy.least_action.least_action import LeastAction

__all__ = ["no_way_confidence", "weakest_evidence"]

BLOCK = 2**24  # entries of a block of nodes or edges


@torch.no_grad()
def weakest_evidence(energy: LeastAction, x_nd: Tensor, y_md: Tensor) -> np.ndarray:
    """The evidence of the weakest edge on the cheapest way between the cells of all pairs, (n, m); 0 without a way."""
    graph = energy.graph
    kept = np.flatnonzero(graph.evidence >= energy.level)
    evidence = graph.evidence
    starts = graph.typical[nearest_centres(x_nd.numpy(), graph.centres)]
    goals, position = np.unique(graph.typical[nearest_centres(y_md.numpy(), graph.centres)], return_inverse=True)
    ends = (graph.target[kept], graph.source[kept])
    backwards = csr_array((graph.cost[kept], ends), shape=(graph.size, graph.size))
    pair_numbers = graph.source[kept] * graph.size + graph.target[kept]
    order = np.argsort(pair_numbers)
    columns = []
    for goal in goals:
        distance, following = dijkstra(backwards, indices=goal, return_predecessors=True)
        nodes = np.arange(graph.size)
        onwards = np.where(following < 0, nodes, following)
        weakest = np.ones(graph.size)
        moves = onwards != nodes
        edge = order[np.searchsorted(pair_numbers[order], (nodes * graph.size + onwards)[moves])]
        weakest[moves] = evidence[kept][edge]
        while (onwards != onwards[onwards]).any():  # twice as far in every round
            weakest = np.minimum(weakest, weakest[onwards])
            onwards = onwards[onwards]
        columns.append(np.where(np.isfinite(distance), weakest, 0.0)[starts])
    return np.stack(columns, 1)[:, position.ravel()]


@torch.no_grad()
def no_way_confidence(energy: LeastAction, x_nd: Tensor, y_md: Tensor) -> np.ndarray:
    """P(still no way after as many further steps) for all pairs without a way, (n, m); NaN for pairs with a way."""
    graph = energy.graph
    evidence = graph.evidence
    kept = evidence >= energy.level
    forwards = csr_array((graph.cost[kept], (graph.source[kept], graph.target[kept])), shape=(graph.size, graph.size))
    starts, position = np.unique(graph.typical[nearest_centres(x_nd.numpy(), graph.centres)], return_inverse=True)
    confidence = np.empty(len(starts))
    for rows in np.array_split(np.arange(len(starts)), 1 + len(starts) * max(graph.size, len(kept)) // BLOCK):
        reached = np.isfinite(dijkstra(forwards, indices=starts[rows]))
        inside, outside = reached[:, graph.source], ~reached[:, graph.target]
        leaving = inside & outside
        within = inside & ~outside
        once = (within & (graph.steps == 1)).sum(1)
        doubts = np.where(leaving, np.log1p(-np.minimum(evidence, 1 - 1e-12)), 0.0).sum(1)
        confidence[rows] = np.exp(doubts - once / (within.sum(1) + 2))
    no_way = torch.isinf(energy.all_pairs(x_nd, y_md)).numpy()
    return np.where(no_way, confidence[position.ravel()][:, None], np.nan)
