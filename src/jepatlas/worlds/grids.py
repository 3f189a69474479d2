"""A grid of cells with a wall that can be crossed one way only, where every energy is a shortest path.

Moves go to the four neighbours, and E(x, y) is the least total cost of moves from x to y: +∞ if there is no way. With
a share p of the cells before the wall and no door back, p(1 − p) of all ordered pairs are out of reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.core.graphs import Graph
from jepatlas.core.records import Experience
from jepatlas.worlds.episodes import as_experience, walk_graph

__all__ = ["Cell", "OneWayGrid"]

Cell = tuple[int, int]
MOVES: tuple[Cell, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))


@dataclass(frozen=True)
class OneWayGrid:
    """Cells (row, column); the wall stands on the left side of a column and lets one through to the right.

    >>> print(OneWayGrid(height=2, width=4, wall=2, doors=(1,), obstacles=((0, 3),)).draw())
    . . | . #
    . . > . .
    """

    kind: ClassVar[str] = "one-way-grid"

    height: int = 12
    """Number of rows."""
    width: int = 12
    """Number of columns."""
    wall: int | None = 6
    """The column on whose left side the wall stands; None for no wall. In the middle, 25% of pairs are out of reach."""
    doors: tuple[int, ...] | None = None
    """Rows where one gets through the wall from left to right; None for all."""
    doors_back: tuple[int, ...] = ()
    """Rows where one gets through the wall from right to left."""
    obstacles: tuple[Cell, ...] = ()
    """Cells that cannot be entered."""
    costly: tuple[Cell, ...] = ()
    """Cells that cost more to enter."""
    costly_cost: float = 3.0
    """What it costs to enter a costly cell; any other costs 1."""
    cliffs: tuple[Cell, ...] = ()
    """Cells from which one falls: the step costs more, and ends at the start, as in cliff walking."""
    cliff_cost: float = 10.0
    """What a step off a cliff costs."""
    start: Cell = (0, 0)
    """Where one lands after a fall."""

    def __post_init__(self) -> None:
        check_count("height", self.height, minimum=2)
        check_count("width", self.width, minimum=2)
        for name in ("costly_cost", "cliff_cost"):
            check_argument(name, getattr(self, name), 0 < getattr(self, name) < math.inf, "positive and finite")
        self._check_wall()
        for name in ("obstacles", "costly", "cliffs"):
            for cell in getattr(self, name):
                self._check_inside(name, cell)
        if not len(self.cells):
            raise InputError("No cell can be entered: obstacles and cliffs fill the grid. Leave some cells free.")
        if self.cliffs:
            self.index(self.start)

    def _check_wall(self) -> None:
        if self.wall is None:
            if self.doors or self.doors_back:
                raise InputError("doors are given, but there is no wall to put them in. Set wall to a column.")
            return
        check_argument("wall", self.wall, 0 < self.wall < self.width, f"a column from 1 to {self.width - 1}, or none")
        for name, rows in (("doors", self.doors or ()), ("doors_back", self.doors_back)):
            for row in rows:
                what = f"rows of the wall, from 0 to {self.height - 1}"
                check_argument(name, rows, 0 <= row < self.height, what)

    def _check_inside(self, name: str, cell: Cell) -> None:
        if not (0 <= cell[0] < self.height and 0 <= cell[1] < self.width):
            raise InputError(
                f"{name}: the cell {cell} is outside the world. Rows go from 0 to {self.height - 1}, columns from 0 to "
                f"{self.width - 1}."
            )

    @property
    def observed_dim(self) -> int:
        return 2

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The states: every cell that one can be in, row by row."""
        taken = {*self.obstacles, *self.cliffs}
        every = ((row, column) for row in range(self.height) for column in range(self.width))
        return tuple(cell for cell in every if cell not in taken)

    @cached_property
    def positions(self) -> np.ndarray:
        """Row and column of each state: (n, 2)."""
        return np.array(self.cells, dtype=np.float64)

    def index(self, cell: Cell) -> int:
        """The number of the state that is a cell; refused outside the world and where one cannot be."""
        self._check_inside("goal or start", cell)
        if cell not in self._numbers:
            raise InputError(f"One cannot be in the cell {cell}: it is an obstacle or a cliff. Choose a free cell.")
        return self._numbers[cell]

    @cached_property
    def _numbers(self) -> dict[Cell, int]:
        return {cell: number for number, cell in enumerate(self.cells)}

    @cached_property
    def graph(self) -> Graph:
        """Every move, between the numbers of states, with its cost."""
        moves = [(self.index(cell), *end) for cell in self.cells for move in MOVES if (end := self._move(cell, move))]
        source, target, cost = zip(*moves, strict=True) if moves else ((), (), ())
        return Graph(len(self.cells), np.array(source), np.array(target), np.array(cost, dtype=np.float64))

    def _move(self, cell: Cell, move: Cell) -> tuple[int, float] | None:
        """Where a move ends and what it costs; None where it is not possible."""
        row, column = cell[0] + move[0], cell[1] + move[1]
        if (row, column) in self.cliffs and self._open(cell, (row, column)):
            return self.index(self.start), self.cliff_cost
        if (row, column) not in self._numbers or not self._open(cell, (row, column)):
            return None
        return self.index((row, column)), self.costly_cost if (row, column) in self.costly else 1.0

    def _open(self, cell: Cell, beside: Cell) -> bool:
        """Whether the wall lets one through between two cells side by side."""
        if self.wall is None or {cell[1], beside[1]} != {self.wall - 1, self.wall}:
            return True
        if beside[1] == self.wall:
            return self.doors is None or cell[0] in self.doors
        return cell[0] in self.doors_back

    def observe(self, z: np.ndarray) -> np.ndarray:
        """Row and column, each brought to [−1, 1]."""
        return 2 * np.asarray(z, dtype=np.float64) / (self.height - 1, self.width - 1) - 1

    def walk(self, episodes: int, length: int, seed: int, coverage: float = 1.0) -> Experience:
        """Random episodes that use a share `coverage` of the possible moves."""
        states, cost = walk_graph(self.graph, episodes, length, seed, coverage)
        return as_experience(self.positions[states], states[:, 1:] >= 0, cost, self.observe)

    def draw(self) -> str:
        """The grid as text: # obstacle, x cliff, $ costly, S start of falls, > one way, < back, = both ways, | wall."""
        return "\n".join(" ".join(self._marks(row)) for row in range(self.height))

    def _marks(self, row: int) -> list[str]:
        marks = [self._mark((row, column)) for column in range(self.width)]
        if self.wall is not None:
            left, right = (row, self.wall - 1), (row, self.wall)
            marks.insert(self.wall, "|<>="[self._open(right, left) + 2 * self._open(left, right)])
        return marks

    def _mark(self, cell: Cell) -> str:
        signs = {"x": self.cliffs, "#": self.obstacles, "S": (self.start,) if self.cliffs else (), "$": self.costly}
        return next((sign for sign, cells in signs.items() if cell in cells), ".")
