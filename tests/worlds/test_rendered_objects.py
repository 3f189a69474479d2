from __future__ import annotations

import copy
import math
import pickle
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.worlds.mujoco_canvas import Canvas, load_mujoco, simplify_rendering
from jepatlas.worlds.objects import CATEGORIES, LIGHTS, RenderedObjects, state_columns
from jepatlas.worlds.objects.catalogue import build, floor_colour
from jepatlas.worlds.objects.object_rendering import DISTANCE, HALF_WIDTH, MAX_PARTS, SLICES
from jepatlas.worlds.objects.parts import Part, ball, box, disc, rod

ONE_OF_EACH = np.array([[category, 0.0, 40.0 * category, 30.0, 0.0] for category in range(len(CATEGORIES))])
NOON = list(LIGHTS).index("noon")


@pytest.fixture(scope="module")
def world():
    with RenderedObjects(size=32) as objects:
        try:
            objects.frames(ONE_OF_EACH[:1])
        except InputError as error:
            pytest.skip(f"nothing can be drawn on this machine: {error}")
        yield objects


def test_states_are_all_combinations():
    objects = RenderedObjects(
        categories=("mug", "car"),
        instances=3,
        first_instance=2,
        azimuths=4,
        azimuth_range=(-90.0, 90.0),
        elevations=(30.0, 50.5),
        lights=("evening", "noon"),
    )
    named = state_columns(objects.states())
    due = product(("mug", "car"), ("02", "03", "04"), ("270", "315", "0", "45"), ("30", "50.5"), ("evening", "noon"))
    found = zip(*(named[name] for name in ("label", "instance", "azimuth", "elevation", "lighting")), strict=True)
    assert sorted(found) == sorted(due)
    assert len(set(named["state"])) == len(objects.states()) == 96
    assert named["group"] == [label + number for label, number in zip(named["label"], named["instance"], strict=True)]


def test_size_of_the_default_world():
    objects = RenderedObjects()
    assert objects.states().shape == (6 * 10 * 12 * 3 * 3, 5) and objects.views == ("camera000", "camera160")
    assert RenderedObjects(cameras=5, angle=-72.0).directions == (0, 288, 216, 144, 72)


def reference(state: tuple[Any, float, float, Any], camera: float, size: int) -> np.ndarray:
    """An image by MuJoCo's own camera: a rotated body, a fixed light and a free camera."""
    category, turn, elevation, lighting = state
    mujoco, parts, light = load_mujoco("This test"), build(category, 0, 0), LIGHTS[lighting]
    spec = mujoco.MjSpec()
    simplify_rendering(spec, size, SLICES)
    spec.visual.headlight.active = 0
    spec.visual.global_.fovy = 2 * math.degrees(math.atan(HALF_WIDTH / DISTANCE))
    spec.stat.extent, spec.stat.center = 1.0, (0, 0, 0)
    spec.visual.map.znear, spec.visual.map.zfar = 1.0, 500.0
    a, e = math.radians(light.azimuth), math.radians(light.elevation)
    towards = np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])
    spec.worldbody.add_light(
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        dir=-towards,
        pos=towards,
        diffuse=light.sun,
        ambient=light.sky,
        specular=[0.15] * 3,
    )
    spec.add_material(name="floor", specular=0.0, rgba=[*floor_colour(0, 0), 1])
    bottom = min(part.centre[2] - part.half_extent()[2] for part in parts)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[150, 150, 1], pos=[0, 0, bottom], material="floor")
    half = math.radians(turn) / 2
    body = spec.worldbody.add_body(quat=[math.cos(half), 0, 0, math.sin(half)])
    for part in parts:
        add(mujoco, body, part)
    return photograph(mujoco, spec.compile(), elevation, camera, size)


