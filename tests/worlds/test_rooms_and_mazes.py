"""Layouts, doors and currents of flat worlds; symmetrised energies fail in the one-way world."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.worlds import ConstantCurrent, Maze, Rooms, ShearCurrent
from jepatlas.worlds.flat import FlatWorld
from jepatlas.worlds.maze import grid_edges

ANGLES = np.arange(16) * np.pi / 8
HEADINGS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], -1)

Energies = Callable[[FlatWorld, np.ndarray, np.ndarray], np.ndarray]


def directed(world: FlatWorld, goal: np.ndarray, x: np.ndarray) -> np.ndarray:
    return world.distance_to(goal, x)


def symmetrised(world: FlatWorld, goal: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (world.distance_to(goal, x) + world.distance_from(goal, x)) / 2


def succeeds(world: FlatWorld, start: np.ndarray, goal: np.ndarray, energies: Energies) -> bool:
    """Whether greedy steps in 16 directions reach the goal within twice the shortest path plus ten steps."""
    x = start
    for _ in range(int(2 * world.distance_to(goal, start[None])[0]) + 10):
        after = world.step(np.repeat(x[None], len(HEADINGS), axis=0), HEADINGS)
        x = after[energies(world, goal, after).argmin()]
        if world.reached(x[None], goal[None])[0]:
            return True
    return False


def tasks_across(world: Rooms, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and reachable goals on different sides of the wall."""
    rng = np.random.default_rng(0)
    starts = world.states(8 * count, rng)
    goals = world.goals(starts, rng)
    across = np.flatnonzero((starts[:, 0] < world.wall_at) != (goals[:, 0] < world.wall_at))[:count]
    return starts[across], goals[across]


@pytest.mark.parametrize(
    ("world", "at_most"),
    [(Rooms(one_way=True), 5), (Rooms(one_way=True, way_back=False), 5), (Rooms(), None)],
    ids=["round", "no return", "two-way"],
)
def test_greedy_steps_on_the_symmetrised_energy_fail_at_one_way_doors(world: Rooms, at_most: int | None):
    tasks = list(zip(*tasks_across(world, 12), strict=True))
    assert sum(succeeds(world, *task, directed) for task in tasks) == 12
    found = sum(succeeds(world, *task, symmetrised) for task in tasks)
    assert found == 12 if at_most is None else found <= at_most


def test_symmetrised_energy_is_constant_along_the_wall():
    world, goal = Rooms(one_way=True), np.array([0.6, 0.0])
    along = np.stack([np.full(20, -0.12), np.linspace(-0.5, 0.2, 20)], -1)  # the agent touches the wall
    energy = symmetrised(world, goal, along)
    assert np.ptp(energy) < 1e-9
    assert np.ptp(directed(world, goal, along)) == pytest.approx(7.0)


@pytest.mark.parametrize("world", [Rooms(one_way=True), Maze(seed=1, loops=4, one_way=True)], ids=["rooms", "maze"])
def test_doors_are_passed_in_one_direction_only(world: FlatWorld):
    rng = np.random.default_rng(0)
    x, passed = world.states(400, rng), 0
    doors = np.flatnonzero(world.walls.direction.any(-1))
    for _ in range(100):
        y = world.step(x, rng.uniform(-1, 1, x.shape))
        for low, high, way in zip(
            world.walls.low[doors], world.walls.high[doors], world.walls.direction[doors], strict=True
        ):
            side = np.abs(way[::-1])
            beside = np.stack([x, y]) @ side
            at = (beside > low @ side).all(0) & (beside < high @ side).all(0)
            assert not (at & ((x - low) @ way >= 0) & ((y - low) @ way < 0)).any()
            passed += int((at & ((x - low) @ way < 0) & ((y - low) @ way >= 0)).sum())
        x = y
    assert passed > 20


