"""The graph of observed steps between cells, with the evidence for each edge.

Nodes are the cells, and in divided cells every single visit, because no two of them may be joined. An edge is an
observed change of node. Its effort and its evidence are

    cost(A → B) = ‖c_B − c_A‖ · Σ costs / Σ lengths    of its steps and of PRIOR steps of the mean effort
    evidence(A → B) = P(p > ε),   p ~ Beta(½ + steps A → B, ½ + states of A − steps A → B)

p is the share of the states of A from which a step leads to B, and ε the share that wrongly assigned states cause. If
cells are single values, no state is wrongly assigned: every observed edge exists, and its cost is the least observed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betainc

from jepatlas.energy.least_action.cells import Cells, nearest_centres
from jepatlas.energy.least_action.state_sequences import StateSequences

__all__ = ["FALSE_SHARE", "CellGraph", "observe", "observe_more"]

FALSE_SHARE = 0.02  # ε
PRIOR = 2.0  # steps


@dataclass(frozen=True)
class CellGraph:
    """All observed edges. Nodes 0 … k − 1 are cells; the others are visits of divided cells."""

    centres: np.ndarray  # (k, d) float32
    visits: np.ndarray  # (v, d) float32: the latents of the visits
    visited: np.ndarray  # (v,) their cells
    divided: np.ndarray  # (k,) bool
    typical: np.ndarray  # (k,) the node that stands for a cell: itself, or its most typical visit
    states: np.ndarray  # (k + v,) observed states of each node
    source: np.ndarray  # (e,)
    target: np.ndarray  # (e,)
    steps: np.ndarray  # (e,) observed steps
    paid: np.ndarray  # (e,) their total cost; for cells of single values the least cost of one
    length: np.ndarray  # (e,) their total length
    effort: float  # mean cost per length
    exact: bool  # cells are single values

    @property
    def size(self) -> int:
        return len(self.states)

    @property
    def positions(self) -> np.ndarray:
        return np.concatenate([self.centres, self.visits])

    @property
    def cell_of(self) -> np.ndarray:
        """The cell of each node."""
        return np.r_[np.arange(len(self.centres)), self.visited]

    @property
    def evidence(self) -> np.ndarray:
        """P(p > ε) of each edge. Steps from a node to different visits of a cell count together."""
        if self.exact:
            return np.ones(len(self.source))
        pair = self.source * len(self.centres) + self.cell_of[self.target]
        number = np.unique(pair, return_inverse=True)[1]
        steps = np.bincount(number, self.steps)[number]
        others = np.maximum(self.states[self.source] - steps, 0)
        return 1.0 - betainc(0.5 + steps, 0.5 + others, FALSE_SHARE)

    @property
    def cost(self) -> np.ndarray:
        """The cost of each edge, at least that of the mean effort times a rounding error, so that none is free."""
        if self.exact:
            return self.paid
        at = self.positions.astype(np.float64)
        gap = np.linalg.norm(at[self.target] - at[self.source], axis=1)
        prior = PRIOR * self.length.sum() / max(self.steps.sum(), 1.0)
        effort = (self.paid + prior * self.effort) / (self.length + prior)
        return np.maximum(effort, 1e-3 * self.effort) * np.maximum(gap, 1e-6 * prior)


def observe(states: StateSequences, cells: Cells, divided: np.ndarray, typical: np.ndarray) -> CellGraph:
    """The graph of the steps of these states; `typical` are the states that stand for divided cells."""
    k = len(cells.centres)
    node, apart = _nodes(cells.label, divided, first=k)
    visits = states.h_nd[apart]
    stands = np.where(divided, node[typical], np.arange(k))
    edges = _edges(states, node, cells.exact)
    count = np.bincount(node, minlength=k + len(visits)).astype(np.float64)
    moved = np.linalg.norm(np.diff(states.h_nd, axis=0), axis=1)[states.departures]
    effort = float(states.cost[states.departures].sum() / max(moved.sum(), 1e-30))
    visited = cells.label[apart]
    return CellGraph(cells.centres, visits, visited, divided, stands, count, *edges, effort, cells.exact)


def observe_more(graph: CellGraph, states: StateSequences) -> CellGraph:
    """The graph with further episodes. Cells are kept; states farther from all of them become cells of their own."""
    label, new = _labels(graph, states)
    old = len(graph.centres)
    k = old + len(new)
    shift = np.arange(graph.size) + np.where(np.arange(graph.size) < old, 0, len(new))
    divided = np.r_[graph.divided, np.zeros(len(new), dtype=bool)]
    node, apart = _nodes(label, divided, first=k + len(graph.visits))
    visits = states.h_nd[apart]
    source, target, steps, paid, length = _edges(states, node, graph.exact)
    merged = _merged(
        np.r_[shift[graph.source], source],
        np.r_[shift[graph.target], target],
        (np.r_[graph.steps, steps], np.r_[graph.paid, paid], np.r_[graph.length, length]),
        graph.exact,
    )
    count = np.zeros(k + len(graph.visits) + len(visits))
    count[shift] = graph.states
    np.add.at(count, node, 1.0)
    return replace(
        graph,
        centres=np.concatenate([graph.centres, new]),
        visits=np.concatenate([graph.visits, visits]),
        visited=np.r_[graph.visited, label[apart]],
        divided=divided,
        typical=np.r_[shift[graph.typical], old + np.arange(len(new))],
        states=count,
        source=merged[0],
        target=merged[1],
        steps=merged[2],
        paid=merged[3],
        length=merged[4],
    )


def _labels(graph: CellGraph, states: StateSequences) -> tuple[np.ndarray, np.ndarray]:
    """The cell of each state, and the centres of new cells: the first of the states that lie within a cell's reach."""
    label = nearest_centres(states.h_nd, graph.centres)
    gap = np.linalg.norm(states.h_nd - graph.centres[label], axis=1)
    reach = 0.0 if graph.exact else _reach(graph)
    far = np.flatnonzero(gap > reach)
    new = np.empty((0, states.h_nd.shape[1]), dtype=np.float32)
    while len(far):
        new = np.concatenate([new, states.h_nd[far[:1]]])
        within = np.linalg.norm(states.h_nd[far] - new[-1], axis=1) <= reach
        label[far[within]] = len(graph.centres) + len(new) - 1
        far = far[~within]
    return label, new


