"""Registration energies against numerical minimisation over paths, and the scale energy against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.registration import interval_energies, scale_energy, strain_energies

PIECES = st.lists(st.floats(0.05, 5), min_size=6, max_size=6)
SIZES = st.floats(1e-3, 1e3)
WEIGHTS = st.floats(0.1, 10)


def monotone(pieces: list[float] | np.ndarray) -> np.ndarray:
    """An increasing piecewise linear map of [0, 1] onto itself, with pieces in these proportions."""
    return np.concatenate([[0.0], np.cumsum(pieces) / np.sum(pieces)])


def length(path: np.ndarray) -> float:
    """∫ (∫u_x² dx)^½ dt from the definition: u is linear between the current positions of the knots."""
    width = np.diff((path[1:] + path[:-1]) / 2)
    stretch = np.diff(np.diff(path, axis=0))  # the difference of u over a piece, times the time step
    return float(np.sqrt((stretch**2 / width).sum(1)).sum())


def least_length(start: np.ndarray, end: np.ndarray, segments: int) -> float:
    """The shortest of all discretised paths, by descent on the knots' logarithmic spacings."""
    first, last = (np.log(np.diff(one)) for one in (start, end))
    t = np.linspace(0, 1, segments + 1)[1:-1, None]

    def path(free: np.ndarray) -> np.ndarray:
        inner = [monotone(np.exp(row)) for row in free.reshape(segments - 1, -1)]
        return np.stack([start, *inner, end])

    def action(free: np.ndarray) -> float:
        knots = path(free)
        width = np.diff((knots[1:] + knots[:-1]) / 2)
        return float((np.diff(np.diff(knots, axis=0)) ** 2 / width).sum() * segments)

    return length(path(minimize(action, ((1 - t) * first + t * last).ravel(), method="BFGS").x))


def test_the_closed_form_matches_the_least_length_over_paths():
    start, end = monotone([1, 1, 1]), monotone([6, 1, 0.5])
    exact = interval_energies(start[None], end[None])[0, 0]
    errors = [abs(least_length(start, end, segments) - exact) / exact for segments in (4, 8)]
    assert errors[1] < 2e-3
    assert errors[1] < errors[0] / 3  # second order


def test_smooth_maps_converge_to_the_integral():
    x = np.linspace(0, 1, 4001)
    maps = np.stack([x + 0.1 * np.sin(2 * np.pi * x), x**2 * 0.5 + x * 0.5])
    inner, _ = quad(lambda s: np.sqrt((1 + 0.2 * np.pi * np.cos(2 * np.pi * s)) * (s + 0.5)), 0, 1)
    assert interval_energies(maps[:1], maps[1:])[0, 0] == pytest.approx(2 * np.arccos(inner), rel=1e-6)


def test_small_differences_are_accurate():
    nearly = monotone([1 + 1e-9, 1 - 1e-9])
    assert interval_energies(monotone([1, 1])[None], nearly[None])[0, 0] == pytest.approx(1e-9, rel=1e-6, abs=0)


@settings(max_examples=50)
@given(PIECES, PIECES, PIECES)
def test_the_interval_energy_is_a_metric_and_the_strain_energy_a_quasimetric(a, b, c):
    maps = np.stack([monotone(pieces) for pieces in (a, b, c)])
    for energy in (interval_energies(maps, maps), strain_energies(maps, maps, 1.0, 3.0)):
        assert (np.diag(energy) == 0).all() and (energy >= 0).all()
        assert (energy[:, None, :] <= energy[:, :, None] + energy[None, :, :] + 1e-9).all()
    np.testing.assert_allclose(interval_energies(maps, maps), interval_energies(maps, maps).T, atol=1e-12)


def test_energies_do_not_depend_on_the_sample_points():
    maps, at = np.stack([monotone([1, 2, 3]), monotone([3, 1, 1])]), np.linspace(0, 1, 4)
    other = np.sort(np.concatenate([np.random.default_rng(0).uniform(size=20), at]))
    again = np.stack([np.interp(other, at, one) for one in maps])
    np.testing.assert_allclose(interval_energies(again, again), interval_energies(maps, maps), atol=1e-12)
    np.testing.assert_allclose(strain_energies(again, again, 1, 3, other), strain_energies(maps, maps, 1, 3, at))


def test_energies_scale_with_the_square_root_of_the_interval_length():
    maps = np.stack([monotone([1, 2, 3]), monotone([3, 1, 1])])
    np.testing.assert_allclose(interval_energies(4 * maps + 7, 4 * maps + 7), 2 * interval_energies(maps, maps))


