"""Isotropisation: density ratios against closed forms, effective sample size, and resampling."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.identifiability import Isotropy, fit_isotropy, isotropic_resample, isotropic_weights
from jepatlas.identifiability.isotropisation import fit_gaussian_ratio

RHO = np.array([0.95, 0.8])
EYE = LinearMap(np.eye(1), np.zeros(1), np.zeros(1))


def unequal(rows: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """White states with two rates; in units of isotropic steps the slow direction is twice as wide."""
    z, noise = np.random.default_rng(seed).standard_normal((2, rows, 2))
    return z, RHO * z + np.sqrt(1 - RHO**2) * noise


def laplace(rows: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    s, noise = np.random.default_rng(seed).laplace(scale=np.sqrt(0.5), size=(2, rows, 2))
    return s, 0.95 * s + np.sqrt(1 - 0.95**2) * noise


@cache
def isotropy(world: Callable[[], tuple[np.ndarray, np.ndarray]]) -> Isotropy:
    return fit_isotropy(*world())


def test_weights_are_the_density_ratio_of_both_states():
    """Slow direction from N(0, 4) to N(0, 1) in step units: log w = −z²/2 · (4 − 1) in units of z."""
    s, s_next = unequal()
    found = isotropy(unequal).at(1.0)
    exact = np.exp(-1.5 / 2 * (s[:, 0] ** 2 + s_next[:, 0] ** 2))
    assert np.corrcoef(found.weights, exact)[0, 1] > 0.98
    share = exact.sum() ** 2 / np.square(exact).sum() / len(s)
    assert found.ess / len(s) == pytest.approx(share, abs=0.05)


def test_unequal_rates_become_equal():
    s, s_next = unequal()
    weights = isotropy(unequal).at(1.0).weights
    rates = (weights @ (s * s_next)) / (weights @ ((s**2 + s_next**2) / 2))
    assert abs(rates[0] - rates[1]) < 0.06
    assert RHO[0] ** 2 > RHO[1] and rates[0] ** 2 < rates[1]  # outside the window before, inside after


def test_marginals_become_gaussian():
    s, _ = laplace()
    before, after = isotropy(laplace).at(0.0), isotropy(laplace).at(1.0)
    kurtosis = [
        np.average(s**4, axis=0, weights=w) / np.average(s**2, axis=0, weights=w) ** 2
        for w in (before.weights, after.weights)
    ]
    assert kurtosis[0].min() > 5 and np.abs(kurtosis[1] - 3).max() < 0.7
    assert before.distance > 0.07 and after.distance < 0.035


def test_dose_tempers_the_weights():
    none, half, full = (isotropy(laplace).at(dose) for dose in (0.0, 0.5, 1.0))
    np.testing.assert_array_equal(none.weights, 1.0)
    assert none.ess == 3000 and none.ess > half.ess > full.ess
    ratio = half.weights**2 / full.weights
    np.testing.assert_allclose(ratio, ratio[0])
    assert full.weights.mean() == pytest.approx(1) and full.clipped == 0
    assert full.ess == pytest.approx(full.weights.sum() ** 2 / np.square(full.weights).sum())


def test_gaussian_pairs_keep_equal_weights():
    z, noise = np.random.default_rng(0).standard_normal((2, 3000, 3))
    found = isotropic_weights(z, 0.9 * z + np.sqrt(0.19) * noise, 1.0)
    assert found.ess > 0.95 * 3000 and abs(found.distance) < 0.03


def test_weights_are_symmetric_in_time():
    s, s_next = laplace()
    swapped = np.arange(len(s)) % 2 == 0
    turned = np.where(swapped[:, None], s_next, s), np.where(swapped[:, None], s, s_next)
    one, other = isotropy(laplace).at(1.0).weights, isotropic_weights(*turned, 1.0).weights
    assert np.corrcoef(one, other)[0, 1] > 0.99  # differences only from the order of rows in the classifier


def test_weights_are_independent_of_units_by_default():
    """Linear mixing keeps the weights in step units, and changes them in the given units."""
    s, s_next = unequal()
    mix = np.array([[3.0, 1.0], [0.0, 0.2]])
    plain, mixed = isotropy(unequal).at(1.0), isotropic_weights(s @ mix, s_next @ mix, 1.0)
    assert np.corrcoef(plain.weights, mixed.weights)[0, 1] > 0.95
    kept = isotropic_weights(s, s_next, 1.0, units="given")
    assert kept.ess > 0.97 * len(s)  # white already


def test_smaller_target_fits_a_bounded_region_at_a_higher_cost():
    s = np.random.default_rng(0).uniform(-np.sqrt(3), np.sqrt(3), (2500, 2))
    s_next = s + 0.1 * np.random.default_rng(1).standard_normal(s.shape)
    wide, narrow = (isotropic_weights(s, s_next, 1.0, scale=scale) for scale in (1.0, 0.6))
    assert narrow.ess < wide.ess < 2500
    assert narrow.distance < 0.03 < wide.distance


def test_large_weights_are_clipped_and_counted():
    """Dense core in a sparse wide region: the few rows in between would carry most of the Gaussian's weight."""
    rng = np.random.default_rng(0)
    s = np.concatenate([0.01 * rng.standard_normal((1980, 1)), 3 * rng.standard_normal((20, 1))])
    found = isotropic_weights(s, s + 0.001 * rng.standard_normal(s.shape), 1.0, units="given")
    assert found.clipped > 0
    assert found.weights.max() == pytest.approx(20) and found.ess >= len(s) / 20


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 200), st.floats(0, 20), st.integers(0, 1000))
def test_weights_are_at_most_twenty_times_the_mean(rows: int, spread: float, seed: int):
    log_ratio = spread * np.random.default_rng(seed).standard_normal(rows)
    found = Isotropy(EYE, np.zeros((rows, 1)), log_ratio, 0).at(1.0)
    assert found.weights.max() <= 20 * (1 + 1e-9) and found.ess >= rows / 20 * (1 - 1e-9)
    kept = found.weights < found.weights.max() * (1 - 1e-9)
    ratio = found.weights[kept] / np.exp(log_ratio - log_ratio.max())[kept]
    np.testing.assert_allclose(ratio, ratio[:1].repeat(len(ratio)))  # the other weights are unchanged
    if found.clipped:
        assert found.weights.max() == pytest.approx(20)