def _reach(graph: CellGraph) -> float:
    """The typical length of an edge between cells: states farther from a centre are not part of its cell."""
    cells = (graph.source < len(graph.centres)) & (graph.target < len(graph.centres))
    gaps = np.linalg.norm(graph.centres[graph.source[cells]] - graph.centres[graph.target[cells]], axis=1)
    return float(np.median(gaps)) if len(gaps) else 0.0


def _nodes(label: np.ndarray, divided: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """The node of each state, and the states that are nodes of their own, numbered from `first`."""
    apart = np.flatnonzero(divided[label])
    node = label.copy()
    node[apart] = first + np.arange(len(apart))
    return node, apart


def _edges(states: StateSequences, node: np.ndarray, exact: bool) -> tuple[np.ndarray, ...]:
    """source, target, steps, paid and length of the changes of node."""
    rows = states.departures
    rows = rows[node[rows] != node[rows + 1]]
    length = np.linalg.norm(states.h_nd[rows + 1] - states.h_nd[rows], axis=1).astype(np.float64)
    return _merged(node[rows], node[rows + 1], (np.ones(len(rows)), states.cost[rows], length), exact)


def _merged(
    source: np.ndarray, target: np.ndarray, sums: tuple[np.ndarray, np.ndarray, np.ndarray], exact: bool
) -> tuple[np.ndarray, ...]:
    """Parallel edges as one: steps and lengths are summed, and costs too unless cells are single values."""
    order = np.lexsort((target, source))
    source, target = source[order], target[order]
    steps, paid, length = (part[order] for part in sums)
    starts = np.flatnonzero(np.r_[True, (np.diff(source) != 0) | (np.diff(target) != 0)])[: len(source)]
    if not len(source):
        return source, target, steps, paid, length
    total = np.minimum.reduceat(paid, starts) if exact else np.add.reduceat(paid, starts)
    return source[starts], target[starts], np.add.reduceat(steps, starts), total, np.add.reduceat(length, starts)
