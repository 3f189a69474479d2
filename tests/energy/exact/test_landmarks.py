"""Landmark matching against one-dimensional integrals that hold for one and for two landmarks."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.landmarks import LandmarkEffort, landmark_energies, match_landmarks

PAIR = np.array([[-1.0, 0.0], [1.0, 0.0]])


def radial_energy(effort: LandmarkEffort, first: float, last: float) -> float:
    """Two landmarks at ±r on a line: K has the eigenvalue 1 − κ(2r), and both have the same divergence."""
    weight = effort.expand if last > first else effort.contract

    def slope(r: float) -> float:
        kappa = math.exp(-2 * r**2 / effort.width**2)
        divergence = 2 * r * kappa / (effort.width**2 * (1 - kappa))
        return math.sqrt(2 / (1 - kappa) + weight * divergence**2)

    return abs(quad(slope, first, last)[0])


def test_one_landmark_moves_straight_at_unit_effort():
    found = match_landmarks(np.array([[0.5, 0.0]]), np.array([[3.5, -4.0]]), LandmarkEffort(width=0.3))
    assert found.energy == pytest.approx(5, rel=1e-8)
    np.testing.assert_allclose(np.diff(found.path[:, 0], axis=0) @ [4, 3], 0, atol=1e-6)


@pytest.mark.parametrize("weights", [(0.0, 0.0), (0.5, 4.0)])
@pytest.mark.parametrize(("first", "last"), [(0.3, 1.2), (1.2, 0.3)])
def test_the_energy_of_two_landmarks_on_a_line_is_an_integral(weights, first, last):
    effort = LandmarkEffort(0.8, *weights)
    found = match_landmarks(first * PAIR, last * PAIR, effort, segments=32)
    assert found.energy == pytest.approx(radial_energy(effort, first, last), rel=2e-3)
    assert found.gradient < 1e-4


def test_the_error_is_of_second_order_in_the_segments():
    exact = radial_energy(LandmarkEffort(), 0.3, 1.0)
    errors = [abs(match_landmarks(0.3 * PAIR, PAIR, segments=s).energy - exact) for s in (8, 16)]
    assert errors[1] < errors[0] / 3


def test_contraction_can_cost_more_than_expansion():
    there, back = LandmarkEffort(1.0, 0.0, 5.0), LandmarkEffort(1.0, 5.0, 0.0)
    near, far = np.array([[0.0, 0.0], [0.6, 0.1], [0.2, 0.7]]), np.array([[-0.3, 0.0], [1.2, 0.0], [0.1, 1.3]])
    grown, shrunk = match_landmarks(near, far, there).energy, match_landmarks(far, near, there).energy
    assert shrunk > 1.2 * grown
    assert shrunk == pytest.approx(match_landmarks(near, far, back).energy, rel=1e-3)
    even = [match_landmarks(*pair).energy for pair in ((near, far), (far, near))]
    assert even[0] == pytest.approx(even[1], rel=1e-3)


def test_two_landmarks_exchange_places_without_colliding():
    found = match_landmarks(PAIR, PAIR[::-1].copy())
    apart = np.linalg.norm(found.path[:, 0] - found.path[:, 1], axis=1)
    assert apart.min() > 0.5
    assert found.energy < radial_energy(LandmarkEffort(), 1.0, 0.01) * 2


def test_energies_satisfy_the_triangle_inequality_and_are_invariant_to_rigid_motion():
    random = np.random.default_rng(1)
    sets = np.array([[0, 0], [1, 0], [0, 1.0]]) + 0.25 * random.standard_normal((3, 3, 2))
    effort = LandmarkEffort(0.7, 0.2, 2.0)
    energy = landmark_energies(sets, effort, segments=10)
    assert (np.diag(energy) == 0).all() and (energy[~np.eye(3, dtype=bool)] > 0).all()
    assert (energy[:, None, :] <= 1.01 * (energy[:, :, None] + energy[None, :, :])).all()  # each is an upper bound
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    moved = match_landmarks(sets[0] @ turn + 5, sets[1] @ turn + 5, effort, segments=10).energy
    assert moved == pytest.approx(energy[0, 1], rel=1e-4)


def test_warp_carries_the_landmarks_and_preserves_the_order_on_a_line():
    found = match_landmarks(0.3 * PAIR, PAIR, segments=64)
    np.testing.assert_allclose(found.warp(0.3 * PAIR), found.path, atol=2e-3)
    line = np.stack([np.linspace(-2, 2, 41), np.zeros(41)], -1)
    assert (np.diff(found.warp(line)[-1, :, 0]) > 0).all()


def test_equal_landmarks_have_energy_zero():
    found = match_landmarks(PAIR, PAIR)
    assert found.energy == 0 and found.gradient == 0


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (PAIR, PAIR[:1], "start and end"),
        (PAIR, np.zeros((2, 2)), "end .*equal"),
        (np.full((1, 2), np.nan), np.zeros((1, 2)), "start .*finite"),
        (np.zeros(2), np.zeros(2), r"start must be .* \(2,\)"),
    ],
)
def test_invalid_landmarks_are_rejected(start, end, message):
    with pytest.raises(InputError, match=message):
        match_landmarks(start, end)


@pytest.mark.parametrize("given", [{"width": 0.0}, {"expand": -1.0}, {"contract": math.nan}])
def test_efforts_are_checked(given):
    with pytest.raises(InputError, match=next(iter(given))):
        LandmarkEffort(**given)


def test_too_few_segments_are_rejected():
    with pytest.raises(InputError, match=r"segments .*2.* 1"):
        match_landmarks(PAIR, PAIR, segments=1)
