"""Mazes: the cells of a square, connected by a random spanning tree, with exactly one path between any two cells.

`loops` opens more walls, first those where the path around is longest. With `one_way`, each of these openings is a
one-way door: a short cut in its direction, and the long path through the tree in the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from jepatlas.core.errors import InputError, check_argument
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.cameras import Camera
from jepatlas.worlds.currents import AnyCurrent
from jepatlas.worlds.flat import FlatWorld
from jepatlas.worlds.walls import Box, Walls, join_lines, segment

__all__ = ["Maze", "grid_edges"]

MAX_CELLS = 10  # along a side: with more, the agent would be smaller than one of the 64 pixels
STEPS_PER_CELL = 4
RADIUS, THICKNESS = 0.15, 0.15  # of the agent and of the walls, in cells

Edge = tuple[int, int]
"""Two neighbouring cells, numbered row by row."""


@dataclass(frozen=True)
class Maze(FlatWorld):
    """Cells are numbered row by row, from the lower left.

    >>> Maze(cells=5).step_length
    0.1
    """

    kind: ClassVar[str] = "maze"

    cells: int = 5
    """Number of cells along a side."""
    seed: int = 0
    """Seed of the spanning tree and of the directions of doors."""
    loops: int = 0
    """Number of walls that are opened in addition to the tree."""
    one_way: bool = False
    """Whether these openings are one-way doors."""
    reach: float = 1.0
    """Distance from the goal, in steps, at which it counts as reached."""
    current: AnyCurrent | None = None
    """Current that carries the agent along, in units of its speed."""
    camera: Camera = field(default_factory=Camera)
    """Camera that renders the observations."""

    def __post_init__(self) -> None:
        self.check_reach()
        check_argument("cells", self.cells, 2 <= self.cells <= MAX_CELLS, f"a whole number from 2 to {MAX_CELLS}")
        most = (self.cells - 1) ** 2
        check_argument(
            "loops",
            self.loops,
            0 <= self.loops <= most,
            f"from 0 to {most}, the number of walls for cells={self.cells}",
        )
        if self.one_way and not self.loops:
            raise InputError(
                "one_way is true, but loops is 0, so there is no opening for a door. Set loops to 1 or more."
            )

    @property
    def step_length(self) -> float:
        return self._cell_size / STEPS_PER_CELL

    @property
    def radius(self) -> float:
        return RADIUS * self._cell_size

    @property
    def thickness(self) -> float:
        return THICKNESS * self._cell_size

    @cached_property
    def passages(self) -> tuple[Edge, ...]:
        """The pairs of cells that the spanning tree connects."""
        return _spanning_tree(self.cells, numpy_generator(self.seed, "worlds/maze/tree"))

    @cached_property
    def openings(self) -> tuple[Edge, ...]:
        """The pairs of cells that loops connect; one-way doors lead from the first to the second."""
        edges = _longest_detours(self.cells, self.passages, self.loops)
        reversed_ = numpy_generator(self.seed, "worlds/maze/doors").random(len(edges)) < 0.5
        openings = []
        for (a, b), swap in zip(edges, reversed_, strict=True):
            openings.append((b, a) if swap else (a, b))
        return tuple(openings)

    def build_walls(self) -> Walls:
        connected = {frozenset(edge) for edge in self.passages + self.openings}
        closed = [edge for edge in grid_edges(self.cells) if frozenset(edge) not in connected]
        lines = join_lines(map(self._border, closed))
        doors = []
        if self.one_way:
            for edge in self.openings:
                doors.append((self._border(edge), self._direction(edge)))
        for door, _ in doors:
            # A door must end in a wall on both sides, even where no other wall is left.
            lines += [(end, end) for end in door]
        return Walls.build([segment(start, end, self.thickness) for start, end in lines], doors)

    @property
    def _cell_size(self) -> float:
        return 2.0 / self.cells

    def _centre(self, cell: int) -> np.ndarray:
        return (np.array([cell % self.cells, cell // self.cells]) + 0.5) * self._cell_size - 1

    def _border(self, edge: Edge) -> Box:
        """The line between two neighbouring cells."""
        first, second = self._centre(edge[0]), self._centre(edge[1])
        half = np.abs(second - first)[::-1] / 2
        low, high = (first + second) / 2 - half, (first + second) / 2 + half
        return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))

    def _direction(self, edge: Edge) -> tuple[int, int]:
        x, y = np.rint((self._centre(edge[1]) - self._centre(edge[0])) / self._cell_size).astype(int)
        return int(x), int(y)


def grid_edges(side: int) -> list[Edge]:
    """All pairs of neighbouring cells, lower number first.

    >>> grid_edges(2)
    [(0, 1), (2, 3), (0, 2), (1, 3)]
    """
    cell = np.arange(side * side).reshape(side, side)
    horizontal = zip(cell[:, :-1].flat, cell[:, 1:].flat, strict=True)
    vertical = zip(cell[:-1].flat, cell[1:].flat, strict=True)
    return [(int(a), int(b)) for a, b in (*horizontal, *vertical)]


def _spanning_tree(side: int, rng: np.random.Generator) -> tuple[Edge, ...]:
    """By randomised depth-first search, which gives long corridors with few dead ends."""
    neighbours: dict[int, list[int]] = {cell: [] for cell in range(side * side)}
    for a, b in grid_edges(side):
        neighbours[a].append(b)
        neighbours[b].append(a)
    path = [int(rng.integers(side * side))]
    visited: set[int] = set()
    tree = []
    while path:
        here = path[-1]
        visited.add(here)
        new = [cell for cell in neighbours[here] if cell not in visited]
        if not new:
            path.pop()
            continue
        path.append(int(rng.choice(new)))
        tree.append((min(here, path[-1]), max(here, path[-1])))
    return tuple(tree)


def _longest_detours(side: int, tree: tuple[Edge, ...], count: int) -> tuple[Edge, ...]:
    """Neighbours to connect, greedily: in each step those with the longest path between them."""
    edges, added = list(tree), []
    for _ in range(count):
        length = _path_lengths(side * side, edges)
        candidates = [edge for edge in grid_edges(side) if edge not in edges]
        added.append(max(candidates, key=lambda edge: length[edge]))
        edges.append(added[-1])
    return tuple(added)


def _path_lengths(size: int, edges: list[Edge]) -> np.ndarray:
    from scipy.sparse import coo_array  # noqa: PLC0415  (slow to import)
    from scipy.sparse.csgraph import shortest_path  # noqa: PLC0415

    a, b = np.array(edges).T
    return shortest_path(coo_array((np.ones(len(a)), (a, b)), (size, size)), directed=False, unweighted=True)
