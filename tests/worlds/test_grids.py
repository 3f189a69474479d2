"""The one-way grid: moves against a search on its drawing, walks, invalid input."""

from collections import deque

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.worlds import OneWayGrid
from jepatlas.worlds.random_episodes import covered_edges

PICTURE = """\
. . # . > . .
. . # . | . $
. . . . < . .
. . . # = . #"""
DRAWN = OneWayGrid(
    4, 6, wall=4, doors=(0, 3), doors_back=(2, 3), obstacles=((0, 2), (1, 2), (3, 3), (3, 5)), costly=((1, 5),)
)


def energies(world: OneWayGrid) -> np.ndarray:
    graph = world.graph
    return dijkstra(coo_array((graph.cost, (graph.source, graph.target)), (graph.size, graph.size)).tocsr())


def steps_of_picture(picture: str) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """The moves in a drawing: every second character is a cell, and one column of cells is the wall."""
    rows = [line.split(" ") for line in picture.splitlines()]
    wall = next(i for i in range(len(rows[0])) if any(row[i] in "|<>=" for row in rows))
    side = [row[:wall] + row[wall + 1 :] for row in rows]
    free = {(r, c) for r, row in enumerate(side) for c, mark in enumerate(row) if mark != "#"}
    steps = {}
    for r, c in free:
        neighbours = {(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)} & free
        if c == wall - 1 and rows[r][wall] not in ">=":
            neighbours.discard((r, c + 1))
        if c == wall and rows[r][wall] not in "<=":
            neighbours.discard((r, c - 1))
        steps[r, c] = neighbours
    return steps


def breadth_first(steps: dict[tuple[int, int], set[tuple[int, int]]], start: tuple[int, int]) -> dict:
    found, front = {start: 0}, deque([start])
    while front:
        cell = front.popleft()
        for neighbour in steps[cell] - set(found):
            found[neighbour] = found[cell] + 1
            front.append(neighbour)
    return found


def test_unreachable_share_of_the_default_grid():
    world = OneWayGrid()
    lost = np.isinf(energies(world))
    assert lost.mean() == 0.25
    right = world.positions[:, 1] >= 6
    np.testing.assert_array_equal(lost, right[:, None] & ~right[None, :])


def test_finite_default_energies_are_manhattan_distances():
    world = OneWayGrid()
    found = energies(world)
    blocks = np.abs(world.positions[:, None] - world.positions[None]).sum(-1)
    np.testing.assert_array_equal(found[np.isfinite(found)], blocks[np.isfinite(found)])


def test_drawing_matches_the_graph():
    assert DRAWN.draw() == PICTURE
    steps = steps_of_picture(PICTURE)
    assert set(DRAWN.cells) == set(steps)
    given = {(DRAWN.cells[s], DRAWN.cells[t]) for s, t in zip(DRAWN.graph.source, DRAWN.graph.target, strict=True)}
    assert given == {(cell, neighbour) for cell, neighbours in steps.items() for neighbour in neighbours}


def test_energies_without_costly_cells_against_breadth_first_search():
    world = from_plain(OneWayGrid, to_plain(DRAWN) | {"costly": []})
    found, steps = energies(world), steps_of_picture(PICTURE)
    for cell in world.cells:
        reached = breadth_first(steps, cell)
        expected = [reached.get(other, np.inf) for other in world.cells]
        np.testing.assert_array_equal(found[world.index(cell)], expected)


def test_costly_cells_cost_to_enter_but_not_to_leave():
    found, inside, above = energies(DRAWN), DRAWN.index((1, 5)), DRAWN.index((0, 5))
    assert found[above, inside] == 3
    assert found[inside, above] == 1


def test_cliffs_cost_more_and_return_to_the_start():
    world = OneWayGrid(2, 4, wall=2, cliffs=((1, 2), (1, 3)), cliff_cost=7.0, start=(1, 0))
    found = energies(world)
    assert len(world.positions) == 6
    assert world.draw() == ". . > . .\nS . > x x"
    assert found[world.index((0, 3)), world.index((0, 0))] == 7 + 1
    assert found[world.index((1, 1)), world.index((1, 0))] == 1


