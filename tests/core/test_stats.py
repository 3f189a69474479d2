"""Intervals and rank correlations compared with slow references, scipy and published examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from jepatlas.core.errors import InputError
from jepatlas.core.stats import (
    bootstrap,
    explained_share,
    mean_interval,
    paired_difference,
    spearman,
    standard_error,
    student_margin,
    success_rate,
)


def mean_of(x: np.ndarray):
    return lambda weights: {"mean": weights @ x / len(x)}


def test_bootstrap_covers_a_known_mean():
    """Of 200 intervals at 95%, between 181 and 197 should cover: the 99.7% range of the binomial."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        estimate = bootstrap(mean_of(rng.normal(3.0, 2.0, 100)), 100, rng, replicates=300)["mean"]
        covered += estimate.low <= 3.0 <= estimate.high
        assert estimate.low < estimate.value < estimate.high and estimate.n == 100
    assert 181 <= covered <= 197


def test_bootstrap_width_matches_normal_theory():
    x = np.random.default_rng(1).normal(size=400)
    for level, z in ((0.95, 1.96), (0.8, 1.2816)):
        estimate = bootstrap(mean_of(x), 400, np.random.default_rng(2), replicates=4000, level=level)["mean"]
        assert estimate.high - estimate.low == pytest.approx(2 * z * x.std() / 20, rel=0.06)


def test_bootstrap_by_group_is_not_narrowed_by_copies():
    x = np.random.default_rng(0).normal(size=60)
    copies, groups = np.repeat(x, 10), np.repeat([f"id{i}" for i in range(60)], 10)
    shuffled = np.random.default_rng(1).permutation(600)

    def width(data: np.ndarray, labels: np.ndarray | None) -> float:
        rng = np.random.default_rng(2)
        estimate = bootstrap(mean_of(data), len(data), rng, groups=labels, replicates=2000)["mean"]
        return estimate.high - estimate.low

    expected = width(x, None)
    assert width(copies[shuffled], groups[shuffled]) == pytest.approx(expected, rel=0.08)
    assert width(copies, None) == pytest.approx(expected / math.sqrt(10), rel=0.08)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40).filter(lambda g: len(set(g)) > 1), st.integers(0, 99))
@settings(max_examples=50)
def test_bootstrap_weights_are_constant_within_groups(labels, seed):
    groups, calls = np.array(labels), []

    def record(weights: np.ndarray) -> dict[str, float]:
        calls.append(weights)
        return {"sum": weights.sum(), "first": weights[0]}

    result = bootstrap(record, len(groups), np.random.default_rng(seed), groups=groups, replicates=20)
    assert len(calls) == 21 and np.array_equal(calls[0], np.ones(len(groups)))
    for weights in calls:
        assert weights.shape == groups.shape and (weights >= 0).all()
        assert weights.sum() == pytest.approx(len(groups))
        assert all(len(set(weights[groups == group])) == 1 for group in set(labels))
    assert result["sum"].low == pytest.approx(len(groups)) and result["first"].value == 1
    plain = []
    bootstrap(lambda w: plain.append(w) or {"x": 0.0}, 7, np.random.default_rng(seed), replicates=20)
    assert all(w.sum() == 7 and np.array_equal(w, np.round(w)) for w in plain)


def test_bootstrap_is_reproducible_and_keeps_undefined_values():
    x = np.random.default_rng(0).normal(size=30)
    a, b = (bootstrap(mean_of(x), 30, np.random.default_rng(5), replicates=50) for _ in range(2))
    assert a == b
    assert a != bootstrap(mean_of(x), 30, np.random.default_rng(6), replicates=50)
    undefined = bootstrap(lambda w: {"x": math.nan if w[0] == 0 else 1.0}, 30, np.random.default_rng(5))["x"]
    assert undefined.value == 1.0 and math.isnan(undefined.low) and math.isnan(undefined.high)


def test_bootstrap_rejects_invalid_groups():
    with pytest.raises(InputError, match="2 groups"):
        bootstrap(mean_of(np.ones(4)), 4, np.random.default_rng(0), groups=np.zeros(4))
    with pytest.raises(InputError, match=r"groups.*4 rows.*3"):
        bootstrap(mean_of(np.ones(4)), 4, np.random.default_rng(0), groups=np.arange(3))


