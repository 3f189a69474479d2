"""Exact distances against closed forms and against Dijkstra's algorithm on a fine grid."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from jepatlas.core.errors import InputError
from jepatlas.energy.exact import Medium, energies_to, zermelo
from jepatlas.worlds import ConstantCurrent, Maze, Rooms
from jepatlas.worlds.flat import FlatWorld

SPACING = 0.03
MOVES = [move for move in itertools.product(range(-2, 3), repeat=2) if math.gcd(*move) == 1]


def by_dijkstra(world: FlatWorld, goal: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Distances in steps from starts to the goal over a grid, where each node has 16 neighbours."""
    limit = 1 - world.radius
    axis = np.linspace(-limit, limit, round(2 * limit / SPACING) + 1)
    nodes = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    size, edges = len(axis), []
    number = np.arange(size**2).reshape(size, size)
    for i, j in MOVES:
        here = number[max(0, -i) : size - max(0, i), max(0, -j) : size - max(0, j)].ravel()
        there = here + i * size + j
        free = free_along(world, nodes[here], nodes[there])
        edges.append((np.linalg.norm(nodes[there] - nodes[here], axis=1)[free], here[free], there[free]))
    length, here, there = map(np.concatenate, zip(*edges, strict=True))
    to_goal = coo_array((length, (there, here)), (size**2, size**2)).tocsr()
    at = [int(np.linalg.norm(nodes - place, axis=1).argmin()) for place in (goal, *starts)]
    return dijkstra(to_goal, indices=at[0])[at[1:]] / world.step_length


