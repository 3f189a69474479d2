"""Currents against their formulas, and motion in them against closed-form solutions."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError
from jepatlas.worlds import ConstantCurrent, CurrentWorld, JetCurrent, ShearCurrent, VortexCurrent

CURRENTS = [ConstantCurrent(0.4, -0.3), ShearCurrent(0.9), JetCurrent(0.9, 0.3), VortexCurrent(-0.8, 0.5)]

every_current = pytest.mark.parametrize("current", CURRENTS, ids=lambda current: current.kind)


@every_current
def test_velocity_is_the_formula(current):
    x, y = place = np.array([0.3, -0.4])
    r = math.hypot(x, y)
    turned = -0.8 * (r / 0.5) * math.exp((1 - (r / 0.5) ** 2) / 2)
    expected = {
        "constant": (0.4, -0.3),
        "shear": (0.9 * y, 0.0),
        "jet": (0.9 * math.exp(-(y**2) / (2 * 0.3**2)), 0.0),
        "vortex": (-turned * y / r, turned * x / r),
    }[current.kind]
    np.testing.assert_allclose(CurrentWorld(current).velocity(place), expected)


@pytest.mark.parametrize(("current", "fastest"), [(JetCurrent(0.7), 0.7), (VortexCurrent(0.6), 0.6)])
def test_largest_speed_on_the_grid(current, fastest):
    _, w = CurrentWorld(current).on_grid(401)
    assert np.linalg.norm(w, axis=-1).max() == pytest.approx(fastest, rel=1e-4)


@every_current
def test_on_grid_axis_order(current):
    axis, w = CurrentWorld(current, half=2.0).on_grid(5)
    np.testing.assert_array_equal(axis, [-2, -1, 0, 1, 2])
    for i, j in ((0, 3), (4, 1)):
        np.testing.assert_array_equal(w[i, j], current.velocity(np.array([axis[j], axis[i]])))


def test_step_in_a_shear_against_closed_form():
    world = CurrentWorld(ShearCurrent(0.9), step=0.2)
    x, y, angle, t = 0.1, -0.5, 1.1, 0.2
    expected = (x + t * (0.9 * y + math.cos(angle)) + 0.45 * t**2 * math.sin(angle), y + t * math.sin(angle))
    np.testing.assert_allclose(world.move(np.array([x, y]), np.array(angle))[-1], expected, rtol=1e-12)


def test_step_in_a_vortex_against_scipy():
    world = CurrentWorld(VortexCurrent(0.8, 0.3))
    z, angle = np.array([0.25, 0.1]), 2.0
    own = np.array([math.cos(angle), math.sin(angle)])
    exact = solve_ivp(lambda _, x: world.velocity(x) + own, (0, world.step), z, rtol=1e-11, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(world.move(z, np.array(angle))[-1], exact, atol=1e-7)


@every_current
def test_walks_stay_in_the_box_at_bounded_speed(current):
    world = CurrentWorld(current, half=1.5, step=0.1)
    seen = world.walk(episodes=60, length=40, seed=0)
    assert seen.z is not None and seen.z_next is not None
    assert np.abs(seen.z_next).max() <= 1.5
    np.testing.assert_array_equal(seen.x, seen.z / 1.5)
    moved = np.linalg.norm(seen.z_next - seen.z, axis=1)
    fastest = np.linalg.norm(world.on_grid(201)[1], axis=-1).max()
    assert moved.max() <= 0.1 * (1 + fastest) + 1e-9
    np.testing.assert_array_equal(seen.cost, 0.1)
    on = np.diff(seen.episode) == 0
    np.testing.assert_array_equal(seen.z[1:][on], seen.z_next[:-1][on])


def test_steps_without_current_have_the_vehicles_speed():
    seen = CurrentWorld(ConstantCurrent(0, 0), speed=0.5).walk(episodes=100, length=20, seed=0)
    assert seen.z is not None and seen.z_next is not None
    moved = seen.z_next - seen.z
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 0.05)
    assert len(seen.z) == 2000
    assert np.linalg.norm(moved.mean(0)) < 0.005


def test_fast_currents_end_episodes_at_the_border():
    seen = CurrentWorld(ConstantCurrent(2.0, 0.0)).walk(episodes=50, length=100, seed=0)
    assert seen.z is not None and seen.z_next is not None
    assert np.bincount(seen.episode).max() < 100
    assert (seen.z_next[:, 0] > seen.z[:, 0]).all()


def test_coverage_is_the_visited_share_of_the_box():
    world = CurrentWorld()
    quarter = world.walk(episodes=400, length=30, seed=2, coverage=0.25)
    half = world.walk(episodes=400, length=30, seed=2, coverage=0.5)

    def tiles(x: np.ndarray) -> set[tuple[int, int]]:
        return {(int(a), int(b)) for a, b in np.floor((x + 1) * 4)}

    assert len(tiles(quarter.x) | tiles(quarter.x_next)) == 16
    assert tiles(quarter.x) < tiles(half.x)
    assert len(tiles(world.walk(400, 30, seed=2).x)) == 64


def test_states_are_uniform_and_follow_the_seed():
    world = CurrentWorld(half=2.0)
    z = world.states(4000, seed=0)
    np.testing.assert_array_equal(z, world.states(4000, seed=0))
    assert np.abs(z).max() <= 2
    np.testing.assert_allclose(z.std(0), 2 / math.sqrt(3), rtol=0.03)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CurrentWorld(speed=0.0), "speed is 0.0"),
        (lambda: CurrentWorld(step=float("nan")), "step is nan"),
        (lambda: CurrentWorld(half=-1.0), "half is -1.0"),
        (lambda: JetCurrent(width=0.0), "width is 0.0"),
        (lambda: ConstantCurrent(float("inf"), 0.0), "along is inf"),
        (lambda: CurrentWorld().on_grid(1), "resolution is 1"),
        (lambda: CurrentWorld().states(0, 0), "count is 0"),
        (lambda: CurrentWorld().walk(1, 1, 0, coverage=2.0), "coverage is 2.0"),
    ],
)
def test_invalid_arguments_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@every_current
def test_recipe_round_trip(current):
    world = CurrentWorld(current, speed=2.0)
    assert from_plain(CurrentWorld, to_plain(world)) == world
