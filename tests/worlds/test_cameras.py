"""Images of flat worlds: positions of agent, walls and doors, and camera transformations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.worlds import Camera, Maze, Rooms
from jepatlas.worlds.cameras import PALETTES

CAMERAS = [Camera(), Camera(30.0, palette="night"), Camera(-75.0, mirror=True, zoom=0.7, palette="clay")]

every_camera = pytest.mark.parametrize("camera", CAMERAS, ids=lambda camera: camera.palette)


def cover(world: Rooms, x: np.ndarray) -> np.ndarray:
    """The share of each pixel that the agent covers, if the background is floor."""
    floor, agent = (np.array(getattr(world.camera.colours, name), dtype=float) for name in ("floor", "agent"))
    shown = world.render(x).astype(float)
    return (shown - floor) @ (agent - floor) / np.square(agent - floor).sum()


@every_camera
@pytest.mark.parametrize("size", ["small", "big"])
def test_centroid_of_the_agent_is_its_projected_position(camera: Camera, size):
    world = Rooms(size=size, camera=camera)
    rng = np.random.default_rng(0)
    x = rng.uniform([-0.75, -0.75], [-0.3, 0.75], (200, 2))
    shares = cover(world, x)
    centre = camera.project(x)
    at = np.arange(64)
    radius = world.radius * camera.scale
    apart = np.hypot(at[:, None] + 0.5 - centre[:, 0, None, None], at + 0.5 - centre[:, 1, None, None])
    shares = np.where(apart < radius + 1.5, shares, 0.0)
    total = shares.sum((1, 2))
    found = np.stack([(shares.sum(2) * (at + 0.5)).sum(1), (shares.sum(1) * (at + 0.5)).sum(1)], -1) / total[:, None]
    assert np.abs(found - centre).max() < 0.05  # of a pixel, mostly rounding of 8-bit colours
    assert np.ptp(total) < 0.05 * total.mean() and total.mean() == pytest.approx(np.pi * (radius**2 + 0.2), rel=0.05)


def test_pixels_away_from_the_agent_are_constant():
    world = Maze()
    x = world.states(30, np.random.default_rng(0))
    pictures = world.render(x)
    centre, at = world.camera.project(x), np.arange(64) + 0.5
    background = (
        np.hypot(at[:, None] - centre[:, 0, None, None], at - centre[:, 1, None, None]) > world.radius * 32 + 1.5
    )
    median = np.median(pictures, axis=0)
    assert (np.abs(pictures - median)[background] == 0).all()
    assert all(np.abs(picture - median).max() > 50 for picture in pictures)


def test_walls_and_floor_have_their_colours():
    colours = PALETTES["day"]
    picture = Rooms(wall=0.0, door=0.4).render(np.array([[-0.5, -0.5]]))[0]
    assert tuple(picture[60, 32]) == tuple(picture[1, 31]) == colours.wall
    assert tuple(picture[19, 31]) == tuple(picture[19, 32]) == colours.floor  # the door: 0.4 is at 19.2 pixels
    one_way = Rooms(wall=0.0, door=0.4, one_way=True).render(np.array([[-0.5, -0.5]]))[0].astype(float)
    marked = np.linalg.norm(one_way - colours.arrow, axis=-1) < 40
    door, back = marked[:32].sum(0), marked[32:].sum(0)
    assert door.sum() > 3 and back.sum() > 3
    columns = np.arange(64)
    # arrows are wider at their base, so their centroid lies behind the line, opposite to their direction
    assert (door @ columns) / door.sum() + 0.5 < 32 < (back @ columns) / back.sum() + 0.5


@pytest.mark.parametrize("world", [Rooms(one_way=True), Maze(loops=2, one_way=True)], ids=["rooms", "maze"])
def test_rotation_and_mirror_transform_the_image(world):
    x = world.states(5, np.random.default_rng(0))
    plain = world.render(x).astype(int)
    turned = replace(world, camera=Camera(angle=90.0)).render(x).astype(int)
    mirrored = replace(world, camera=Camera(mirror=True)).render(x).astype(int)
    assert np.abs(turned - np.rot90(plain, axes=(1, 2))).max() <= 2  # rounding of sine and cosine at edges
    assert np.abs(mirrored - plain[:, :, ::-1]).max() <= 2


@every_camera
def test_unproject_inverts_project_for_all_positions(camera: Camera):
    corners = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [0.3, -0.2]])
    seen = camera.project(corners)
    assert (seen >= -1e-9).all() and (seen <= 64 + 1e-9).all()
    np.testing.assert_allclose(camera.unproject(seen), corners, atol=1e-12)


def test_cameras_give_different_pixels_for_the_same_state():
    x = Rooms().states(4, np.random.default_rng(0))
    first, second = Rooms(), Rooms(camera=Camera(40.0, palette="night"))
    assert (np.abs(first.render(x).astype(int) - second.render(x)).mean((1, 2, 3)) > 50).all()
    actions = np.random.default_rng(1).uniform(-1, 1, (4, 2))
    np.testing.assert_array_equal(first.step(x, actions), second.step(x, actions))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Camera(zoom=1.2), "zoom is 1.2.* 1.0000"),
        (lambda: Camera(angle=45.0, zoom=1.0), "0.7071"),
        (lambda: Camera(angle=float("inf")), "angle is inf"),
        (lambda: Camera(palette="nihgt"), "'night'"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_invalid_cameras_are_refused(build, message: str):
    with pytest.raises(InputError, match=message):
        build()