def test_invalid_inputs_are_rejected():
    s, s_next = laplace(500)
    with pytest.raises(InputError, match=r"dose.*1\.5"):
        isotropic_weights(s, s_next, 1.5)
    with pytest.raises(InputError, match="'s' and 's_next'"):
        isotropic_weights(s, s_next[:, :1], 0.5)
    with pytest.raises(InputError, match="'s'"):
        isotropic_weights(np.c_[s, np.ones(500)], np.c_[s_next, np.ones(500)], 0.5)
    with pytest.raises(InputError, match=r"scale.* 0"):
        isotropic_weights(s, s_next, 0.5, scale=0.0)
    with pytest.raises(InputError, match=r"units.*'metres'"):
        isotropic_weights(s, s_next, 0.5, units="metres")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"NaN"):
        isotropic_weights(np.where(s > 2, np.nan, s), s_next, 0.5)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.integers(1, 100), st.integers(0, 1000))
def test_resampling_gives_the_expected_numbers(values: list[float], count: int, seed: int):
    weights = np.array([*values, 1.0])
    drawn = isotropic_resample(weights, np.random.default_rng(seed), count)
    times, expected = np.bincount(drawn, minlength=len(weights)), count * weights / weights.sum()
    assert len(drawn) == count and (np.diff(drawn) >= 0).all()
    assert (times >= np.floor(expected - 1e-6)).all() and (times <= np.ceil(expected + 1e-6)).all()
    assert not times[weights == 0].any()


def test_resampling_is_unbiased():
    weights = np.array([0.1, 0.2, 1.7, 3.0])
    rng = np.random.default_rng(0)
    mean = np.mean([np.bincount(isotropic_resample(weights, rng, 3), minlength=4) for _ in range(4000)], axis=0)
    np.testing.assert_allclose(mean, 3 * weights / weights.sum(), atol=0.03)


@pytest.mark.parametrize(
    ("weights", "count", "message"),
    [
        (np.zeros(3), None, "'weights'"),
        (np.ones(3), 0, "count.* 0"),
        (-np.ones(3), None, "'weights'.* 3"),
    ],
)
def test_invalid_resampling_is_rejected(weights: np.ndarray, count: int | None, message: str):
    with pytest.raises(InputError, match=message):
        isotropic_resample(weights, np.random.default_rng(0), count)


def wrong(t: np.ndarray, exact: np.ndarray, inside: np.ndarray | slice = slice(None)) -> float:
    """Total variation between the weights of the rows and the exact ones, given as logarithms up to a constant."""
    fitted = fit_gaussian_ratio(t, np.random.default_rng(0))(t[inside])
    one, other = (np.exp(log) / np.exp(log).mean() for log in (fitted, exact[inside]))
    return float(np.abs(one - other).mean() / 2)


@pytest.mark.parametrize(("d", "spread"), [(1, 0.7), (1, 2.0), (2, 1.0), (2, 2.0), (5, 0.7), (5, 2.0)])
def test_weights_between_gaussians(d: int, spread: float):
    t = spread * np.random.default_rng(1).standard_normal((3000, d))
    assert wrong(t, np.square(t).sum(1) / 2 * (1 / spread**2 - 1)) < 0.05 + 0.02 * d


def test_weights_of_correlated_data():
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    t = np.random.default_rng(0).multivariate_normal(np.zeros(2), covariance, 3000)
    assert wrong(t, (np.einsum("bi,ij,bj->b", t, np.linalg.inv(covariance), t) - np.square(t).sum(1)) / 2) < 0.1


def test_weights_of_uniform_coordinates_in_many_dimensions():
    """The ratio is a product over coordinates, which random directions alone cannot represent."""
    t = np.random.default_rng(0).uniform(-np.sqrt(3), np.sqrt(3), (5000, 8))
    exact, inside = -np.square(t).sum(1) / 2, np.abs(t).max(1) < 1.6
    uniform = np.exp(exact[inside]) / np.exp(exact[inside]).mean()
    assert wrong(t, exact, inside) < 0.5 * np.abs(uniform - 1).mean() / 2


def test_missing_tails_do_not_inflate_weights_at_the_edge():
    """Uniform data on [−1, 1], which holds 68% of the Gaussian. The ratio at the edge is about e^{−1/2} of that at the
    centre; moment matching would make it largest at the edge."""
    t = np.random.default_rng(0).uniform(-1, 1, (2000, 1))
    middle, edge = fit_gaussian_ratio(t, np.random.default_rng(0))(np.array([[0.0], [0.9]]))
    assert -0.7 < edge - middle < 0.3


def test_outliers_do_not_change_the_weights():
    rng = np.random.default_rng(0)
    t = rng.standard_normal((2000, 2))
    t[:5] = 1e6
    ratio = fit_gaussian_ratio(t, rng)
    assert np.isfinite(ratio(t)).all()
    assert ratio(t[5:]).std() < 0.2
    np.testing.assert_array_equal(ratio(np.array([[1e6, 1e6], [1e3, 1e3]])).round(9), [ratio(t[:1])[0].round(9)] * 2)
