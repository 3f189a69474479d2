"""Slow feature analysis against dense scipy, greedy extraction, and worlds with exact solutions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
from sksfa import SFA

from jepatlas.core.errors import InputError
from jepatlas.identifiability import linear_sfa
from jepatlas.identifiability.spectral.held_out import BlockMoments
from jepatlas.identifiability.spectral.pair_rows import SplitPairs


def gaussian(rows: int, rates: list[float], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    z, noise = np.random.default_rng(seed).standard_normal((2, rows, len(rates)))
    rho = np.array(rates)
    return z, rho * z + np.sqrt(1 - rho**2) * noise


def mixed(rows: int, rates: list[float]) -> tuple[np.ndarray, np.ndarray]:
    mixing = np.random.default_rng(5).standard_normal((len(rates), len(rates)))
    z, z_next = gaussian(rows, rates)
    return z @ mixing + 2, z_next @ mixing + 2


def slow_matrices(x: np.ndarray, x_next: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    both = np.concatenate([x, x_next])
    difference = (x - x_next).T @ (x - x_next) / len(x)
    return np.cov(both.T, bias=True), difference


def test_linear_sfa_matches_sklearn_sfa():
    """Pairs of one series weigh its two ends by half, so results agree up to one row's share."""
    rng, rho = np.random.default_rng(2), np.array([0.9, 0.7, 0.5, 0.1])
    noise = np.sqrt(1 - rho**2) * rng.standard_normal((4000, 4))
    series = np.stack([scipy.signal.lfilter([1.0], [1.0, -r], n) for r, n in zip(rho, noise.T, strict=True)], axis=1)
    series = series @ rng.standard_normal((4, 4)) + 2
    expected = SFA(n_components=3).fit_transform(series)
    found = linear_sfa(series[:-1], series[1:], 3).apply(series)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=0.005)


def test_linear_sfa_matches_dense_scipy():
    x, x_next = mixed(2000, [0.9, 0.7, 0.5, 0.1])
    covariance, difference = slow_matrices(x, x_next)
    slowness, vectors = scipy.linalg.eigh(difference, covariance)
    encoder = linear_sfa(x, x_next, 2)
    np.testing.assert_allclose(encoder.rates, 1 - slowness[:2] / 2, rtol=1e-8)
    h = encoder.apply(x)
    expected = (x - np.concatenate([x, x_next]).mean(0)) @ vectors[:, :2]
    np.testing.assert_allclose(np.abs(h), np.abs(expected), rtol=1e-6, atol=1e-8)


def test_joint_solution_matches_greedy_extraction():
    """Greedy: the slowest unit-variance direction uncorrelated with all previous ones."""
    x, x_next = mixed(2000, [0.9, 0.7, 0.5])
    covariance, difference = slow_matrices(x, x_next)
    found: list[np.ndarray] = []
    for _ in range(3):
        free = scipy.linalg.null_space(np.array([covariance @ v for v in found])) if found else np.eye(3)
        weights = scipy.linalg.eigh(free.T @ difference @ free, free.T @ covariance @ free)[1][:, 0]
        found.append(free @ weights)
    greedy = (x - np.concatenate([x, x_next]).mean(0)) @ np.array(found).T
    np.testing.assert_allclose(np.abs(linear_sfa(x, x_next).apply(x)), np.abs(greedy), rtol=1e-5, atol=1e-7)


def test_linear_sfa_recovers_coordinates_with_distinct_rates():
    z, z_next = gaussian(20_000, [0.9, 0.6, 0.3])
    mixing = np.random.default_rng(5).standard_normal((3, 3))
    encoder = linear_sfa(z @ mixing, z_next @ mixing)
    np.testing.assert_allclose(encoder.rates, [0.9, 0.6, 0.3], atol=0.02)
    assert np.abs(np.corrcoef(encoder.apply(z @ mixing).T, z.T)[:3, 3:]).diagonal().min() > 0.99


def test_latents_are_white():
    x, x_next = mixed(1000, [0.9, 0.7, 0.5])
    encoder = linear_sfa(x, x_next)
    both = np.concatenate([encoder.apply(x), encoder.apply(x_next)])
    np.testing.assert_allclose(np.cov(both.T, bias=True), np.eye(3), atol=1e-7)
    np.testing.assert_allclose(both.mean(0), 0, atol=1e-8)


def test_fitted_rates_are_optimistic_and_held_out_rates_are_not():
    x, x_next = gaussian(300, [0.5] * 20)
    encoder = linear_sfa(x, x_next, 1)
    (rate,) = BlockMoments.of(encoder, SplitPairs(*gaussian(5000, [0.5] * 20, seed=1))).rates(seed=0)
    assert encoder.rates[0] > 0.6
    assert rate.low < 0.5 < rate.high


def test_constant_columns_are_dropped():
    x, x_next = mixed(500, [0.9, 0.5])
    padded = [np.c_[view, np.full(500, 3.0)] for view in (x, x_next)]
    encoder = linear_sfa(*padded)
    assert encoder.dim == 2
    np.testing.assert_allclose(encoder.rates, linear_sfa(x, x_next).rates, rtol=1e-8)


@pytest.mark.parametrize("dim", [0, 3])
def test_impossible_width_is_rejected(dim: int):
    with pytest.raises(InputError, match=r"dim .*1 .*2"):
        linear_sfa(*mixed(500, [0.9, 0.5]), dim)


def test_nan_is_rejected():
    x, x_next = mixed(500, [0.9, 0.5])
    x[0, 0] = np.inf
    with pytest.raises(InputError, match="'x' has 1 NaN"):
        linear_sfa(x, x_next, 2)
