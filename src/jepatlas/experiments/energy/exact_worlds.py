"""Worlds whose energies are known: what "least action" is on grids, tables, currents, sizes, words, maps and rules.

Many have a strength: of a current, or the price of one direction over that of the other. At the strength of their
reversible twin the way back is as far as the way there.
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
PIECES = 8  # of an interval that maps are straight on


@dataclass(frozen=True)
class Size:
    """How large worlds are made."""

    states: int
    side: int  # of a grid
    places: int  # in a current that varies: each is a solution of its own
    resolution: int  # of the coarser of two solutions
    sets: int  # of landmarks


@dataclass(frozen=True)
class ExactWorld:
    """Energies, as a matrix (n, n) or as a function of rows at points (n, d).

    Of a discretised world there is a `coarse` solution, too, and `slack`, the gap that the solver's error may leave in
    the triangle inequality, as a share; None where energies are exact. `to_goals` are energies to the nearest of the
    first `GOALS` states, where the solver has an answer of its own for sets.
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
        assert self.points is not None  # a function comes with them
        n, d = self.points.shape
        x, y = (np.broadcast_to(side, (n, n, d)).reshape(-1, d) for side in (self.points[:, None], self.points[None]))
        return np.asarray(self.energy(x, y)).reshape(n, n)


def one_way_grid(size: Size, seed: int, share: float = 1.0) -> ExactWorld:
    """A wall with a door in every row, of which so large a share lets one through to the right only."""
    rows = numpy_generator(seed, "doors").permutation(size.side)[round(share * size.side) :]
    back = tuple(sorted(rows.tolist()))
    return _cells(OneWayGrid(size.side, size.side, wall=size.side // 2, doors_back=back))


def door_grid(size: Size, seed: int) -> ExactWorld:
    """A wall with two doors to the right and one other back: all is reachable, by detours."""
    to, other, back = numpy_generator(seed, "doors").permutation(size.side)[:3].tolist()
    doors = (min(to, other), max(to, other))
    return _cells(OneWayGrid(size.side, size.side, wall=size.side // 2, doors=doors, doors_back=(back,)))


def costly_grid(size: Size, seed: int, cost: float = 3.0) -> ExactWorld:
    """A fifth of all cells cost more to enter, and nothing more to leave."""
    return _cells(OneWayGrid(size.side, size.side, wall=None, costly=_some_cells(size, seed, 0.2), costly_cost=cost))


def cliff_grid(size: Size, seed: int) -> ExactWorld:
    """A tenth of all cells are cliffs: who steps there pays, and is back at the first cell."""
    cliffs = _some_cells(size, seed, 0.1)
    return _cells(OneWayGrid(size.side, size.side, wall=None, cliffs=cliffs))


def gym_table(env: str) -> ExactWorld:
    """The same for every seed."""
    world = GymTable(env)
    return _graph_world(world.graph, world.positions)


def constant_current(size: Size, seed: int, speed: float = 0.6) -> ExactWorld:
    """Zermelo's times in a current along the first axis, of so many times the vehicle's speed."""
    current = np.array([speed, 0.0])
    points = numpy_generator(seed, "places").uniform(-1, 1, (size.states, 2))
    return ExactWorld(lambda x, y: zermelo(x, y, current), points)


def sizes(size: Size, seed: int, ratio: float = 3.0) -> ExactWorld:
    """Sizes by their logarithms; shrinking costs so many times what growing costs."""
    points = numpy_generator(seed, "sizes").normal(size=(size.states, 1))
    return ExactWorld(lambda x, y: scale_energy(np.exp(x[:, 0]), np.exp(y[:, 0]), 1.0, ratio), points)


def edits(size: Size, seed: int, ratio: float = 3.0) -> ExactWorld:
    """Random words; an insertion costs so many times what a deletion costs."""
    rng = numpy_generator(seed, "words")
    lengths = rng.integers(0, 9, size.states)
    words = sorted({"".join(rng.choice(list(SYMBOLS), length)) for length in lengths})
    return ExactWorld(edit_energies(words, costs=EditCosts(insert=ratio, delete=1.0, substitute=1.5)))


def interval_maps(size: Size, seed: int) -> ExactWorld:
    """Monotone maps of an interval, under the length that is the same both ways."""
    maps = random_maps(size.states, seed)
    return ExactWorld(interval_energies(maps, maps))


def strained_maps(size: Size, seed: int, ratio: float = 3.0) -> ExactWorld:
    """The same maps; squeezing costs so many times what stretching costs."""
    maps = random_maps(size.states, seed)
    return ExactWorld(strain_energies(maps, maps, 1.0, ratio))


def random_maps(count: int, seed: int, pieces: int = PIECES) -> np.ndarray:
    """Increasing maps of [0, 1] onto itself at pieces + 1 points, (count, pieces + 1)."""
    steps = np.exp(numpy_generator(seed, "maps").normal(size=(count, pieces)))
    return np.hstack([np.zeros((count, 1)), np.cumsum(steps, 1) / steps.sum(1, keepdims=True)])


def rules(size: Size, seed: int, share: float = 1.0) -> ExactWorld:
    """Every fact but the first implies two earlier ones; of these rules a share has no converse."""
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
    """Never the first cell."""
    chosen = 1 + numpy_generator(seed, "cells").permutation(size.side**2 - 1)[: round(share * size.side**2)]
    return tuple((int(cell) // size.side, int(cell) % size.side) for cell in sorted(chosen))