def add(mujoco: Any, body: Any, part: Part) -> None:
    """Add a part: boxes and ellipsoids by half lengths, cylinders and capsules by two end points."""
    kind = getattr(mujoco.mjtGeom, f"mjGEOM_{part.shape.upper()}")
    colour = [*part.colour, 1]
    if part.shape in ("box", "ellipsoid"):
        quat = np.empty(4)
        mujoco.mju_mat2Quat(quat, part.frame.ravel())
        body.add_geom(type=kind, size=part.size, pos=part.centre, quat=quat, rgba=colour)
    else:
        ends = np.concatenate([part.centre + side * part.size[2] * part.frame[:, 2] for side in (-1, 1)])
        body.add_geom(type=kind, size=[part.size[0], 0, 0], fromto=ends, rgba=colour)


def photograph(mujoco: Any, model: Any, elevation: float, azimuth: float, size: int) -> np.ndarray:
    data, view, row = mujoco.MjData(model), mujoco.MjvCamera(), np.empty((size, size, 3), np.uint8)
    mujoco.mj_forward(model, data)
    view.lookat[:], view.distance = 0.0, DISTANCE
    view.azimuth, view.elevation = (
        azimuth + 180,
        -elevation,
    )  # the viewing direction
    canvas = Canvas(mujoco, model, size)
    scene = canvas.scene(model, 100)
    everything = mujoco.mjtCatBit.mjCAT_ALL.value
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, view, everything, scene)
    canvas.draw(scene, row)
    canvas.close()
    return row[::-1]


@pytest.mark.parametrize(
    ("state", "camera"),
    [
        (("animal", 0.0, 20.0, "noon"), 0.0),
        (("chair", 50.0, 35.0, "morning"), 0.0),
        (("car", 0.0, 60.0, "evening"), 160.0),
        (("plane", 200.0, 40.0, "morning"), 70.0),
        (("mug", 330.0, 15.0, "overcast"), 290.0),
    ],
)
def test_images_against_mujocos_own_camera(world, state, camera):
    category, turn, elevation, light = state
    numbers = np.array([[CATEGORIES.index(category), 0, turn, elevation, list(LIGHTS).index(light)]])
    ours = world.frames(numbers, camera)[0].astype(int)
    theirs = reference(state, camera, world.size).astype(int)
    apart = np.abs(ours - theirs).max(-1)
    assert np.ptp(ours, (0, 1)).min() > 40  # the image is not empty
    assert np.mean(apart > 4) < 0.02  # except for rounding at edges


def test_rotation_equals_camera_motion_under_vertical_light(world):
    noon = ONE_OF_EACH.copy()
    noon[:, 4] = NOON
    turned = noon.copy()
    turned[:, 2] -= 75.0
    np.testing.assert_array_equal(world.frames(noon, 75.0), world.frames(turned, 0.0))
    for states in (noon, ONE_OF_EACH):  # rotating object, camera and morning sun together
        around = states + np.array([0, 0, 360.0, 0, 0])
        assert np.mean(world.frames(around, 35.0) != world.frames(states, 35.0)) < 1e-3
    morning = noon.copy()
    morning[:, 4] = list(LIGHTS).index("morning")
    later = morning - np.array([0, 0, 75.0, 0, 0])
    assert np.mean(world.frames(morning, 75.0) != world.frames(later, 0.0)) > 0.05


def test_views_have_their_cameras_directions(world):
    for camera, direction in enumerate(world.directions):
        np.testing.assert_array_equal(
            world.view_frames(ONE_OF_EACH, camera), world.frames(ONE_OF_EACH, direction, floor=camera)
        )
    directions = np.linspace(0, 350, len(ONE_OF_EACH))
    together = world.frames(ONE_OF_EACH, directions)
    for state, direction, picture in zip(ONE_OF_EACH, directions, together, strict=True):
        np.testing.assert_array_equal(world.frames(state[None], float(direction))[0], picture)
    with RenderedObjects(size=32, floors="same") as same:
        np.testing.assert_array_equal(same.view_frames(ONE_OF_EACH, 1), world.frames(ONE_OF_EACH, 160.0, floor=0))
    assert np.mean(world.frames(ONE_OF_EACH, 0.0, floor=0) != world.frames(ONE_OF_EACH, 0.0, floor=1)) > 0.4


