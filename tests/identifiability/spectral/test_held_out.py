"""Held-out correlations and reversibility against plain computations and known processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate
from jepatlas.identifiability import SpectralEncoder
from jepatlas.identifiability.spectral.held_out import BlockMoments
from jepatlas.identifiability.spectral.pair_rows import SplitPairs
from jepatlas.identifiability.spectral.spectral_encoder import Features


def identity(dim: int) -> SpectralEncoder:
    features = Features(LinearMap(np.eye(dim), np.zeros(dim), np.zeros(dim)), np.zeros((0, dim)))
    return SpectralEncoder(features, np.eye(dim), np.zeros(dim), np.zeros(dim))


def turning(rows: int, angle: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """z' = ρ R(angle) z + noise: stationary, and reversible only without the angle."""
    z, noise = np.random.default_rng(seed).standard_normal((2, rows, 2))
    cosine, sine = np.cos(angle), np.sin(angle)
    return z, 0.9 * z @ np.array([[cosine, sine], [-sine, cosine]]) + np.sqrt(1 - 0.81) * noise


def held_out_rates(encoder: SpectralEncoder, x: np.ndarray, x_next: np.ndarray, **options: Any) -> tuple[Estimate, ...]:
    return BlockMoments.of(encoder, SplitPairs(x, x_next, seed=0, **options)).rates(seed=0)


def moments(x: np.ndarray, x_next: np.ndarray, seed: int = 0) -> BlockMoments:
    return BlockMoments.of(identity(x.shape[1]), SplitPairs(x, x_next, seed=seed))


def test_rates_are_correlations_about_the_common_mean():
    x, x_next = turning(3000, 0.0)
    x, x_next = 5 * x + [3, -2], 5 * x_next + [3, -2]
    rates = held_out_rates(identity(2), x, x_next)
    mean = np.concatenate([x, x_next]).mean(0)
    a, b = x - mean, x_next - mean
    expected = (a * b).mean(0) / ((a**2).mean(0) + (b**2).mean(0)) * 2
    np.testing.assert_allclose([rate.value for rate in rates], expected, rtol=1e-9)
    assert all(rate.n == 3000 for rate in rates)


def test_intervals_have_the_width_for_a_correlation():
    rates = held_out_rates(identity(2), *turning(10_000, 0.0))
    for rate in rates:
        assert rate.low < 0.9 < rate.high
        assert rate.high - rate.low == pytest.approx(2 * 1.96 * (1 - 0.81) / np.sqrt(10_000), rel=0.3)


def test_repeated_rows_of_a_group_do_not_narrow_intervals():
    x, x_next = turning(400, 0.0)
    alone = held_out_rates(identity(2), x, x_next)[0]
    many = np.repeat(x, 10, axis=0), np.repeat(x_next, 10, axis=0)
    grouped = held_out_rates(identity(2), *many, groups=np.repeat(np.arange(400), 10))[0]
    naive = held_out_rates(identity(2), *many)[0]
    assert grouped.high - grouped.low == pytest.approx(alone.high - alone.low, rel=0.35)
    assert naive.high - naive.low < 0.6 * (grouped.high - grouped.low)


def test_only_scored_rows_are_counted():
    x, x_next = turning(4000, 0.0)
    pairs = SplitPairs(x, x_next)
    late = np.concatenate([chunk.place for chunk in pairs]) >= 0.75
    scored = BlockMoments.of(identity(2), pairs, 0.75)
    assert scored.counts.sum() == late.sum()
    np.testing.assert_allclose(scored.cross.sum(0), x[late].T @ x_next[late])


def test_constant_function_has_zero_correlation():
    x = np.c_[np.ones(300), np.arange(300.0)]
    assert np.isnan(moments(x, x).correlations(np.ones(len(moments(x, x).counts)))[0])


def test_rotating_process_is_reported_with_its_size():
    verdict = moments(*turning(4000, 0.5)).reversibility(0)
    assert verdict.passed is False
    assert verdict.value == pytest.approx(np.tan(0.5), rel=0.1)  # ‖ρ sin‖/‖ρ cos‖
    assert verdict.low < np.tan(0.5) < verdict.high
    assert verdict.null is not None and verdict.null < 0.1 * verdict.value


def test_reversibility_test_has_the_stated_level():
    passed = [moments(*turning(600, 0.0, seed), seed).reversibility(seed, 200).passed for seed in range(80)]
    assert 69 <= passed.count(True) < 80


def test_weights_enter_all_correlations():
    x, x_next = turning(2000, 0.3)
    weights = np.exp(x[:, 0] / 2)
    found = held_out_rates(identity(2), x, x_next, weights=weights)
    mean = np.average(np.concatenate([x, x_next]), axis=0, weights=np.tile(weights, 2))
    a, b = x - mean, x_next - mean
    expected = 2 * weights @ (a * b) / (weights @ (a**2 + b**2))
    np.testing.assert_allclose([rate.value for rate in found], expected, rtol=1e-9)
    assert all(rate.n == 2000 for rate in found)


def test_equal_weights_match_no_weights():
    x, x_next = turning(2000, 0.3)
    plain, weighed = (held_out_rates(identity(2), x, x_next, weights=w) for w in (None, np.full(2000, 4.0)))
    for one, other in zip(plain, weighed, strict=True):
        np.testing.assert_allclose([one.value, one.low, one.high], [other.value, other.low, other.high], rtol=1e-12)


def test_only_asymmetric_weights_break_reversibility():
    """W(s, s') = W(s', s) keeps the distribution of pairs symmetric; w(s) alone does not."""
    x, x_next = turning(8000, 0.0)
    one_sided = np.exp(-np.square(x - [1.0, -1.0]).sum(1))
    both = np.sqrt(one_sided * np.exp(-np.square(x_next - [1.0, -1.0]).sum(1)))

    def drift(weights: np.ndarray) -> np.ndarray:
        return np.average(x_next - x, axis=0, weights=weights)

    assert np.abs(drift(both)).max() < 0.02
    assert np.abs(drift(one_sided)).min() > 0.05
    functions = [np.c_[v, v**2] for v in (x, x_next)]
    passed = [
        BlockMoments.of(identity(4), SplitPairs(*functions, weights=w)).reversibility(0).passed
        for w in (both, one_sided)
    ]
    assert passed == [True, False]
