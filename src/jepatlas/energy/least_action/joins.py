"""Cells that join ways which the data never joined, because they straddle a wall or a one-way door.

A path through a cell continues the way of one visit along that of another. That is wrong if the cell holds states from
both sides of a wall. Then visits that come from one side never leave to the other, although visits leave to it:

    O = visits from side + that leave to side −        E = (visits from +) · (visits to −) / visits

for half-spaces ± through the cell's centre, in four directions of the plane of most movement, and for visits of the
cell and of its surroundings. Where states mix, O/E is about the same everywhere (κ, its mean over all cells). A cell is
*divided* if O ≤ κE/5 for some direction in which E > 0: then also if there are too few visits to tell.
"""

from __future__ import annotations

import numpy as np

from jepatlas.energy.least_action.cells import Cells
from jepatlas.energy.least_action.state_sequences import StateSequences

__all__ = ["divided_cells", "typical_visits"]

SCALES = ((2, 32), (4, 64))  # steps before and after a visit, and visits that are compared
MARGIN = 1.2  # in typical radii of a cell: how far a state is beyond the centre to count as on one side
SHARE = 0.2  # of κ
SURROUNDINGS = 10  # cells from which visits are taken
ANGLES = 4
FEWEST = 4  # visits


def divided_cells(states: StateSequences, cells: Cells) -> np.ndarray:
    """Mask of the divided cells, (k,). Cells of a single value are never divided."""
    divided = np.zeros(len(cells.centres), dtype=bool)
    if cells.exact:
        return divided
    radius = float(np.median(np.linalg.norm(states.h_nd - cells.centres[cells.label], axis=1)))
    near = _nearest_first(cells.centres, min(SURROUNDINGS, len(cells.centres)))
    for lag, visits in SCALES:
        through, coming, leaving, count = np.moveaxis(
            _tables(states, cells, near, (lag, visits), MARGIN * radius), 2, 0
        )
        expected = coming * leaving / np.maximum(count, 1)
        if not expected.any():
            continue
        kappa = through.sum() / expected.sum()
        divided |= ((expected > 0) & (through <= SHARE * kappa * expected)).any(1)
    return divided


def typical_visits(states: StateSequences, cells: Cells, divided: np.ndarray) -> np.ndarray:
    """For each divided cell the state whose surroundings in time are the most typical for it; −1 for other cells."""
    typical = np.full(len(cells.centres), -1)
    lag = SCALES[0][0]
    inner = np.zeros(len(states.h_nd), dtype=bool)
    inner[states.with_context(lag)] = True
    order = np.argsort(cells.label, kind="stable")
    ends = np.searchsorted(cells.label[order], np.arange(len(cells.centres) + 1))
    for cell in np.flatnonzero(divided):
        rows = order[ends[cell] : ends[cell + 1]]
        rows = rows[inner[rows]] if inner[rows].any() else rows
        before, after = np.maximum(rows - lag, 0), np.minimum(rows + lag, len(inner) - 1)
        context = np.concatenate([states.h_nd[before], states.h_nd[after]], axis=1)
        typical[cell] = rows[np.square(context - np.median(context, axis=0)).sum(1).argmin()]
    return typical


def _nearest_first(centres: np.ndarray, count: int) -> np.ndarray:
    """The nearest cells of each cell, itself first, (k, count)."""
    norms = np.square(centres).sum(1)
    found = np.empty((len(centres), count), dtype=np.int64)
    for rows in np.array_split(np.arange(len(centres)), max(1, len(centres) // 512)):
        squares = norms - 2 * centres[rows] @ centres.T
        squares[np.arange(len(rows)), rows] = -np.inf
        some = np.argpartition(squares, count - 1, axis=1)[:, :count]
        found[rows] = np.take_along_axis(some, np.take_along_axis(squares, some, 1).argsort(1), 1)
    return found


def _tables(
    states: StateSequences, cells: Cells, near: np.ndarray, scale: tuple[int, int], margin: float
) -> np.ndarray:
    """(O, visits from +, visits to −, visits) for each cell and signed direction, (k, 2·ANGLES, 4)."""
    lag, visits = scale
    inner = states.with_context(lag)
    order = inner[np.argsort(cells.label[inner], kind="stable")]
    ends = np.searchsorted(cells.label[order], np.arange(len(cells.centres) + 1))
    tables = np.zeros((len(cells.centres), 2 * ANGLES, 4))
    angle = np.arange(ANGLES) * np.pi / ANGLES
    turns = np.stack([np.cos(angle), np.sin(angle)])
    for cell, centre in enumerate(cells.centres):
        rows = np.concatenate([order[ends[other] : ends[other + 1]] for other in near[cell]])
        kept = min(len(rows), max(visits, int(ends[cell + 1] - ends[cell])))
        if kept < FEWEST:
            continue
        distance = np.square(states.h_nd[rows] - centre).sum(1)
        rows = rows[np.argpartition(distance, kept - 1)[:kept]]
        past = states.h_nd[rows - lag] - centre
        future = states.h_nd[rows + lag] - centre
        moved = np.concatenate([past, future])
        plane = np.linalg.eigh(moved.T @ moved)[1][:, -2:]
        directions = plane @ turns[: plane.shape[1]]
        directions = np.concatenate([directions, -directions], axis=1)
        coming = past @ directions > margin
        leaving = future @ directions < -margin
        tables[cell, :, 0] = (coming & leaving).sum(0)
        tables[cell, :, 1] = coming.sum(0)
        tables[cell, :, 2] = leaving.sum(0)
        tables[cell, :, 3] = kept
    return tables
