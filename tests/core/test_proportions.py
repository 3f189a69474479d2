"""Intervals of shares, against published examples and what they promise."""

import numpy as np
import pytest
from scipy.stats import binomtest

from jepatlas.core.errors import InputError
from jepatlas.core.stats import paired_difference, success_rate


@pytest.mark.parametrize(("successes", "n"), [(0, 20), (1, 20), (7, 20), (20, 20), (81, 263), (1, 1)])
def test_wilson_is_scipys(successes: int, n: int):
    found = success_rate(np.arange(n) < successes)
    truth = binomtest(successes, n).proportion_ci(method="wilson")
    assert (found.value, found.n) == (successes / n, n)
    assert (found.low, found.high) == pytest.approx((truth.low, truth.high), abs=1e-9)


def tables(both: int, only_first: int, only_second: int, neither: int) -> tuple[np.ndarray, np.ndarray]:
    first = np.repeat([True, True, False, False], [both, only_first, only_second, neither])
    second = np.repeat([True, False, True, False], [both, only_first, only_second, neither])
    return first, second


def test_newcombes_example():
    found = paired_difference(*tables(36, 12, 2, 0))
    assert (found.low, found.high) == pytest.approx((0.0569, 0.3404), abs=1e-4)


def test_the_difference_turns_with_its_sides():
    first, second = tables(20, 12, 5, 13)
    there, back = paired_difference(first, second), paired_difference(second, first)
    assert (there.value, there.low, there.high) == pytest.approx((-back.value, -back.high, -back.low))


def test_intervals_of_the_difference_cover_as_often_as_they_say():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(1000):
        hard = rng.uniform(size=60) < 0.5  # tasks that are hard for both
        first, second = (rng.uniform(size=60) < np.where(hard, a, b) for a, b in ((0.5, 0.9), (0.3, 0.8)))
        found = paired_difference(first, second)
        covered += found.low <= 0.15 <= found.high
    assert 0.93 <= covered / 1000 <= 0.99


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InputError, match="at least one task"):
        success_rate(np.array([], bool))
    with pytest.raises(InputError, match="3 and 4"):
        paired_difference(np.ones(3, bool), np.ones(4, bool))