def test_walks_are_connected_moves_with_their_costs():
    seen = DRAWN.walk(episodes=40, length=15, seed=1)
    assert seen.z is not None and seen.z_next is not None
    np.testing.assert_array_equal(seen.x, DRAWN.observe(seen.z))
    np.testing.assert_array_equal(seen.x_next, DRAWN.observe(seen.z_next))
    graph = DRAWN.graph
    costs = {(s, t): c for s, t, c in zip(graph.source, graph.target, graph.cost, strict=True)}
    for before, after, cost in zip(seen.z, seen.z_next, seen.cost, strict=True):
        assert costs[DRAWN.index(tuple(before)), DRAWN.index(tuple(after))] == cost
    on = np.diff(seen.episode) == 0
    np.testing.assert_array_equal(seen.z[1:][on], seen.z_next[:-1][on])
    np.testing.assert_array_equal(np.bincount(seen.episode), 15)


def test_long_walks_use_every_move():
    seen = DRAWN.walk(episodes=300, length=30, seed=0)
    assert seen.z is not None and seen.z_next is not None
    used = {(DRAWN.index(tuple(a)), DRAWN.index(tuple(b))) for a, b in zip(seen.z, seen.z_next, strict=True)}
    assert used == set(zip(DRAWN.graph.source, DRAWN.graph.target, strict=True))
    np.testing.assert_array_equal([seen.x.min(0), seen.x.max(0)], [[-1, -1], [1, 1]])


def test_coverage_limits_moves_and_is_nested():
    world = OneWayGrid()
    edges = [set(covered_edges(world.graph, 3, share)) for share in (0.1, 0.5, 1.0)]
    assert edges[0] < edges[1] < edges[2] == set(range(len(world.graph.source)))
    assert len(edges[1]) == len(world.graph.source) / 2
    seen = world.walk(episodes=200, length=20, seed=3, coverage=0.5)
    assert seen.z is not None and seen.z_next is not None
    used = {(world.index(tuple(a)), world.index(tuple(b))) for a, b in zip(seen.z, seen.z_next, strict=True)}
    assert used <= {(world.graph.source[e], world.graph.target[e]) for e in edges[1]}


def test_walks_depend_on_the_seed():
    one, again, other = (OneWayGrid().walk(5, 10, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.x, again.x)
    assert not np.array_equal(one.x, other.x)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"height": 1}, "height is 1"),
        ({"width": 1, "wall": None}, "width is 1"),
        ({"wall": 12}, "wall is 12"),
        ({"doors": (3, 12)}, "doors is .* from 0 to 11"),
        ({"doors_back": (-1,)}, "doors_back is"),
        ({"wall": None, "doors": (1,)}, "doors"),
        ({"obstacles": ((0, 12),)}, r"obstacles: .*\(0, 12\)"),
        ({"costly_cost": float("nan")}, "costly_cost is nan"),
        ({"cliff_cost": -1.0}, "cliff_cost is -1.0"),
        ({"cliffs": ((0, 0),)}, r"\(0, 0\)"),
        ({"height": 2, "width": 2, "wall": None, "obstacles": ((0, 0), (0, 1), (1, 0), (1, 1))}, "grid"),
    ],
)
def test_invalid_fields_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        OneWayGrid(**given)


def test_a_goal_outside_the_world_is_refused():
    with pytest.raises(InputError, match=r"\(3, 40\)"):
        OneWayGrid().index((3, 40))


@pytest.mark.parametrize("given", [{"episodes": 0}, {"length": 0}, {"coverage": 0.0}, {"coverage": 1.5}])
def test_walks_refuse_invalid_arguments(given):
    with pytest.raises(InputError, match=next(iter(given))):
        OneWayGrid().walk(**({"episodes": 1, "length": 1, "seed": 0} | given))


def test_recipe_round_trip():
    assert from_plain(OneWayGrid, to_plain(DRAWN)) == DRAWN