def test_seed_determines_only_the_random_parts_of_the_layout():
    layouts = {(world.wall_at, world.door_at) for seed in range(5) if (world := Rooms(wall=None, door=None, seed=seed))}
    assert len(layouts) == 5
    assert all(abs(wall) <= 0.5 and abs(door) <= 0.7 for wall, door in layouts)
    given = Rooms(wall=None, door=0.3, seed=2)
    assert given.door_at == 0.3 and given.wall_at == Rooms(wall=None, door=None, seed=2).wall_at
    for seed in range(5):  # the way back is never at the door
        world = Rooms(wall=None, door=None, seed=seed, one_way=True)
        assert abs(world.way_back_at - world.door_at) > 0.7 and world.way_back_at * world.door_at < 0


def test_steps_are_at_most_one_step_length():
    world, x = Rooms(), np.array([[-0.5, 0.0]] * 3)
    moved = world.step(x, np.array([[1.0, 1.0], [0.0, -0.5], [-1.0, 0.0]])) - x
    np.testing.assert_allclose(moved, [[0.1 / 2**0.5, 0.1 / 2**0.5], [0.0, -0.05], [-0.1, 0.0]], atol=1e-12)


@pytest.mark.parametrize("current", [ConstantCurrent(0.3, -0.2), ShearCurrent(0.8)], ids=lambda c: c.kind)
def test_current_moves_the_agent_and_walls_stop_it(current):
    world = Rooms(current=current)
    x = np.array([[-0.5, 0.3], [0.5, -0.6]])
    drift = np.array([[0.3, -0.2]] * 2) if current.kind == "constant" else np.array([[0.24, 0.0], [-0.48, 0.0]])
    np.testing.assert_allclose(world.step(x, np.zeros((2, 2))), x + 0.1 * drift, atol=1e-12)
    for _ in range(60):
        x = world.step(x, np.zeros((2, 2)))
    assert world.admits(x).all()
    assert x[0, 0] == pytest.approx(-0.12, abs=1e-6) or current.kind == "shear"


@pytest.mark.parametrize("cells", [2, 5, 8])
def test_maze_is_a_spanning_tree(cells: int):
    world = Maze(cells=cells, seed=3)
    assert len(set(world.passages)) == cells**2 - 1 and set(world.passages) <= set(grid_edges(cells))
    joined = {0}
    for _ in range(cells**2):
        joined |= {cell for edge in world.passages if joined & set(edge) for cell in edge}
    assert len(joined) == cells**2


def test_mazes_depend_on_the_seed_and_loops_shorten_paths():
    assert Maze(seed=0).passages == Maze(seed=0).passages != Maze(seed=1).passages
    x = Maze().states(100, np.random.default_rng(0))
    longest = [max(Maze(loops=loops).distance_to(goal, x).max() for goal in x[:10]) for loops in (0, 3)]
    assert longest[1] < 0.8 * longest[0]


def test_doors_end_in_posts():
    world = Maze(cells=2, loops=1, one_way=True)  # four cells in a ring: only the posts of the door remain
    (a, b), step = world.openings[0], 2 / 2
    first, second = ((np.array([cell % 2, cell // 2]) + 0.5) * step - 1 for cell in (a, b))
    there, back = world.distance_to(second, first[None])[0], world.distance_to(first, second[None])[0]
    assert there == pytest.approx(1.0 / world.step_length)
    assert back > 2 * there


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Rooms(size="huge"), "'huge'"),  # pyright: ignore[reportArgumentType]
        (lambda: Rooms(wall=0.8), "wall is 0.8"),
        (lambda: Rooms(door=float("nan")), "door is nan"),
        (lambda: Rooms(way_back=False), "one_way"),
        (lambda: Rooms(reach=0.0), "reach is 0.0"),
        (lambda: Maze(cells=1), "cells is 1"),
        (lambda: Maze(cells=40), "cells is 40"),
        (lambda: Maze(cells=3, loops=5), "loops is 5"),
        (lambda: Maze(one_way=True), "loops"),
    ],
)
def test_invalid_fields_are_refused(build, message: str):
    with pytest.raises(InputError, match=message):
        build()