@pytest.mark.parametrize("ties", [False, True])
def test_spearman_matches_scipy(ties: bool):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 40))
    y = x + y
    if ties:
        x, y = x.round(), y.round()
    assert spearman(x, y).value == pytest.approx(scipy.stats.spearmanr(x, y)[0], abs=1e-10)


def test_interval_of_a_rank_correlation_has_nominal_coverage():
    rng = np.random.default_rng(0)
    correlation = 0.6
    truth = 6 / np.pi * np.arcsin(correlation / 2)  # Spearman's correlation of a Gaussian pair
    covered = 0
    for _ in range(400):
        x, noise = rng.standard_normal((2, 30))
        found = spearman(x, correlation * x + np.sqrt(1 - correlation**2) * noise)
        covered += found.low <= truth <= found.high
    assert 0.92 <= covered / 400 <= 0.98


def test_spearman_of_constant_values_and_of_one_pair():
    assert np.isnan(spearman(np.ones(5), np.arange(5.0)).value)
    with pytest.raises(InputError, match="pairs"):
        spearman(np.ones(1), np.ones(1))


@pytest.mark.parametrize(("successes", "n"), [(0, 20), (1, 20), (7, 20), (20, 20), (81, 263), (1, 1)])
def test_wilson_matches_scipy(successes: int, n: int):
    found = success_rate(np.arange(n) < successes)
    truth = binomtest(successes, n).proportion_ci(method="wilson")
    assert (found.value, found.n) == (successes / n, n)
    assert (found.low, found.high) == pytest.approx((truth.low, truth.high), abs=1e-9)


def tables(both: int, only_first: int, only_second: int, neither: int) -> tuple[np.ndarray, np.ndarray]:
    first = np.repeat([True, True, False, False], [both, only_first, only_second, neither])
    second = np.repeat([True, False, True, False], [both, only_first, only_second, neither])
    return first, second


def test_newcombe_example():
    found = paired_difference(*tables(36, 12, 2, 0))
    assert (found.low, found.high) == pytest.approx((0.0569, 0.3404), abs=1e-4)


def test_difference_is_antisymmetric():
    first, second = tables(20, 12, 5, 13)
    there, back = paired_difference(first, second), paired_difference(second, first)
    assert (there.value, there.low, there.high) == pytest.approx((-back.value, -back.high, -back.low))


def test_intervals_of_the_difference_have_nominal_coverage():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(1000):
        hard = rng.uniform(size=60) < 0.5  # hard for both
        first, second = (rng.uniform(size=60) < np.where(hard, a, b) for a, b in ((0.5, 0.9), (0.3, 0.8)))
        found = paired_difference(first, second)
        covered += found.low <= 0.15 <= found.high
    assert 0.93 <= covered / 1000 <= 0.99


def test_invalid_comparisons_are_rejected():
    with pytest.raises(InputError, match="at least one task"):
        success_rate(np.array([], bool))
    with pytest.raises(InputError, match="3 and 4"):
        paired_difference(np.ones(3, bool), np.ones(4, bool))


def test_student_interval_matches_scipy():
    values = np.random.default_rng(0).normal(2.0, 3.0, 7)
    for level, comparisons in ((0.95, 1), (0.9, 4)):
        found = mean_interval(values, level, comparisons)
        inside = 1 - (1 - level) / comparisons
        expected = scipy.stats.t.interval(inside, 6, values.mean(), scipy.stats.sem(values))
        assert (found.low, found.high) == pytest.approx(expected)
    assert found.value == values.mean() and found.n == 7
    assert standard_error(values) == pytest.approx(scipy.stats.sem(values))


@pytest.mark.parametrize("values", [np.ones(0), np.ones(1)])
def test_one_value_has_no_interval(values: np.ndarray):
    found = mean_interval(values)
    assert (found.low, found.high, found.n) == (-np.inf, np.inf, len(values))
    assert np.isnan(standard_error(values)) and student_margin(values) == np.inf


def test_explained_share():
    assert explained_share(1.0, 4.0) == 0.75
    assert np.isnan(explained_share(0.0, 0.0))
