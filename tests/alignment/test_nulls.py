"""Permutation nulls and intervals: definitions, and calibration on data with known truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from jepatlas.alignment.nulls import Null, half_sample_intervals, permutation_null
from jepatlas.alignment.splits import time_blocks
from jepatlas.core.errors import InputError
from jepatlas.core.linear import r2

SETS = 200


def in_band(successes: int, share: float, trials: int = SETS) -> bool:
    """Whether a binomial count is within its central 99.9% interval."""
    low, high = scipy.stats.binom.interval(0.999, trials, share)
    return low <= successes <= high


def slope(a: np.ndarray, b: np.ndarray):
    return lambda order: {"r": float(np.corrcoef(a, b[order])[0, 1])}


def count_small_p(draw, trials: int = SETS, **options) -> int:
    """Number of data sets with unrelated a and b that have p ≤ 0.1."""
    found = 0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        a, b = draw(rng), draw(rng)
        null = permutation_null(slope(a, b), len(a), rng, directions="higher", permutations=19, **options)["r"]
        found += null.p <= 0.1
    return found


def grouped(sizes: np.ndarray):
    """Rows with a large group effect and small noise."""
    return lambda rng: np.repeat(rng.standard_normal(len(sizes)), sizes) + 0.3 * rng.standard_normal(sizes.sum())


def autocorrelated(rng: np.random.Generator) -> np.ndarray:
    """A stationary AR(1) series with coefficient 0.95."""
    noise, x = rng.standard_normal(600), np.zeros(600)
    x[0] = noise[0]
    for t in range(1, 600):
        x[t] = 0.95 * x[t - 1] + math.sqrt(1 - 0.95**2) * noise[t]
    return x


EQUAL, UNEQUAL = np.full(12, 6), np.array([2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10])


@pytest.mark.parametrize(
    ("draw", "options"),
    [
        (lambda rng: rng.standard_normal(30), {}),
        (grouped(EQUAL), {"groups": np.repeat(np.arange(12), 6)}),
        (grouped(UNEQUAL), {"groups": np.repeat(np.arange(12), UNEQUAL)}),
        (autocorrelated, {"block": 20}),
    ],
)
def test_p_values_of_unrelated_data_are_calibrated(draw, options):
    assert in_band(count_small_p(draw, **options), 0.1)


def test_permuting_single_dependent_rows_is_not_calibrated():
    """The calibration test above detects dependent rows that are treated as independent."""
    assert not in_band(count_small_p(grouped(EQUAL)), 0.1)
    assert not in_band(count_small_p(autocorrelated), 0.1)


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_null_matches_its_definition(direction):
    """Compares with the share of all 24 pairings of four rows that are at least as good."""
    a, b = np.array([0.1, 0.5, 0.7, 2.0]), np.array([0.3, 0.2, 0.9, 1.1])
    every = np.array([np.corrcoef(a, b[list(order)])[0, 1] for order in itertools.permutations(range(4))])
    sign = 1 if direction == "higher" else -1
    null = permutation_null(slope(a, b), 4, np.random.default_rng(0), directions={"r": direction}, permutations=5000)[
        "r"
    ]
    assert null.value == pytest.approx(every[0]) and null.n_permutations == 5000 and null.direction == direction
    assert null.p == pytest.approx(np.mean(sign * every >= sign * every[0] - 1e-12), abs=0.03)
    assert null.mean == pytest.approx(every.mean(), abs=0.03) and null.std == pytest.approx(every.std(), rel=0.05)
    assert null.effect == pytest.approx(sign * (null.value - null.mean) / null.std)


def test_related_rows_have_the_smallest_p_and_a_large_effect():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((200, 3))

    def miss(order: np.ndarray) -> dict[str, float]:
        return {"mse": float(np.mean((a - a[order]) ** 2)), "r": float(np.corrcoef(a[:, 0], a[order, 0])[0, 1])}

    nulls = permutation_null(miss, 200, rng, directions={"mse": "lower", "r": "higher"})
    assert nulls["mse"].p == nulls["r"].p == 0.01
    assert nulls["mse"].effect > 5 and nulls["r"].effect > 5


def orders_of(n: int, **options) -> list[np.ndarray]:
    """The permutations that are evaluated, without the identity."""
    calls: list[np.ndarray] = []

    def keep(order: np.ndarray) -> dict[str, float]:
        calls.append(order)
        return {"x": 0.0}

    permutation_null(keep, n, np.random.default_rng(0), directions="higher", **options)
    assert calls[0].tolist() == list(range(n))
    return calls[1:]


def test_groups_are_permuted_whole_and_in_order():
    groups = np.array(list("bacabcacb"))  # scattered, three rows each
    members = {g: np.flatnonzero(groups == g).tolist() for g in "abc"}
    partners = set()
    for order in orders_of(9, groups=groups):
        assert sorted(order) == list(range(9))
        taken = [order[groups == g].tolist() for g in "abc"]
        assert all(part in members.values() for part in taken)
        partners.add(str(taken))
    assert len(partners) == 6


def test_rows_of_groups_of_different_size_are_used_evenly():
    groups = np.repeat(np.arange(3), [2, 4, 6])
    for order in orders_of(12, groups=groups, permutations=40):
        partners = []
        for group in range(3):
            part = order[groups == group]
            (partner,) = set(groups[part])  # one whole partner for each group
            rows = np.flatnonzero(groups == partner)
            partners.append(partner)
            assert np.all(np.diff(part) >= 0) and part[0] == rows[0]
            uses = np.bincount(part - rows[0], minlength=len(rows))
            assert uses.max() - uses.min() <= 1
        assert sorted(partners) == [0, 1, 2]


def test_shifts_are_whole_blocks_and_distinct():
    found = {int(order[0]) for order in orders_of(103, block=10)}
    assert len(orders_of(103, block=10)) == 9 and len(found) == 9
    for order in orders_of(103, block=10):
        assert np.all(np.diff(order) % 103 == 1)
        assert 10 <= order[0] <= 93


def test_undefined_and_constant_values():
    assert Null.of(1.0, np.array([0.5, np.nan, 0.2]), "higher").p == 0.5
    assert math.isnan(Null.of(np.nan, np.array([0.5, 0.2]), "higher").p)
    for value, draws in ((np.nan, [0.5, 0.2]), (np.nan, [0.5, 0.5]), (1.0, [0.5, np.nan, 0.2]), (1.0, [np.nan] * 3)):
        assert math.isnan(Null.of(value, np.array(draws), "higher").effect)
    assert Null.of(1.0, np.zeros(99), "higher").least_p == Null.of(1.0, np.zeros(99), "higher").p == 0.01
    same = Null.of(0.3, np.full(9, 0.3), "lower")
    assert same.p == 1 and same.effect == 0
    assert Null.of(0.2, np.full(9, 0.3), "lower").effect == np.inf
    tied = Null.of(0.1 + 0.2, np.full(9, 0.3), "higher")  # better by rounding only
    assert tied.p == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"permutations": 1}, "'permutations'"),
        ({"groups": np.zeros(10)}, "at least 2 groups"),
        ({"groups": np.arange(7)}, "'groups' .* 10 rows.* 7"),
        ({"groups": np.arange(10), "block": 2}, "not both"),
        ({"block": 4}, "10 rows have 2 blocks of 4"),
        ({"block": 0}, "at least 3 time blocks"),
        ({"directions": {"y": "higher"}}, "missing: x"),
    ],
)
def test_invalid_null_arguments_are_rejected(options, message: str):
    with pytest.raises(InputError, match=message):
        permutation_null(lambda _: {"x": 0.0}, 10, np.random.default_rng(0), **({"directions": "higher"} | options))


def covered(draw, statistic, truth: float, groups: np.ndarray | None = None) -> int:
    found = 0
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        rows = draw(rng)
        estimate = half_sample_intervals(
            lambda part, rows=rows: {"x": statistic(rows[part])}, len(rows), rng, groups=groups, replicates=50
        )["x"]
        found += estimate.low <= truth <= estimate.high
    return found


@pytest.mark.parametrize("n", [5, 61])
def test_intervals_of_a_mean_cover(n: int):
    assert in_band(covered(lambda rng: rng.standard_normal(n) + 3, np.mean, 3.0), 0.95)


def test_intervals_of_an_r2_cover():
    def draw(rng: np.random.Generator) -> np.ndarray:
        x, noise = rng.standard_normal((2, 150))
        return np.stack([x + 0.5 * noise, x], axis=1)

    assert in_band(covered(draw, lambda rows: r2(rows[:, :1], rows[:, 1:]), 1 - 0.25 / 1.25), 0.95)


def test_intervals_by_groups_cover_and_intervals_by_rows_do_not():
    groups, mean = np.repeat(np.arange(12), 6), lambda rows: float(rows.mean())
    assert in_band(covered(grouped(EQUAL), mean, 0.0, groups), 0.95)
    assert not in_band(covered(grouped(EQUAL), mean, 0.0), 0.95)


@pytest.mark.parametrize("groups", [None, time_blocks(31, 5)])
def test_half_of_the_groups_are_drawn_whole(groups):
    calls: list[np.ndarray] = []

    def keep(rows: np.ndarray) -> dict[str, float]:
        calls.append(rows)
        return {"x": float(len(calls))}

    labels = np.arange(31) if groups is None else groups
    estimate = half_sample_intervals(keep, 31, np.random.default_rng(0), groups=groups, replicates=20)["x"]
    assert calls[0].tolist() == list(range(31)) and estimate.value == 1 and estimate.n == 31
    for rows in calls[1:]:
        drawn = set(labels[rows])
        assert len(drawn) == len(set(labels)) // 2
        assert rows.tolist() == [row for row in range(31) if labels[row] in drawn]


def test_bias_of_half_samples_does_not_widen_the_interval():
    """A statistic that depends on the number of rows only has no uncertainty."""
    found = half_sample_intervals(lambda rows: {"x": 1 / len(rows)}, 40, np.random.default_rng(0))["x"]
    assert found.low == pytest.approx(found.high) and found.value == 1 / 40


def test_intervals_are_clipped_to_the_range_of_the_statistic():
    rows = np.random.default_rng(0).random(20) < 0.9

    def share(part: np.ndarray) -> dict[str, float]:
        return {"x": float(rows[part].mean()), "y": float(rows[part].mean()), "z": math.nan}

    ranges = {"x": (0.0, 1.0), "z": (0.0, 1.0)}
    found = half_sample_intervals(share, 20, np.random.default_rng(0), ranges=ranges)
    assert found["y"].high > 1 == found["x"].high and found["x"].low == found["y"].low
    assert math.isnan(found["z"].low) and math.isnan(found["z"].high)
    beyond = half_sample_intervals(lambda _: {"x": 1 + 1e-15}, 20, np.random.default_rng(0), ranges=ranges)["x"]
    assert beyond.low <= beyond.value <= beyond.high


def test_long_tail_on_the_worse_side_does_not_move_the_limit_beyond_the_draws():
    draws = np.append(np.zeros(18), -1000.0)
    assert Null.of(0.9, draws, "higher").limit == 0.0 == Null.of(0.9, -draws, "lower").limit
    assert Null.of(0.9, -draws, "higher").limit == pytest.approx(-draws.mean() + 1.645 * draws.std(ddof=1))


@pytest.mark.parametrize(
    ("n", "options", "message"),
    [
        (1, {}, "at least 2 groups"),
        (0, {}, "at least 2 groups"),
        (4, {"groups": np.zeros(4)}, "at least 2 groups"),
        (4, {"replicates": 1}, "'replicates'"),
    ],
)
def test_invalid_interval_arguments_are_rejected(n: int, options, message: str):
    with pytest.raises(InputError, match=message):
        half_sample_intervals(lambda rows: {"x": 0.0}, n, np.random.default_rng(0), **options)
