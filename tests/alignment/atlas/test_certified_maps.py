"""Certified maps between charts of known error, compared with fits written out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
from gaussian_worlds import rotation

from jepatlas.alignment.atlas.certified_maps import (
    CertifiedMap,
    certified_map,
    certified_transition,
    pair_prices,
    predicted_limit,
)
from jepatlas.alignment.atlas.chart import CertificateSummary, ChartLatents
from jepatlas.alignment.atlas.chart_atlas import Atlas
from jepatlas.core.errors import InputError
from jepatlas.core.linear import least_squares, procrustes
from jepatlas.core.records import Estimate, Verdict


def gaussian(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, dim))


def exactly(value: float) -> Estimate:
    return Estimate(value, value, value, 10_000)


def charts(rows: int, dim: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """h = Qz + e with E‖e‖² = noise²·dim, at some offset."""
    z, *errors = np.random.default_rng(seed).standard_normal((3, rows, dim))
    a, b = (z @ rotation(dim, k).T + noise * e for k, e in enumerate(errors))
    return a + 3, b - 1


def fitted(rows: int, dim: int, noise: float, seed: int = 0, bound: float | None = None) -> CertifiedMap:
    limits = exactly(noise**2 * dim if bound is None else bound)
    a, b = charts(rows, dim, noise, seed)
    return certified_map(a, b, (limits, limits), np.random.default_rng(seed), replicates=100)


def named(verdicts: tuple[Verdict, ...] | list[Verdict]) -> dict[str, Verdict]:
    return {verdict.name.removeprefix("certified."): verdict for verdict in verdicts}


def test_measured_error_is_within_the_predicted_limit():
    """Independent errors add up to 2σ²d. Opposite errors would reach the limit (2σ√d)²."""
    found = named(fitted(2000, 4, 0.1).verdicts)
    assert found["limit"].value == pytest.approx(4 * 0.01 * 4) and found["limit"].passed is None
    assert found["error"].threshold == found["limit"].high and found["error"].passed is True
    assert found["error"].low < 2 * 0.01 * 4 < found["error"].high
    assert found["error"].null == pytest.approx(8, rel=0.1)  # unrelated: E‖h₁‖² + E‖h₂‖²
    assert found["orthogonality"].value < 0.05 and found["orthogonality"].high < 0.1


def test_opposite_errors_reach_the_limit():
    z, e = gaussian(4000, 2), 0.3 * gaussian(4000, 2, seed=1)
    found = named(certified_map(z + e, z - e, (exactly(0.18), exactly(0.18)), np.random.default_rng(0)).verdicts)
    assert found["error"].value == pytest.approx(found["limit"].value, rel=0.05)
    assert found["error"].passed is not False


def test_violated_bound_fails():
    found = named(fitted(2000, 4, 0.3, bound=0.05).verdicts)
    assert found["error"].passed is False and "does not hold" in found["error"].advice
    unrelated = certified_map(
        gaussian(500, 3), gaussian(500, 3, seed=1), (exactly(0.1), exactly(0.1)), np.random.default_rng(0)
    )
    assert named(unrelated.verdicts)["error"].passed is False


def test_few_pairs_leave_the_verdict_undecided():
    """The held-out error of a rotation from 9 pairs exceeds the limit; the error on the fitted pairs does not."""
    z, e = gaussian(9, 8), 0.3 * gaussian(9, 8, seed=1)
    bounds = (exactly(0.0), exactly(0.09 * 8))
    found = named(certified_map(z, z + e, bounds, np.random.default_rng(0)).verdicts)
    assert found["error"].value > found["limit"].high and found["error"].passed is None
    assert "more pairs" in found["error"].advice and math.isnan(found["least_squares"].value)
    assert math.isnan(found["orthogonality"].value) and "Too few pairs" in found["orthogonality"].advice


def test_cross_fitting_matches_leave_one_out():
    """With 8 pairs, every fold holds one pair."""
    a, b = charts(8, 2, 0.5)
    found = named(certified_map(a, b, (exactly(1), exactly(1)), np.random.default_rng(0)).verdicts)
    errors_of = {"error": [], "least_squares": []}
    for i in range(8):
        x, y = np.delete(a, i, 0), np.delete(b, i, 0)
        turn, _ = scipy.linalg.orthogonal_procrustes(x - x.mean(0), y - y.mean(0))
        errors_of["error"].append(np.sum((b[i] - y.mean(0) - (a[i] - x.mean(0)) @ turn) ** 2))
        weight = np.linalg.lstsq(np.c_[x, np.ones(7)], y, rcond=None)[0]
        errors_of["least_squares"].append(np.sum((b[i] - np.r_[a[i], 1] @ weight) ** 2))
    for name, errors in errors_of.items():
        assert found[name].value == pytest.approx(np.mean(errors))


def excess(dim: int, pairs: int, noise: float = 0.1) -> np.ndarray:
    """Median over 20 runs of fresh-pair error / smallest possible error, for (certified map, least squares)."""
    found = []
    for seed in range(20):
        a, b = charts(pairs + 2000, dim, noise, seed)
        bound = exactly(noise**2 * dim)
        used = certified_map(a[:pairs], b[:pairs], (bound, bound), np.random.default_rng(seed), replicates=20).map
        free = least_squares(a[:pairs], b[:pairs])
        found.append([np.mean(np.sum((b[pairs:] - m.apply(a[pairs:])) ** 2, axis=1)) for m in (used, free)])
    return np.median(found, axis=0) / (2 * noise**2 * dim)


def test_a_certified_map_needs_about_as_many_pairs_as_dimensions():
    """At d = 16: 1.9 times the smallest error with d + 4 pairs (least squares: 7), 1.3 with 2d (2.2), 1 with 40d.

    About one run in 20 with d + 4 pairs has a wrong sign in a poorly determined direction, hence medians.
    """
    dim = 16
    few, enough, many = (excess(dim, pairs) for pairs in (dim + 4, 2 * dim, 40 * dim))
    assert many[0] < 1.05 and enough[0] < 1.5 * many[0] and few[0] < 2.5 * many[0]
    assert few[1] > 5 and enough[1] > 1.8


@pytest.mark.parametrize("pairs", [24, 40, 80])
def test_excess_error_of_few_pairs_matches_the_prediction(pairs: int):
    """Compares the mean over draws of small errors."""
    ratios = []
    for seed in range(60):
        a, b = charts(pairs + 1000, 16, 0.02, seed)
        maps = [fit(a[:pairs], b[:pairs]) for fit in (procrustes, least_squares)]
        found = [np.mean(np.sum((b[pairs:] - m.apply(a[pairs:])) ** 2, axis=1)) / (2 * 0.02**2 * 16) for m in maps]
        ratios.append(np.array(found) / pair_prices(a[:pairs]))
    spread = np.std(ratios, axis=0) / np.sqrt(len(ratios))
    assert (np.abs(np.mean(ratios, axis=0) - 1) < 3 * spread).all() and spread.max() < 0.05


def test_undetermined_maps_have_infinite_excess_error():
    rotation_, free = pair_prices(gaussian(3, 5))
    assert math.isinf(rotation_) and math.isinf(free)
    almost, free = pair_prices(gaussian(5, 5))  # all directions but one are determined, and the last one up to its sign
    assert math.isfinite(almost) and math.isinf(free)


def test_least_squares_is_chosen_for_many_pairs_of_charts_that_are_not_rotations():
    z = gaussian(3000, 3)
    bent = z @ np.diag([1.0, 0.8, 0.5])
    bounds = (exactly(0.3), exactly(0.3))
    many = certified_map(z, bent, bounds, np.random.default_rng(0), replicates=100)
    assert many.method == "least squares" and "and is used" in named(many.verdicts)["least_squares"].advice
    np.testing.assert_allclose(many.map.apply(z), bent, atol=1e-8)
    exact = fitted(3000, 3, 0.05)
    assert exact.method == "procrustes"
    np.testing.assert_allclose(exact.map.weight @ exact.map.weight.T, np.eye(3), atol=1e-10)
    few = certified_map(z[:5], bent[:5] + 0.2 * gaussian(5, 3, seed=4), bounds, np.random.default_rng(0))
    assert few.method == "procrustes"


def test_least_squares_is_rarely_chosen_for_exact_rotations():
    """Least squares has the smaller error by chance in some runs; it may be significant in about 1 of 40."""
    found = [fitted(60, 2, 0.1, seed) for seed in range(40)]
    by_name = [named(one.verdicts) for one in found]
    assert sum(one["least_squares"].value < one["error"].value for one in by_name) >= 6
    assert sum(one.method == "least squares" for one in found) <= 3


def test_copies_in_one_group_are_held_out_together():
    a, b = charts(12, 3, 0.3)
    copies = np.repeat(np.arange(12), 20)
    bounds = (exactly(0.3), exactly(0.3))
    alone = named(certified_map(a, b, bounds, np.random.default_rng(0)).verdicts)["error"]
    grouped = named(certified_map(a[copies], b[copies], bounds, np.random.default_rng(0), groups=copies).verdicts)[
        "error"
    ]
    naive = named(certified_map(a[copies], b[copies], bounds, np.random.default_rng(0)).verdicts)["error"]
    assert grouped.value == pytest.approx(alone.value) and naive.value < 0.9 * alone.value


@pytest.mark.parametrize("whitened", [False, True])
def test_error_of_the_atlas_map_is_within_its_limit(whitened: bool):
    a, b = charts(3000, 4, 0.1)
    summary = CertificateSummary(exactly(0.04), identified=True, whitened=whitened)
    rows, stretch = np.arange(2000), (np.diag([1, 2, 3, 4.0]) if whitened else np.eye(4))
    atlas = Atlas.build(
        [ChartLatents("a", a[:2000] @ stretch, rows, summary), ChartLatents("b", b[:2000], rows, summary)]
    )
    held = ("a", a[2000:] @ stretch), ("b", b[2000:])
    limit, error = certified_transition(atlas, *held, np.random.default_rng(0))
    assert limit.value == pytest.approx(0.16) and error.passed is True
    assert error.value == pytest.approx(0.08, rel=0.1) and error.n == 1000
    assert error.null is not None and error.null > 50 * error.value


def test_uncertified_chart_is_rejected():
    a, b = charts(100, 2, 0.1)
    atlas = Atlas.build([ChartLatents("a", a, np.arange(100)), ChartLatents("b", b, np.arange(100))])
    with pytest.raises(InputError, match="'a' has no certificate"):
        certified_transition(atlas, ("a", a), ("b", b), np.random.default_rng(0))


def test_limit_of_negative_and_infinite_bounds():
    limit = predicted_limit(Estimate(0.0, -0.1, math.inf, 5), exactly(0.25))
    assert (limit.value, limit.low, limit.high, limit.n) == (0.25, 0.25, math.inf, 5)


@pytest.mark.parametrize(
    ("a", "b", "groups", "message"),
    [
        (gaussian(9, 2), gaussian(9, 3), None, "same shape"),
        (gaussian(9, 2), gaussian(8, 2), None, "same shape"),
        (gaussian(2, 2), gaussian(2, 2), None, "at least 3 pairs"),
        (gaussian(9, 2), gaussian(9, 2), np.zeros(9), "at least 3 pairs"),
        (gaussian(9, 2), gaussian(9, 2), np.arange(8), "one label for each"),
        (gaussian(9, 2) * np.nan, gaussian(9, 2), None, "'a' has 18 "),
    ],
)
def test_invalid_input_is_rejected(a: np.ndarray, b: np.ndarray, groups: np.ndarray | None, message: str):
    with pytest.raises(InputError, match=message):
        certified_map(a, b, (exactly(1), exactly(1)), np.random.default_rng(0), groups=groups)
