"""Worlds with exact energies: grids, tables, constant currents, sizes, words, maps and rules.

Many worlds have a strength, such as the speed of a current or the ratio of two prices. At the strength of the
reversible twin the energy is symmetric.

Energies of the worlds in `solved_worlds` come from discretised solvers; those here are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.core.graphs import Graph
from jepatlas.core.seeding import numpy_generator
from jepatlas.energy.exact import (
    EditCosts,
    Rules,
    edit_energies,
    energy_to_set,
    graph_energies,
    interval_energies,
    scale_energy,
    strain_energies,
    zermelo,
)
from jepatlas.worlds import GymTable, OneWayGrid

__all__ = [
    "GOALS",
    "ExactWorld",
    "Size",
    "cliff_grid",
    "constant_current",
    "costly_grid",
    "door_grid",
    "edits",
    "gym_table",
    "interval_maps",
    "one_way_grid",
    "random_maps",
    "rules",
    "sizes",
    "strained_maps",
]

GOALS = 3  # states of a set of goals
SYMBOLS = "abcd"
PIECES = 8  # linear pieces of a map of the interval


@dataclass(frozen=True)
class Size:
    """Sizes of the worlds of a scale."""

    states: int
    side: int  # of a grid
    places: int  # in a varying current, with one solution each
    resolution: int  # of the coarser of two solutions
    sets: int  # of landmarks


@dataclass(frozen=True)
class ExactWorld:
    """Energies, as a matrix (n, n) or as a function of rows at points (n, d).

    A discretised world has a `coarse` solution and `slack`, the relative gap in the triangle inequality that the
    solver's error may cause; None for exact energies. `to_goals` are energies to the nearest of the first `GOALS`
    states, if the solver computes energies to sets itself.
    """

    energy: np.ndarray | Callable[[Any, Any], Any]
    points: np.ndarray | None = None
    slack: float | None = None
    coarse: np.ndarray | None = None  # (n, n)
    to_goals: np.ndarray | None = None  # (n,)

    @property
    def matrix(self) -> np.ndarray:
        if isinstance(self.energy, np.ndarray):
            return self.energy
        assert self.points is not None  # given with every function
        n, d = self.points.shape
        x, y = (np.broadcast_to(side, (n, n, d)).reshape(-1, d) for side in (self.points[:, None], self.points[None]))
        return np.asarray(self.energy(x, y)).reshape(n, n)


def one_way_grid(size: Size, seed: int, share: float = 1.0) -> ExactWorld:
    """A wall with a door in every row; a share of the doors opens to the right only."""
    rows = numpy_generator(seed, "doors").permutation(size.side)[round(share * size.side) :]
    back = tuple(sorted(rows.tolist()))
    return _cells(OneWayGrid(size.side, size.side, wall=size.side // 2, doors_back=back))


def door_grid(size: Size, seed: int) -> ExactWorld:
    """A wall with two doors to the right and another one back; all cells are reachable, by detours."""
    to, other, back = numpy_generator(seed, "doors").permutation(size.side)[:3].tolist()
    doors = (min(to, other), max(to, other))
    return _cells(OneWayGrid(size.side, size.side, wall=size.side // 2, doors=doors, doors_back=(back,)))


def costly_grid(size: Size, seed: int, cost: float = 3.0) -> ExactWorld:
    """A fifth of the cells cost more to enter."""
    return _cells(OneWayGrid(size.side, size.side, wall=None, costly=_some_cells(size, seed, 0.2), costly_cost=cost))


def cliff_grid(size: Size, seed: int) -> ExactWorld:
    """A tenth of the cells are cliffs: a step there is expensive and ends at the first cell."""
    cliffs = _some_cells(size, seed, 0.1)
    return _cells(OneWayGrid(size.side, size.side, wall=None, cliffs=cliffs))


def gym_table(env: str) -> ExactWorld:
    """The same for every seed."""
    world = GymTable(env)
    return _graph_world(world.graph, world.positions)


def constant_current(size: Size, seed: int, speed: float = 0.6) -> ExactWorld:
    """Zermelo's travel times in a current along the first axis; `speed` is relative to the vehicle."""
    current = np.array([speed, 0.0])
    points = numpy_generator(seed, "places").uniform(-1, 1, (size.states, 2))
    return ExactWorld(lambda x, y: zermelo(x, y, current), points)


def sizes(size: Size, seed: int, ratio: float = 3.0) -> ExactWorld:
    """Sizes by their logarithms; shrinking costs `ratio` times as much as growing."""
    points = numpy_generator(seed, "sizes").normal(size=(size.states, 1))
    return ExactWorld(lambda x, y: scale_energy(np.exp(x[:, 0]), np.exp(y[:, 0]), 1.0, ratio), points)


def edits(size: Size, seed: int, ratio: float = 3.0) -> ExactWorld:
    """Random words; an insertion costs `ratio` times as much as a deletion."""
    rng = numpy_generator(seed, "words")
    lengths = rng.integers(0, 9, size.states)
    words = sorted({"".join(rng.choice(list(SYMBOLS), length)) for length in lengths})
    return ExactWorld(edit_energies(words, costs=EditCosts(insert=ratio, delete=1.0, substitute=1.5)))


def interval_maps(size: Size, seed: int) -> ExactWorld:
    """Monotone maps of an interval, with a symmetric length."""
    maps = random_maps(size.states, seed)
    return ExactWorld(interval_energies(maps, maps))


def strained_maps(size: Size, seed: int, ratio: float = 3.0) -> ExactWorld:
    """Monotone maps of an interval; squeezing costs `ratio` times as much as stretching."""
    maps = random_maps(size.states, seed)
    return ExactWorld(strain_energies(maps, maps, 1.0, ratio))


def random_maps(count: int, seed: int, pieces: int = PIECES) -> np.ndarray:
    """Increasing maps of [0, 1] onto itself at pieces + 1 points, (count, pieces + 1)."""
    steps = np.exp(numpy_generator(seed, "maps").normal(size=(count, pieces)))
    return np.hstack([np.zeros((count, 1)), np.cumsum(steps, 1) / steps.sum(1, keepdims=True)])


def rules(size: Size, seed: int, share: float = 1.0) -> ExactWorld:
    """Every fact but the first implies two earlier ones; a share of these rules has no converse."""
    rng = numpy_generator(seed, "rules")
    found = [(i, int(j), float(rng.integers(1, 4))) for i in range(1, size.states) for j in rng.integers(0, i, 2)]
    both = rng.permutation(len(found)) >= round(share * len(found))
    found += [(j, i, cost) for (i, j, cost), back in zip(found, both, strict=True) if back]
    every = Rules.of([(str(i), str(j), cost) for i, j, cost in found], [str(i) for i in range(size.states)])
    return _graph_world(every.graph, None)


def _cells(world: OneWayGrid) -> ExactWorld:
    return _graph_world(world.graph, world.positions)


def _graph_world(graph: Graph, positions: np.ndarray | None) -> ExactWorld:
    return ExactWorld(graph_energies(graph), positions, to_goals=energy_to_set(graph, list(range(GOALS))))


def _some_cells(size: Size, seed: int, share: float) -> tuple[tuple[int, int], ...]:
    """A random share of the cells, without the first one."""
    chosen = 1 + numpy_generator(seed, "cells").permutation(size.side**2 - 1)[: round(share * size.side**2)]
    return tuple((int(cell) // size.side, int(cell) % size.side) for cell in sorted(chosen))