def test_images_depend_only_on_seed_and_state(world):
    shuffled = np.random.default_rng(0).permutation(len(ONE_OF_EACH))
    pictures = world.frames(ONE_OF_EACH)
    assert pictures.shape == (8, 32, 32, 3) and pictures.dtype == np.uint8
    np.testing.assert_array_equal(world.frames(ONE_OF_EACH[shuffled]), pictures[shuffled])
    with RenderedObjects(size=32, categories=("tree",), instances=1, cameras=3, lights=("noon",)) as other:
        np.testing.assert_array_equal(other.frames(ONE_OF_EACH), pictures)
    with RenderedObjects(size=32, seed=1) as other:
        assert (np.mean(other.frames(ONE_OF_EACH) != pictures, (1, 2, 3)) > 0.1).all()
    world.close()
    np.testing.assert_array_equal(world.frames(ONE_OF_EACH), pictures)


def test_every_factor_changes_the_image(world):
    start = np.array([2.0, 0.0, 0.0, 20.0, 0.0])
    changes = np.eye(5) * [1, 1, 30, 20, 1]
    first, *others = world.frames(np.concatenate([start[None], start + changes]))
    for other in others:
        assert np.mean(first != other) > 0.05


def test_pickled_copies_drop_the_renderer(world):
    picture = world.frames(ONE_OF_EACH[:1])
    for other in (
        pickle.loads(pickle.dumps(world)),
        copy.deepcopy(world),
        from_plain(RenderedObjects, to_plain(world)),
    ):
        with other:
            assert other == world and "_renderer" not in vars(other)
            np.testing.assert_array_equal(other.frames(ONE_OF_EACH[:1]), picture)


def test_linear_probe_of_pixels_generalises_to_new_instances(world):
    objects = RenderedObjects(instances=9, azimuths=6, elevations=(30.0,), lights=("noon",), size=32)
    states = objects.states()
    x = world.frames(states).reshape(len(states), -1) / 255.0
    targets = np.eye(len(CATEGORIES))[states[:, 0].astype(int)]
    fit = states[:, 1] < 6
    middle = x[fit].mean(0)
    gram = (x[fit] - middle) @ (x[fit] - middle).T
    weights = (x[fit] - middle).T @ np.linalg.solve(gram + 30 * np.eye(len(gram)), targets[fit] - targets[fit].mean(0))
    guessed = ((x[~fit] - middle) @ weights).argmax(1)
    assert np.mean(guessed == states[~fit, 0]) > 2 / 6  # twice the chance level


@pytest.mark.parametrize("category", CATEGORIES)
def test_objects_fit_into_the_image_and_the_scene(category):
    for instance in range(60):
        parts = build(category, instance, 5)
        low = np.min([part.centre - part.half_extent() for part in parts], 0)
        high = np.max([part.centre + part.half_extent() for part in parts], 0)
        np.testing.assert_allclose(low, -high, atol=1e-12)
        assert 0.85 <= np.linalg.norm(high) <= 1.0 and len(parts) < MAX_PARTS
        assert all((part.size > 0).all() and np.isfinite(part.size).all() for part in parts)


