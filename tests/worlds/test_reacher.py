from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.worlds.reacher import Reacher, fingertip, joint_angles
from jepatlas.worlds.reacher.arm import load_reacher_mujoco, reacher_spec
from jepatlas.worlds.reacher.kinematics import LINKS, NEAREST, WRIST_LIMIT, draw_targets

WITHOUT = """
import os
import sys
import numpy as np
from jepatlas.core.errors import InputError
from jepatlas.worlds.reacher import Reacher

def refused():
    try:
        Reacher().render(np.zeros((1, 2)))
    except InputError as error:
        print(error)

for package in ("mujoco", "dm_control"):
    sys.modules[package] = None
    refused()
    del sys.modules[package]
os.environ["MUJOCO_GL"] = "nonsense"
refused()
del os.environ["MUJOCO_GL"]
os.environ["__EGL_VENDOR_LIBRARY_FILENAMES"] = "/nowhere.json"  # libegl1 without a driver
refused()
"""


@pytest.fixture(scope="module", params=["top", "tilted"])
def world(request: pytest.FixtureRequest):
    with Reacher(camera=request.param) as reacher:
        skip_unless_drawn(reacher)
        yield reacher


def skip_unless_drawn(reacher: Reacher) -> None:
    try:
        reacher.render(np.zeros((1, 2)))
    except InputError as error:
        pytest.skip(f"nothing can be drawn on this machine: {error}")


@pytest.fixture(scope="module")
def above():
    with Reacher() as reacher:
        skip_unless_drawn(reacher)
        yield reacher


def test_fingertip_against_mujoco():
    mujoco, model = load_reacher_mujoco(), reacher_spec().compile()
    data = mujoco.MjData(model)
    angles = Reacher().states(50, np.random.default_rng(0))
    for (first, second), tip in zip(angles, fingertip(angles), strict=True):
        data.qpos[:] = first, second
        mujoco.mj_kinematics(model, data)
        np.testing.assert_allclose(data.geom("finger").xpos[:2], tip, atol=1e-12)
        along = LINKS[0] * np.exp(1j * first) + LINKS[1] * np.exp(1j * (first + second))
        np.testing.assert_allclose([along.real, along.imag], tip, atol=1e-12)
    np.testing.assert_allclose(model.joint("wrist").range, [-WRIST_LIMIT, WRIST_LIMIT])


def test_joint_angles_reach_their_points_on_both_sides():
    points = draw_targets(200, np.pi, np.random.default_rng(1))
    far = np.linalg.norm(points, axis=1)
    assert 0.05 <= far.min() < 0.06 and 0.19 < far.max() <= 0.2
    for side in (-1.0, 1.0):
        angles = joint_angles(points, np.full(200, side))
        np.testing.assert_allclose(fingertip(angles), points, atol=1e-12)
        assert (np.sign(angles[:, 1]) == side).all() and (np.abs(angles) <= [np.pi, WRIST_LIMIT]).all()


@pytest.mark.parametrize(("distance", "nearest"), [(0.4, sum(LINKS)), (0.01, NEAREST)])
def test_unreachable_points_give_the_nearest_posture(distance, nearest):
    direction = np.array([np.cos(0.7), np.sin(0.7)])
    tip = fingertip(joint_angles(distance * direction, np.array(1.0)))
    np.testing.assert_allclose(tip, nearest * direction, atol=1e-12)


def brightest(picture: np.ndarray) -> np.ndarray:
    """Centre of the arm's yellow pixels, the only ones with more red than blue: (row, column)."""
    yellow = picture[..., 0].astype(int) > picture[..., 2]
    return np.argwhere(yellow).mean(0)


def test_image_shows_the_arm_at_its_position(above: Reacher):
    """The camera is 0.75 m above the shoulder, with a field of view of 45°, x to the right and y up."""
    straight = above.render(np.array([[angle, 0.0] for angle in (0.0, np.pi / 2, np.pi, -np.pi / 2)]))
    pixels_per_metre = 32 / (0.74 * np.tan(np.pi / 8))
    middle = pixels_per_metre * sum(LINKS) / 2
    for picture, (x, y) in zip(straight, [(1, 0), (0, 1), (-1, 0), (0, -1)], strict=True):
        np.testing.assert_allclose(brightest(picture), [31.5 - y * middle, 31.5 + x * middle], atol=1.5)


