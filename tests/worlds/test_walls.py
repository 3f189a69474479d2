"""Sliding moves and lines of sight, against closed forms and sampled points."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.worlds.maze import Maze
from jepatlas.worlds.rooms import Rooms
from jepatlas.worlds.walls import CLEARANCE, Walls, segment, slide

BLOCK = Walls.build([((0.0, 0.0), (1.0, 2.0))])
DOOR = Walls.build([], [(((0.0, -9.0), (0.0, 9.0)), (1, 0))])
ALONG = np.linspace(0, 1, 201)[:, None, None]


@pytest.mark.parametrize(
    ("start", "shift", "end"),
    [
        ((-1, 1), (0.5, 0.3), (-0.5, 1.3)),  # without contact
        ((-1, 1), (2.0, 0.4), (0.0, 1.4)),  # the component along the wall remains
        ((-1, 1), (3.0, 0.0), (0.0, 1.0)),
        ((-1, 1), (4.0, 3.0), (8 / 3, 4.0)),  # beyond the end of the wall the move continues
        ((0.5, 3), (0.2, -2.0), (0.7, 2.0)),  # from above
        ((0.1, 3), (2.0, -4.0), (2.1, -0.2)),  # over the edge and down the other side
        ((2, 1), (-3.0, 0.5), (1.0, 1.5)),  # from the right
    ],
)
def test_sliding_against_closed_form(start, shift, end):
    found = slide(BLOCK, np.array([start], dtype=float), np.array([shift], dtype=float))
    np.testing.assert_allclose(found, [end], atol=10 * CLEARANCE)


def test_moves_stop_in_corners():
    corner = Walls.build([segment((0, 0), (3, 0), 0.2), segment((3, 0), (3, 3), 0.2)])
    end = slide(corner, np.array([[2.0, 1.0]]), np.array([[4.0, -3.0]]))
    np.testing.assert_allclose(end, [[2.9, 0.1]], atol=10 * CLEARANCE)


@pytest.mark.parametrize("world", [Rooms(), Maze(cells=6, seed=1)], ids=lambda world: world.kind)
def test_moves_never_enter_walls_nor_exceed_their_length(world):
    rng = np.random.default_rng(0)
    x = world.states(100, rng)
    solid = world.walls.grown(world.radius)
    for _ in range(100):
        shift = rng.normal(0, 3 * world.step_length, (100, 2))  # much longer than the thickness of a wall
        y = slide(world.collision_walls, x, shift)
        assert (np.abs(y) <= 1 - world.radius).all()
        assert not ((solid.low < y[:, None]) & (y[:, None] < solid.high)).all(-1).any()
        assert (np.linalg.norm(y - x, axis=1) <= np.linalg.norm(shift, axis=1) + 10 * CLEARANCE).all()
        x = y


def test_solid_walls_are_never_crossed():
    wall = Walls.build([((-0.01, -9.0), (0.01, 9.0))]).enclosed(1.0)
    rng = np.random.default_rng(0)
    x = rng.uniform(0.02, 0.9, (100, 2)) * [[-1, 1]] * rng.choice([-1, 1], (100, 1))
    side = np.sign(x[:, 0])
    for _ in range(100):
        x = slide(wall, x, rng.normal(0, 2.0, (100, 2)))
        np.testing.assert_array_equal(np.sign(x[:, 0]), side)


def test_one_way_doors_are_crossed_in_one_direction():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2_000, 2))
    before = x[:, 0] < 0
    for _ in range(5):
        x = slide(DOOR, x, rng.normal(0, 0.7, x.shape))
        after = x[:, 0] < 0
        assert not (~before & after).any()
        assert (before & ~after).any()
        before = after


def test_lines_of_sight_against_sampled_points():
    world = Rooms(wall=0.1, door=-0.3, one_way=True)
    rng = np.random.default_rng(0)
    x, y = world.states(2_000, rng), world.states(2_000, rng)
    points = x + ALONG * (y - x)
    low, high = world.walls.low[world.walls.solid], world.walls.high[world.walls.solid]
    depth = np.full(2_000, -np.inf)  # depth of the line in walls, negative outside
    for a, b in zip(low - world.radius, high + world.radius, strict=True):
        depth = np.maximum(depth, np.minimum(points - a, b - points).min(-1).max(0))
    to_the_right = y[:, 0] > x[:, 0]
    crossing = (x[:, 0] < 0.1) != (y[:, 0] < 0.1)
    height = x[:, 1] + (0.1 - x[:, 0]) / (y[:, 0] - x[:, 0]) * (y[:, 1] - x[:, 1])
    against = crossing & (to_the_right != (height < 0.3))  # the door is at -0.3 and the way back at the upper end
    sure = np.abs(depth) > 0.01
    clear = world.collision_walls.clear(x, y)
    np.testing.assert_array_equal(clear[sure], (~against & (depth < 0))[sure])
    assert clear[crossing & to_the_right].any() and clear[crossing & ~to_the_right].any()
