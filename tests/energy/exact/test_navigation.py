import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.navigation import zermelo

REGIMES = {"still": 0.0, "slow": 0.5, "nearly as fast": 0.999, "as fast": 1.0, "faster": 1.5, "much faster": 4.0}


def least_time(d: np.ndarray, current: np.ndarray, speed: float) -> float:
    """The least T with |d − T W| ≤ s T, found by a scan and bisection, without solving the quadratic."""

    def excess(time: float) -> float:
        return float(np.linalg.norm(d - time * current) - speed * time)

    times = np.geomspace(1e-4, 1e5, 20_000)
    excesses = np.linalg.norm(d - times[:, None] * current, axis=1) - speed * times
    inside = np.flatnonzero(excesses <= 0)
    if len(inside) == 0:
        return np.inf
    return float(optimize.root_scalar(excess, bracket=(times[inside[0] - 1], times[inside[0]]), xtol=1e-14).root)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("regime", REGIMES)
def test_time_matches_a_numerical_search(regime: str, dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    unit = rng.standard_normal((12, dimension))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    displacement = rng.standard_normal((12, dimension))
    for speed in (1.0, 2.5):
        current = REGIMES[regime] * speed * unit
        if regime == "as fast":  # exactly as fast, without rounding
            current = np.zeros_like(unit)
            current[:, 0] = speed
        found = zermelo(np.zeros(dimension), displacement, current, speed)
        expected = [least_time(d, w, speed) for d, w in zip(displacement, current, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_time_matches_the_textbook_formula_of_each_regime() -> None:
    d = np.array([[1.0, 0.4], [-1.0, 0.2], [0.3, 2.0]])
    for w in (np.array([0.6, 0.1]), np.array([1.0, 0.0]), np.array([2.0, 1.0])):
        dot, square, gap = d @ w, (d * d).sum(1), 1 - w @ w
        inside = dot**2 + gap * square
        with np.errstate(invalid="ignore", divide="ignore"):
            if gap > 0:
                expected = (-dot + np.sqrt(inside)) / gap
            elif gap == 0:
                expected = np.where(dot > 0, square / (2 * dot), np.inf)
            else:
                expected = np.where((inside >= 0) & (dot > 0), (dot - np.sqrt(inside)) / -gap, np.inf)
        np.testing.assert_allclose(zermelo(np.zeros(2), d, w), expected)


def test_times_are_accurate_if_the_current_approaches_the_speed() -> None:
    for slack in 10.0 ** -np.arange(1, 13):
        current = np.array([1 - slack, 0.0])
        exact_slack = 1 - current[0]
        against, along = zermelo(np.zeros(2), np.array([[-1.0, 0.0], [1.0, 0.0]]), current)
        np.testing.assert_allclose([against, along], [1 / exact_slack, 1 / (1 + current[0])], rtol=1e-14)


points = st.tuples(*[st.floats(-3, 3)] * 2).map(np.array)


@settings(max_examples=80)
@given(points, points, points, points, st.floats(0.1, 3))
def test_times_are_a_quasimetric_and_reverse_with_the_current(
    x: np.ndarray, y: np.ndarray, z: np.ndarray, current: np.ndarray, speed: float
) -> None:
    def time(a: np.ndarray, b: np.ndarray) -> float:
        return float(zermelo(a, b, current, speed))

    assert time(x, x) == 0
    assert time(x, y) >= 0
    if np.isfinite(detour := time(x, y) + time(y, z)):
        assert time(x, z) <= detour * (1 + 1e-6) + 1e-9
    assert float(zermelo(y, x, -current, speed)) == time(x, y)


def test_times_broadcast() -> None:
    x, y = np.zeros((4, 1, 2)), np.ones((5, 2))
    assert zermelo(x, y, np.zeros(2)).shape == (4, 5)
    assert zermelo(x[0, 0], y[0], np.zeros((3, 2)), np.ones(3)).shape == (3,)


@pytest.mark.parametrize(
    ("y", "current", "speed", "message"),
    [
        ([1.0, np.nan], [0.0, 0.0], 1.0, "y .*finite"),
        ([1.0, 0.0], [0.0, 0.0], 0.0, "speed"),
        ([1.0, 0.0], [0.0, 0.0, 0.0], 1.0, "do not broadcast"),
    ],
)
def test_invalid_input_is_rejected(y: list, current: list, speed: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        zermelo(np.zeros(2), np.array(y), np.array(current), speed)