def test_images_are_a_function_of_the_angles(world: Reacher):
    angles = world.states(40, np.random.default_rng(2))
    pictures = world.render(angles)
    assert pictures.shape == (40, 64, 64, 3) and pictures.dtype == np.uint8
    np.testing.assert_array_equal(pictures, world.render(angles))
    np.testing.assert_array_equal(pictures[7:9], world.render(angles[7:9]))
    assert len({picture.tobytes() for picture in pictures}) == 40
    turned = world.render(angles + np.array([2 * np.pi, 0.0]))
    assert np.mean(turned != pictures) < 1e-3  # except for rounding


def test_viewpoints_differ(above: Reacher):
    angles = np.array([[0.3, 0.8]])
    with Reacher(camera="tilted") as beside:
        assert np.mean(above.render(angles) != beside.render(angles)) > 0.2


def test_pickled_copies_drop_the_renderer_and_render_the_same(world: Reacher):
    angles = np.array([[0.3, 0.8]])
    picture = world.render(angles)
    for other in (pickle.loads(pickle.dumps(world)), copy.deepcopy(world), from_plain(Reacher, to_plain(world))):
        with other:
            assert other == world and "_renderer" not in vars(other)
            np.testing.assert_array_equal(other.render(angles), picture)
    np.testing.assert_array_equal(world.render(angles), picture)  # closing the copies does not close the original


def test_a_closed_world_can_render_again(above: Reacher):
    picture = above.render(np.zeros((1, 2)))
    above.close()
    above.close()
    assert "_renderer" not in vars(above)
    np.testing.assert_array_equal(above.render(np.zeros((1, 2))), picture)


def test_actions_turn_joints_within_their_limits():
    step = Reacher(max_turn=0.5).step(np.array([[3.0, 2.5], [0.0, 0.0]]), np.array([[1.0, 1.0], [-0.5, 0.1]]))
    np.testing.assert_allclose(step, [[3.5 - 2 * np.pi, WRIST_LIMIT], [-0.25, 0.05]])


def test_reached_uses_angles_modulo_2_pi():
    reacher = Reacher(tolerance=0.1)
    near = reacher.reached(np.array([[3.1, 0.0], [3.1, 0.0]]), np.array([[-3.13, 0.0], [3.1, 0.11]]))
    assert near.tolist() == [True, False]
    rng = np.random.default_rng(0)
    states = reacher.states(500, rng)
    goals = Reacher(tolerance=1.0).goals(states, rng)
    assert not Reacher(tolerance=1.0).reached(states, goals).any()
    assert reacher.admits(goals).all() and not reacher.admits(np.array([[0.0, 2.8]])).any()


def test_reacher_passes_gymnasium_check_env(world: Reacher):
    check_env(world.make().unwrapped)


@pytest.mark.parametrize(
    ("given", "message"),
    [({"camera": "side"}, "side"), ({"max_turn": 0.0}, "max_turn is 0.0"), ({"tolerance": float("nan")}, "tolerance")],
)
def test_invalid_fields_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        Reacher(**given)


@pytest.mark.parametrize("states", [np.zeros(2), np.zeros((1, 3)), np.array([[0.0, np.nan]])])
def test_images_of_invalid_states_are_refused(states):
    with pytest.raises(InputError, match="states"):
        Reacher().render(states)


def test_missing_packages_are_named_with_the_install_command():
    """In a separate process, because MuJoCo selects its renderer on import."""
    kept = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    command = [sys.executable, "-c", WITHOUT]
    answer = subprocess.run(command, env=kept, capture_output=True, text=True, check=False, timeout=120)
    assert (answer.returncode, answer.stderr) == (0, "")
    *extras, unknown, without_driver = answer.stdout.splitlines()
    for package, line in zip(("mujoco", "dm_control"), extras, strict=True):
        assert f"'{package}'" in line
        assert line.endswith("pip install 'jepatlas[sim]'")
    for line, reason in ((unknown, "MUJOCO_GL: nonsense"), (without_driver, "EGL device display")):
        assert line.startswith("MuJoCo") and reason in line
        assert "apt-get install libegl1 libgl1" in line and line.endswith("pip install 'jepatlas[sim]'")