def free_along(world: FlatWorld, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    points = x + np.linspace(0, 1, 7)[:, None, None] * (y - x)
    free = np.ones(len(x), dtype=bool)
    for low, high, way in zip(world.walls.low, world.walls.high, world.walls.direction, strict=True):
        if not way.any():
            within = (points > low - world.radius + 1e-9) & (points < high + world.radius - 1e-9)
            free &= ~within.all(-1).any(0)
        else:
            crossed = ((x - low) @ way >= 0) & ((y - low) @ way < 0)
            middle = ((x + y) / 2) @ np.abs(way[::-1])
            side = np.abs(way[::-1])
            free &= ~(crossed & (middle > low @ side) & (middle < high @ side))
    return free


@pytest.mark.parametrize(
    "world",
    [
        Rooms(),
        Rooms(one_way=True, wall=-0.2, door=0.1),
        Rooms(one_way=True, way_back=False),
        Maze(cells=4, seed=1),
        Maze(cells=4, seed=1, loops=3, one_way=True),
    ],
    ids=["rooms", "round", "no return", "maze", "one-way maze"],
)
def test_distance_against_dijkstra_on_a_fine_grid(world: FlatWorld):
    rng = np.random.default_rng(0)
    x = world.states(60, rng)
    goal = world.states(1, rng)[0]
    exact, grid = world.distance_to(goal, x), by_dijkstra(world, goal, x)
    np.testing.assert_array_equal(np.isinf(exact), np.isinf(grid))
    near = SPACING / world.step_length  # both ends are rounded to nodes
    seen = np.isfinite(exact)
    assert (grid[seen] >= exact[seen] - 2 * near).all()
    assert (grid[seen] <= 1.03 * exact[seen] + 4 * near).all()


def test_distance_around_corners_in_closed_form():
    world = Rooms(wall=0.0, door=0.4)  # the wall is 0.08 thick, the door 0.44 wide, the agent's radius 0.08
    left, right = (
        np.array([-0.12, 0.26]),
        np.array([0.12, 0.26]),
    )  # lower corners, for the agent's centre
    x, y, above = np.array([-0.7, -0.5]), np.array([0.8, -0.9]), np.array([0.5, 0.6])
    length = np.linalg.norm(x - left) + 0.24 + np.linalg.norm(y - right)
    assert world.distance_to(y, x[None])[0] == pytest.approx(length / 0.1, rel=1e-12)
    assert world.distance_to(x, y[None])[0] == pytest.approx(length / 0.1, rel=1e-12)
    one_corner = np.linalg.norm(x - left) + np.linalg.norm(above - left)
    assert world.distance_to(above, x[None])[0] == pytest.approx(one_corner / 0.1, rel=1e-12)
    near = np.array([[-0.9, 0.0], [-0.3, 0.3]])
    np.testing.assert_allclose(world.distance_to(x, near), np.linalg.norm(near - x, axis=1) / 0.1)


def test_one_way_doors_give_different_distances_there_and_back():
    world = Rooms(one_way=True, wall=0.0, door=0.4)
    x, y = np.array([-0.5, -0.3]), np.array([0.5, -0.3])
    there = 2 * np.linalg.norm([0.38, 0.56]) + 0.24
    back = 2 * np.linalg.norm([0.38, 0.34]) + 0.24  # the way back ends at -0.56, and the agent's centre at -0.64
    assert world.distance_to(y, x[None])[0] == pytest.approx(there / 0.1)
    assert world.distance_to(x, y[None])[0] == pytest.approx(back / 0.1)
    no_return = Rooms(one_way=True, way_back=False)
    assert no_return.distance_to(y, x[None])[0] == pytest.approx(there / 0.1)
    assert no_return.distance_to(x, y[None])[0] == np.inf


@pytest.mark.parametrize("world", [Rooms(one_way=True), Maze(seed=3, loops=4, one_way=True)], ids=["rooms", "maze"])
def test_distances_are_a_quasimetric(world: FlatWorld):
    x = world.states(25, np.random.default_rng(2))
    d = np.stack([world.distance_to(goal, x) for goal in x], axis=1)  # from row to column
    np.testing.assert_allclose(d, [world.distance_from(start, x) for start in x], rtol=1e-12)
    np.testing.assert_array_equal(np.diagonal(d), 0)
    assert (d[:, None, :] <= d[:, :, None] + d[None] + 1e-9).all()
    assert np.isfinite(d).all() and np.abs(d - d.T).max() > 5


def test_distance_against_the_eikonal_solver():
    world, rng = Rooms(door=-0.2), np.random.default_rng(0)
    goal, x = world.states(1, rng)[0], world.states(40, rng)
    times = energies_to(Medium(**world.medium_arrays(93)), goal)(x)
    exact = world.distance_to(goal, x)
    near = 0.02 / world.step_length  # corners are rounded to nodes
    assert (np.abs(times - exact) <= 2 * near + 0.01 * exact).all()


def test_medium_includes_the_current_in_steps():
    current = ConstantCurrent(0.3, 0.2)
    world = Rooms(wall=0.5, current=current)
    goal, x = np.array([-0.5, 0.1]), np.array([[-0.1, -0.6], [-0.8, 0.7]])
    times = energies_to(Medium(**world.medium_arrays(61)), goal)(x)
    np.testing.assert_allclose(times, zermelo(x, goal, np.array([0.03, 0.02]), 0.1), rtol=0.02)
    with pytest.raises(InputError, match="eikonal"):
        world.distance_to(goal, x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Rooms().distance_to(np.array([0.0, 0.0]), np.zeros((1, 2)) + 0.5), r"\[0.0, 0.0\]"),
        (lambda: Rooms().distance_to(np.array([0.5, 0.0]), np.array([[1.5, 0.0]])), r"\[1.5, 0.0\]"),
        (lambda: Rooms().distance_to(np.zeros((1, 2)), np.zeros((1, 2))), r"\(2,\)"),
        (lambda: Rooms().medium_arrays(5), "resolution is 5"),
        (lambda: Rooms(one_way=True).medium_arrays(99), "one_way"),
    ],
)
def test_invalid_arguments_are_refused(call, message: str):
    with pytest.raises(InputError, match=message):
        call()