def strain(path: np.ndarray, at: np.ndarray, stretch: float, squeeze: float) -> float:
    """∫∫ a·(∂t log φ')⁺ + b·(∂t log φ')⁻ dX dt along a finely sampled path."""
    rate = np.diff(np.log(np.diff(path)), axis=0)
    return float((np.where(rate > 0, stretch * rate, -squeeze * rate) * np.diff(at)).sum())


def test_the_straight_path_attains_the_strain_energy():
    at = np.array([0.0, 0.1, 0.5, 0.6, 1.0])
    start, end = monotone([1, 4, 1, 4]), monotone([5, 1, 1, 2])
    exact = strain_energies(start[None], end[None], 1.0, 2.5, at)[0, 0]
    t = np.linspace(0, 1, 201)[:, None]
    straight = (1 - t) * start + t * end
    assert strain(straight, at, 1.0, 2.5) == pytest.approx(exact)
    random = np.random.default_rng(0)
    for _ in range(10):
        over = monotone(random.uniform(0.2, 3, 4))
        assert strain(straight + 4 * t * (1 - t) * 0.2 * (over - straight), at, 1.0, 2.5) >= exact - 1e-12
    assert strain_energies(end[None], start[None], 2.5, 1.0, at)[0, 0] == pytest.approx(exact)


def test_the_strain_energy_is_not_symmetric():
    maps = np.stack([monotone([1, 1, 1, 1]), monotone([20, 1, 1, 1])])
    there, back = strain_energies(maps[:1], maps[1:], 1.0, 5.0), strain_energies(maps[1:], maps[:1], 1.0, 5.0)
    assert there > 2 * back  # three quarters of the material are compressed on the way there


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ([[0, 0.5, 0.4, 1]], [[0, 0.2, 0.4, 1]], "start .*increasing"),
        ([[0, 0.5, 1]], [[0, np.nan, 1]], "end .*increasing"),
        ([[0, 0.5, 1]], [[0, 0.2, 0.5, 1]], "start and end"),
        ([[0, 0.5, 1]], [[0, 0.5, 2]], "first and last value"),
        ([0, 0.5, 1], [[0, 0.5, 1]], r"start must be .* \(3,\)"),
    ],
)
def test_invalid_maps_are_rejected(start, end, message):
    with pytest.raises(InputError, match=message):
        interval_energies(np.array(start), np.array(end))


def test_sample_points_and_steps_are_checked():
    maps = monotone([1, 2])[None]
    with pytest.raises(InputError, match="3 increasing"):
        strain_energies(maps, maps, at=np.array([0.0, 1.0, 0.5]))


@pytest.mark.parametrize(("s", "s_next"), [(0.5, 4.0), (4.0, 0.5)])
def test_scale_energy_is_the_integral_of_the_local_effort(s, s_next):
    grow, shrink = 0.7, 2.5
    change = s_next - s
    effort = grow * max(change, 0) + shrink * max(-change, 0)
    exact, _ = quad(lambda t: effort / (s + t * change), 0, 1)
    assert scale_energy(np.array(s), np.array(s_next), grow, shrink) == pytest.approx(exact)


@given(SIZES, SIZES, SIZES, WEIGHTS, WEIGHTS)
def test_scale_energy_is_a_quasimetric(a, b, c, grow, shrink):
    def energy(x: float, y: float) -> float:
        return float(scale_energy(np.array(x), np.array(y), grow, shrink))

    assert energy(a, c) <= energy(a, b) + energy(b, c) + 1e-9
    assert energy(a, a) == 0
    assert energy(a, b) >= 0


@given(SIZES, SIZES, st.floats(0.01, 100))
def test_scale_energy_depends_on_the_ratio_only(a, b, unit):
    x, y = np.array(a), np.array(b)
    assert scale_energy(unit * x, unit * y, 1.0, 4.0) == pytest.approx(scale_energy(x, y, 1.0, 4.0), abs=1e-9)
    assert scale_energy(x, y, 1.0, 4.0) == scale_energy(y, x, 4.0, 1.0)


def test_scale_energy_broadcasts():
    s = np.array([1.0, 2.0, 4.0])
    found = scale_energy(s[:, None], s[None], 1.0, 3.0)
    np.testing.assert_allclose(found / np.log(2), [[0, 1, 2], [3, 0, 1], [6, 3, 0]])


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_invalid_sizes_and_weights_are_rejected(bad):
    with pytest.raises(InputError, match=r"\bs\b .*positive"):
        scale_energy(np.array([1.0, bad]), np.ones(2))
    with pytest.raises(InputError, match=r"shrink .*positive"):
        scale_energy(np.ones(1), np.ones(1), shrink=bad)
