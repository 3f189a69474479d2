"""Least action: the energy of the cheapest way along observed steps.

    D(A, B) = min over paths A = a₀ → a₁ → … → B of Σ cost(aᵢ → aᵢ₊₁),  +∞ if there is none        between cells
    V_B(x) = min over cells A near x of ρ_A(x) + D(A, B)                                            from x to a cell
    E(x, y) = max(c‖x − y‖, sup over all cells B of V_B(x) − V_B(y))                                from x to y

ρ_A(x) is the effort of the remainder from x to the centre of A. It is at least what the graph says from the cell that x
lies in, so that it does not lead through walls. The supremum is attained at a cell near y, so

    sup_B V_B(x) − V_B(y) = max over cells B near y of V_B(x) − ρ_B(y).

E is a quasimetric for any graph: zero at identical points, positive elsewhere, and E(x, z) ≤ E(x, y) + E(y, z), since
differences and maxima of such functions have these properties. At the centres of cells it is D. c is the least effort
per length of an edge, so that E ≥ c‖x − y‖ as Definition 2 of the note asks.

Reference: "Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Self

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.records import Experience, Verdict
from jepatlas.data import experience_from_arrays
from jepatlas.energy.energy_configs import LeastActionConfig
from jepatlas.energy.least_action.cell_graph import CellGraph, observe_more
from jepatlas.energy.least_action.cells import CentreSearch
from jepatlas.energy.least_action.state_sequences import StateSequences

__all__ = ["NEAR", "LeastAction"]

NEAR = 8  # cells near a point
WITHIN = 6.0  # edges of typical cost: cells that are farther on the graph are not near
PAIRS = 2**15  # of points at once
ROWS = 2**24  # entries of a block of distances between nodes
GATHERED = 2**20  # goals · cells up to which distances are copied before they are read
CACHED = 2**26  # entries of the cached distances to goals: 512 MB

End = tuple[Tensor, Tensor, Tensor]
"""Points (p, d), their cells (p,) and their remainders (p, near)."""


class LeastAction(nn.Module):
    """The energy of a graph of observed steps whose evidence is at least `level`.

    It has no parameters. `add` returns the energy with further episodes.
    """

    guaranteed_quasimetric = True
    symmetric = False

    centres: Tensor
    anchors: Tensor  # the points that stand for the cells: their centres, or in divided cells their typical visits
    near: Tensor
    near_cost: Tensor

    def __init__(self, graph: CellGraph, level: float, near: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        super().__init__()
        self.graph = graph
        self.level = level
        self.verdicts: tuple[Verdict, ...] = ()  # on what was chosen, by `fit_least_action`
        kept = graph.evidence >= level
        self._edges = (graph.source[kept], graph.target[kept], graph.cost[kept])
        self._evidence = graph.evidence[kept]
        self._search = CentreSearch(graph.centres)
        self.floor = self._least_effort()
        self.pseudo = self.floor == 0
        found = self._near_cells() if near is None else near
        self.register_buffer("centres", torch.from_numpy(graph.centres), persistent=False)
        self.register_buffer("anchors", torch.from_numpy(graph.positions[graph.typical]), persistent=False)
        self.register_buffer("near", torch.from_numpy(found[0]), persistent=False)
        self.register_buffer("near_cost", torch.from_numpy(found[1]), persistent=False)
        self._forget()

    @classmethod
    def fit(cls, steps: Mapping[str, np.ndarray], *, cells: int | None = None, seed: int = 0) -> LeastAction:
        """The energy of observed steps: x, x_next, cost and episode of each, or x, episode and cost of each state.

        `cells` is chosen from the data by default. The energy's `verdicts` tell what was chosen.

        >>> corridor = {"x": np.tile(np.arange(5.0), 4), "episode": np.repeat(np.arange(4), 5), "cost": np.ones(20)}
        >>> energy = LeastAction.fit(corridor)
        >>> start, end = torch.tensor([[0.0], [4.0]])
        >>> float(energy(start, end)), float(energy(end, start))
        (4.0, inf)
        """
        from jepatlas.energy.least_action.fitting import fit_least_action  # noqa: PLC0415  (it imports this module)

        return fit_least_action(experience_from_arrays(steps), LeastActionConfig(cells=cells), seed=seed)

    @property
    def width(self) -> int:
        return self.centres.shape[1]

    def add(self, experience: Experience) -> Self:
        """The energy with further steps. Cells are kept; new ones are added where states are far from all cells."""
        if experience.x.shape[1] != self.width:
            raise InputError(f"The steps have {experience.x.shape[1]} dimensions, but this energy has {self.width}.")
        return type(self)(observe_more(self.graph, StateSequences.of(experience)), self.level)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., d), (..., d) → (...); leading dimensions broadcast. +∞ where no way was observed."""
        self._check_widths(x, y)
        try:
            shape = torch.broadcast_shapes(x.shape[:-1], y.shape[:-1])
        except RuntimeError as error:
            raise InputError(f"The leading dimensions of x and y must broadcast: {error}") from error
        if not torch.Size(shape).numel():
            return x.new_zeros(shape)
        starts, goals = self._cell_of(x), self._cell_of(y)
        self._prepare(goals.unique())
        ends = (x, starts, self._remainders(x, starts)), (y, goals, self._remainders(y, goals))
        parts = []
        for first, last in zip(*(_pieces(shape, *end) for end in ends), strict=True):
            parts.append(self._energies(first, last))
        return torch.cat(parts).reshape(shape)

    def all_pairs(self, x_nd: Tensor, y_md: Tensor | None = None, tile: int | None = None) -> Tensor:
        """E(x_i, y_j), (n, m), `tile` rows at a time; y defaults to x."""
        y_md = x_nd if y_md is None else y_md
        self._check_widths(x_nd, y_md)
        if x_nd.ndim != 2 or y_md.ndim != 2:
            raise InputError(
                f"x and y must be two-dimensional, but have {tuple(x_nd.shape)} and {tuple(y_md.shape)} entries."
            )
        rows = max(1, PAIRS // max(1, len(y_md))) if tile is None else tile
        if rows < 1:
            raise InputError(f"tile must be at least 1, but {tile} was given.")
        return torch.cat([self(part[:, None], y_md) for part in x_nd.split(rows)])

    def _energies(self, first: End, last: End) -> Tensor:
        """Energies of pairs of ends: a point, its cell and its remainders."""
        (x, a, rest_x), (y, b, rest_y) = first, last
        to_cells = (rest_x[:, :, None] + self._ways(a, b).to(x.dtype)).amin(1)
        near = rest_y.isfinite()
        rise = torch.where(near, to_cells - torch.where(near, rest_y, 0.0), -torch.inf)
        return torch.maximum(rise.amax(1), self.floor * _norm(x - y))

    def _ways(self, a: Tensor, b: Tensor) -> Tensor:
        """D between the cells near a and those near b: (p,), (p,) → (p, near a, near b)."""
        goals, number = b.unique(return_inverse=True)
        count = len(self.centres)
        if len(goals) * count > GATHERED:
            return self._table[self._slot[self.near[b]][:, None, :], self.near[a][:, :, None]]
        # One row for each goal and cell: entries that are read together stand together.
        rows = self._table[self._slot[self.near[goals]]].transpose(1, 2).reshape(len(goals) * count, -1)
        return rows[number[:, None] * count + self.near[a]]

    def _remainders(self, x: Tensor, cell: Tensor) -> Tensor:
        """ρ_A(x) for the cells A near the cell of x, (..., near)."""
        lengths = self.graph.effort * _norm(x[..., None, :] - self.anchors.to(x.dtype)[self.near[cell]])
        return torch.maximum(lengths, self.near_cost.to(x.dtype)[cell] - lengths[..., :1])

    def _cell_of(self, x: Tensor) -> Tensor:
        flat = x.detach().reshape(-1, self.width).float().numpy()
        return torch.from_numpy(self._search(flat)).reshape(x.shape[:-1])

    def _prepare(self, cells: Tensor) -> None:
        """Cache the distances of all cells to the cells near some goals."""
        wanted = self.near[cells].unique()
        missing = wanted[self._slot[wanted] < 0]
        if len(missing):
            if (len(self._table) + len(missing)) * len(self.centres) > CACHED:
                self._forget()
                missing = wanted
            columns = torch.from_numpy(self._distances(missing.numpy(), reverse=True))
            self._slot[missing] = len(self._table) + torch.arange(len(missing))
            self._table = torch.cat([self._table, columns])

    def _forget(self) -> None:
        count = len(self.centres)
        self._table = torch.empty(0, count, dtype=torch.float64)
        self._slot = torch.full((count,), -1, dtype=torch.int64)

    def _distances(self, cells: np.ndarray, *, reverse: bool = False, limit: float = np.inf) -> np.ndarray:
        """Shortest paths from these cells to all cells, or with `reverse` to these cells from all, (cells, k)."""
        typical = self.graph.typical
        rows = max(1, ROWS // self.graph.size)
        matrix = self._matrix(reverse)
        parts = []
        for some in np.split(cells, np.arange(rows, len(cells), rows)):
            parts.append(dijkstra(matrix, indices=typical[some], limit=limit)[:, typical])
        return np.concatenate(parts)

    def _matrix(self, reverse: bool) -> csr_array:
        source, target, cost = self._edges
        ends = (target, source) if reverse else (source, target)
        return csr_array((cost, ends), shape=(self.graph.size, self.graph.size))

    def _near_cells(self) -> tuple[np.ndarray, np.ndarray]:
        """The cells near each cell, itself first, and the least cost of going there from it."""
        centres = torch.from_numpy(self.graph.centres)
        count = min(NEAR, len(centres))
        near = np.empty((len(centres), count), dtype=np.int64)
        cost = np.empty((len(centres), count))
        limit = WITHIN * float(np.median(self._edges[2])) if len(self._edges[2]) else 0.0
        for rows in np.array_split(np.arange(len(centres)), max(1, len(centres) // 512)):
            squares = torch.cdist(centres[rows], centres)
            squares[torch.arange(len(rows)), torch.from_numpy(rows)] = -1.0
            near[rows] = squares.topk(count, largest=False).indices.numpy()
            ways = self._distances(rows, limit=limit)
            cost[rows] = np.take_along_axis(ways, near[rows], 1)
        return near, cost

    def _least_effort(self) -> float:
        """c: the least cost per length of an edge."""
        at = self.graph.positions.astype(np.float64)
        source, target, cost = self._edges
        gap = np.linalg.norm(at[source] - at[target], axis=1)
        per_length = cost[gap > 0] / gap[gap > 0]
        return float(per_length.min()) if len(per_length) else self.graph.effort

    def _check_widths(self, x: Tensor, y: Tensor) -> None:
        for name, point in (("x", x), ("y", y)):
            if point.ndim < 1 or point.shape[-1] != self.width:
                raise InputError(
                    f"The last dimension of {name} must be {self.width}, but its shape is {tuple(point.shape)}."
                )


def _pieces(shape: torch.Size, x: Tensor, cell: Tensor, rest: Tensor) -> Iterator[End]:
    """Points, cells and remainders for all pairs of this shape, PAIRS at a time."""
    points = x.expand(*shape, x.shape[-1]).reshape(-1, x.shape[-1]).split(PAIRS)
    cells = cell.expand(shape).reshape(-1).split(PAIRS)
    rests = rest.expand(*shape, rest.shape[-1]).reshape(-1, rest.shape[-1]).split(PAIRS)
    yield from zip(points, cells, rests, strict=True)


def _norm(v: Tensor) -> Tensor:
    """‖v‖, with gradient 0 at v = 0."""
    squares = v.square().sum(-1)
    positive = squares > 0
    return torch.where(positive, torch.where(positive, squares, 1.0).sqrt(), 0.0)