@pytest.mark.parametrize(
    "part",
    [
        box((1, 2, 3), (0.3, 0.2, 0.5), (1, 0, 0), lean=0.4),
        ball((0, 0, 1), (0.4, 0.2, 0.1), (1, 0, 0)),
        disc((0, 1, 0), 0.4, 0.1, (1, 0, 0)),
        rod((0, 0, 0), (1, 2, 0.5), 0.2, (1, 0, 0)),
        rod((0, 0, 0), (0, -1, 0), 0.2, (1, 0, 0), rounded=False),
        rod((1, 0, 0), (0.3, 0.2, 1), 0.3, (1, 0, 0), rounded=False),
    ],
    ids=lambda part: part.shape,
)
def test_half_extent_against_surface_points(part):
    """The half extent along each axis is the maximum over points of the surface."""
    rng = np.random.default_rng(0)
    turn, slope = rng.uniform(0, 2 * np.pi, 40_000), rng.uniform(-1, 1, 40_000)
    round_ = np.stack([np.cos(turn), np.sin(turn)], 1)
    sphere = np.concatenate([np.sqrt(1 - slope**2)[:, None] * round_, slope[:, None]], 1)
    side = np.sign(slope)[:, None] * [0, 0, 1]
    points = {
        "box": np.sign(sphere) * part.size,
        "ellipsoid": sphere * part.size,
        "cylinder": np.concatenate([round_ * part.size[0], side[:, 2:] * part.size[2]], 1),
        "capsule": sphere * part.size[0] + side * part.size[2],
    }[part.shape]
    assert np.linalg.det(part.frame) == pytest.approx(1.0)
    np.testing.assert_allclose((points @ part.frame.T).max(0), part.half_extent(), rtol=1e-2)


def test_rods_connect_their_end_points():
    start, end = np.array([0.2, -1.0, 0.5]), np.array([0.2, 1.0, 2.0])
    part = rod(start, end, 0.1, (1, 0, 0))
    np.testing.assert_allclose(part.centre + part.frame @ [0, 0, part.size[2]], end, atol=1e-12)
    assert box((0, 0, 0), (0.1, 1, 1), (1, 0, 0), lean=0.3).frame[0, 2] < 0  # leans backwards


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"categories": ("boat",)}, "boat"),
        ({"categories": ()}, "categories"),
        ({"categories": ("car", "car")}, "categories"),
        ({"instances": 0}, "instances is 0"),
        ({"first_instance": -1}, "first_instance is -1"),
        ({"azimuths": 0}, "azimuths is 0"),
        ({"azimuth_range": (90.0, 90.0)}, "azimuth_range"),
        ({"azimuth_range": (-10.0, 360.0)}, "azimuth_range"),
        ({"azimuth_range": (math.nan, 1.0)}, "azimuth_range"),
        ({"elevations": (10.0,)}, "elevations is 10.0"),
        ({"elevations": [30.0]}, "elevations"),
        ({"lights": ("dusk",)}, "dusk"),
        ({"cameras": 0}, "cameras is 0"),
        ({"angle": 0.0}, "angle=0"),
        ({"cameras": 4, "angle": 120.0}, "90"),
        ({"angle": math.inf}, "angle is inf"),
        ({"floors": "none"}, "none"),
        ({"size": 8}, "size is 8"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_invalid_fields_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        RenderedObjects(**given)


@pytest.mark.parametrize(
    ("state", "direction", "message"),
    [
        (np.zeros(5), 0.0, "states"),
        (np.full((1, 5), np.nan), 0.0, "states"),
        ([[8, 0, 0, 30, 0]], 0.0, "category 8"),
        ([[0, 0.5, 0, 30, 0]], 0.0, "instance 0.5"),
        ([[0, 0, 0, 30, 4]], 0.0, "light 4"),
        ([[0, 0, 0, 5, 0]], 0.0, "elevation 5"),
        ([[0, 0, 0, 30, 0]], np.zeros(2), "direction"),
        ([[0, 0, 0, 30, 0]], math.nan, "direction"),
    ],
)
def test_images_of_invalid_states_are_refused(state, direction, message):
    with pytest.raises(InputError, match=message):
        RenderedObjects().frames(np.array(state), direction)


def test_unknown_cameras_are_refused():
    with pytest.raises(InputError, match="camera is 2"):
        RenderedObjects().view_frames(ONE_OF_EACH, 2)


def test_missing_mujoco_is_named_with_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(InputError, match=r"'objects'.*'mujoco'.*jepatlas\[sim\]"):
        RenderedObjects().frames(ONE_OF_EACH)
