"""A maze: cells of a square, joined by a random spanning tree, so that there is one way between any two of them.

`loops` opens more walls, those first where the way round is longest. With `one_way` each of these is a door that can
be passed in one direction only: a short cut there, and the long way round through the tree to come back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from jepatlas.core.errors import InputError, check_argument
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.cameras import Camera
from jepatlas.worlds.current_fields import AnyCurrent
from jepatlas.worlds.flat import FlatWorld
from jepatlas.worlds.spanning_tree import Edge, grid_edges, long_ways, spanning_tree
from jepatlas.worlds.walls import Box, Walls, joined_lines, segment, walls

__all__ = ["Maze"]

MOST_CELLS = 10  # along a side: in 64 pixels the agent would be smaller than one
STEPS, RADIUS, THICKNESS = 4, 0.15, 0.15  # steps in a cell; sizes of the agent and of walls in cells


@dataclass(frozen=True)
class Maze(FlatWorld):
    """Cells are numbered by rows, from the lower left.

    >>> Maze(cells=5).step_length
    0.1
    """

    kind: ClassVar[str] = "maze"

    cells: int = 5
    """Number of cells along a side."""
    seed: int = 0
    """Seed of the spanning tree, and of the way of doors."""
    loops: int = 0
    """How many walls are opened beyond the tree."""
    one_way: bool = False
    """Whether these openings are doors that lead one way only."""
    reach: float = 1.0
    """How many steps from a goal one has reached it."""
    current: AnyCurrent | None = None
    """What carries the agent along, in units of its own speed."""
    camera: Camera = field(default_factory=Camera)
    """How it is seen."""

    def __post_init__(self) -> None:
        self.check_flat()
        check_argument("cells", self.cells, 2 <= self.cells <= MOST_CELLS, f"a whole number from 2 to {MOST_CELLS}")
        most = (self.cells - 1) ** 2
        check_argument(
            "loops", self.loops, 0 <= self.loops <= most, f"from 0 to {most}, the walls of {self.cells}² cells"
        )
        if self.one_way and not self.loops:
            raise InputError("one_way is set, but doors stand where loops open a wall. Set loops to at least 1.")

    @property
    def step_length(self) -> float:
        return self._cell / STEPS

    @property
    def radius(self) -> float:
        return RADIUS * self._cell

    @property
    def thickness(self) -> float:
        return THICKNESS * self._cell

    @cached_property
    def passages(self) -> tuple[Edge, ...]:
        """The pairs of cells between which the spanning tree leaves no wall."""
        return spanning_tree(self.cells, numpy_generator(self.seed, "worlds/maze/tree"))

    @cached_property
    def openings(self) -> tuple[Edge, ...]:
        """The pairs of cells that loops join; with one-way doors, in the order in which one gets through."""
        found = long_ways(self.cells, self.passages, self.loops)
        turned = numpy_generator(self.seed, "worlds/maze/doors").random(len(found)) < 0.5
        return tuple((b, a) if turn else (a, b) for (a, b), turn in zip(found, turned, strict=True))

    def build_walls(self) -> Walls:
        joined = {frozenset(edge) for edge in self.passages + self.openings}
        standing = [edge for edge in grid_edges(self.cells) if frozenset(edge) not in joined]
        doors = [(self._side(edge), self._way(edge)) for edge in self.openings] if self.one_way else []
        lines = joined_lines(map(self._side, standing))
        posts = [(end, end) for door, _ in doors for end in door]  # a door must end in a wall, also where none is left
        return walls([segment(*line, self.thickness) for line in lines + posts], doors)

    @property
    def _cell(self) -> float:
        return 2.0 / self.cells

    def _middle(self, cell: int) -> np.ndarray:
        return (np.array([cell % self.cells, cell // self.cells]) + 0.5) * self._cell - 1

    def _side(self, edge: Edge) -> Box:
        """The line between two neighbouring cells."""
        first, second = map(self._middle, edge)
        half = np.abs(second - first)[::-1] / 2
        low, high = (first + second) / 2 - half, (first + second) / 2 + half
        return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))

    def _way(self, edge: Edge) -> tuple[int, int]:
        x, y = np.rint((self._middle(edge[1]) - self._middle(edge[0])) / self._cell).astype(int)
        return int(x), int(y)
