"""A grid of cells with a one-way wall, where every energy is the length of a shortest path.

Moves go to the four neighbours. E(x, y) is the least total cost of moves from x to y, or +∞ if there is no path. If a
share p of the cells is before the wall and there is no door back, p(1 − p) of all ordered pairs are unreachable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from jepatlas.core.errors import InputError, check_argument, check_count, check_positive
from jepatlas.core.graphs import Graph
from jepatlas.core.records import Experience
from jepatlas.worlds.random_episodes import as_experience, walk_graph

__all__ = ["Cell", "OneWayGrid"]

Cell = tuple[int, int]
MOVES: tuple[Cell, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))


@dataclass(frozen=True)
class OneWayGrid:
    """Cells (row, column); the wall is on the left side of a column and is passed from left to right.

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
    """Column whose left side is the wall; none for no wall. In the middle, 25% of pairs are unreachable."""
    doors: tuple[int, ...] | None = None
    """Rows in which the wall can be passed from left to right; none for all rows."""
    doors_back: tuple[int, ...] = ()
    """Rows in which the wall can be passed from right to left."""
    obstacles: tuple[Cell, ...] = ()
    """Cells that cannot be entered."""
    costly: tuple[Cell, ...] = ()
    """Cells that cost more to enter."""
    costly_cost: float = 3.0
    """Cost of entering a costly cell; any other costs 1."""
    cliffs: tuple[Cell, ...] = ()
    """Cells from which the agent falls and returns to the start, as in cliff walking."""
    cliff_cost: float = 10.0
    """Cost of a step into a cliff."""
    start: Cell = (0, 0)
    """Cell to which the agent returns after a fall."""

    def __post_init__(self) -> None:
        check_count("height", self.height, minimum=2)
        check_count("width", self.width, minimum=2)
        for name in ("costly_cost", "cliff_cost"):
            check_positive(name, getattr(self, name))
        self._check_wall()
        for name in ("obstacles", "costly", "cliffs"):
            for cell in getattr(self, name):
                self._check_inside(name, cell)
        if not len(self.cells):
            raise InputError("Obstacles and cliffs fill the whole grid. Leave at least one cell free.")
        if self.cliffs:
            self.index(self.start)

    def _check_wall(self) -> None:
        if self.wall is None:
            if self.doors or self.doors_back:
                raise InputError("doors or doors_back are given, but wall is none. Set wall to a column.")
            return
        check_argument("wall", self.wall, 0 < self.wall < self.width, f"a column from 1 to {self.width - 1}, or none")
        for name, rows in (("doors", self.doors or ()), ("doors_back", self.doors_back)):
            valid = all(0 <= row < self.height for row in rows)
            check_argument(name, rows, valid, f"rows of the wall, from 0 to {self.height - 1}")

    def _check_inside(self, name: str, cell: Cell) -> None:
        if not (0 <= cell[0] < self.height and 0 <= cell[1] < self.width):
            raise InputError(
                f"{name}: the cell {cell} is outside the grid. Rows go from 0 to {self.height - 1}, columns from 0 to "
                f"{self.width - 1}."
            )

    @property
    def observed_dim(self) -> int:
        return 2

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The states: every free cell, row by row."""
        blocked = {*self.obstacles, *self.cliffs}
        every = ((row, column) for row in range(self.height) for column in range(self.width))
        return tuple(cell for cell in every if cell not in blocked)

    @cached_property
    def positions(self) -> np.ndarray:
        """Row and column of each state: (n, 2)."""
        return np.array(self.cells, dtype=np.float64)

    def index(self, cell: Cell) -> int:
        """The number of the state at a cell; raises InputError if the cell is not free."""
        self._check_inside("goal or start", cell)
        if cell not in self._numbers:
            raise InputError(f"The cell {cell} is an obstacle or a cliff. Choose a free cell.")
        return self._numbers[cell]

    @cached_property
    def _numbers(self) -> dict[Cell, int]:
        return {cell: number for number, cell in enumerate(self.cells)}

    @cached_property
    def graph(self) -> Graph:
        """All possible moves between states, with their costs."""
        source, target, cost = [], [], []
        for number, cell in enumerate(self.cells):
            for move in MOVES:
                end = self._move(cell, move)
                if end is not None:
                    source.append(number)
                    target.append(end[0])
                    cost.append(end[1])
        return Graph(len(self.cells), np.array(source), np.array(target), np.array(cost, dtype=np.float64))

    def _move(self, cell: Cell, move: Cell) -> tuple[int, float] | None:
        """End state and cost of a move; None if it is not possible."""
        neighbour = (cell[0] + move[0], cell[1] + move[1])
        if not self._passable(cell, neighbour):
            return None
        if neighbour in self.cliffs:
            return self.index(self.start), self.cliff_cost
        if neighbour not in self._numbers:
            return None
        return self.index(neighbour), self.costly_cost if neighbour in self.costly else 1.0

    def _passable(self, cell: Cell, neighbour: Cell) -> bool:
        """Whether the wall allows a move between two neighbouring cells."""
        if self.wall is None or {cell[1], neighbour[1]} != {self.wall - 1, self.wall}:
            return True
        if neighbour[1] == self.wall:
            return self.doors is None or cell[0] in self.doors
        return cell[0] in self.doors_back

    def observe(self, z: np.ndarray) -> np.ndarray:
        """Row and column, each scaled to [−1, 1]."""
        return 2 * np.asarray(z, dtype=np.float64) / (self.height - 1, self.width - 1) - 1

    def walk(self, episodes: int, length: int, seed: int, coverage: float = 1.0) -> Experience:
        """Random episodes that use a share `coverage` of the possible moves."""
        states, cost = walk_graph(self.graph, episodes, length, seed, coverage)
        return as_experience(self.positions[states], states[:, 1:] >= 0, cost, self.observe)

    def draw(self) -> str:
        """The grid as text: # obstacle, x cliff, $ costly, S start after falls, > < = | wall with and without doors."""
        return "\n".join(" ".join(self._row_symbols(row)) for row in range(self.height))

    def _row_symbols(self, row: int) -> list[str]:
        symbols = [self._symbol((row, column)) for column in range(self.width)]
        if self.wall is not None:
            left, right = (row, self.wall - 1), (row, self.wall)
            symbols.insert(self.wall, "|<>="[self._passable(right, left) + 2 * self._passable(left, right)])
        return symbols

    def _symbol(self, cell: Cell) -> str:
        if cell in self.cliffs:
            return "x"
        if cell in self.obstacles:
            return "#"
        if self.cliffs and cell == self.start:
            return "S"
        return "$" if cell in self.costly else "."
