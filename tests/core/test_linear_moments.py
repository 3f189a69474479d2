"""Fits from moments compared with fits on rows, closed forms and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.linear import least_squares, r2
from jepatlas.core.linear_moments import (
    PairMoments,
    Products,
    fit_between,
    is_lost,
    least_squares_of,
    live_directions,
    prepared,
    procrustes_of,
    ridge_of,
)

seeds = st.integers(0, 2**32 - 1)
widths = st.integers(1, 5)


def data(rng: np.random.Generator, n: int, d_in: int, d_out: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(n, d_in)) + 10 * rng.normal(size=d_in)
    return x, x @ rng.normal(size=(d_in, d_out)) + 0.3 * rng.normal(size=(n, d_out)) + 5 * rng.normal(size=d_out)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=5), widths, widths, seeds)
def test_merged_moments_match_the_moments_of_all_rows(cuts, d_in, d_out, seed):
    n = sum(cuts) + 1
    x, y = data(np.random.default_rng(seed), n, d_in, d_out)
    merged = PairMoments.empty(d_in, d_out)
    for part in np.split(np.arange(n), np.cumsum(cuts)):
        merged = merged.merge(PairMoments.of(x[part], y[part]))
    both = np.hstack([x, y])
    centred = both - both.mean(0)
    assert merged.count == n
    np.testing.assert_allclose(np.concatenate([merged.x_mean, merged.y_mean]), both.mean(0), atol=1e-10)
    np.testing.assert_allclose(merged.scatter, centred.T @ centred, atol=1e-8)
    np.testing.assert_array_equal(np.block([[merged.xx, merged.xy], [merged.xy.T, merged.yy]]), merged.scatter)


def test_moments_of_more_rows_than_a_block():
    x, y = data(np.random.default_rng(0), 10_000, 3, 2)
    np.testing.assert_allclose(PairMoments.of(x, y).scatter, 9999 * np.cov(x.T, y.T), rtol=1e-10)


@given(st.integers(2, 20), widths, seeds)
def test_integer_weights_match_repeated_rows(n, dim, seed):
    rng = np.random.default_rng(seed)
    x, y = data(rng, n, dim, 2)
    times = rng.integers(0, 4, n)
    times[0] += 1
    weighted, repeated = (
        PairMoments.of(x, y, times.astype(float)),
        PairMoments.of(x.repeat(times, 0), y.repeat(times, 0)),
    )
    assert weighted.count == pytest.approx(repeated.count)
    np.testing.assert_allclose(weighted.mean, repeated.mean, atol=1e-9)
    np.testing.assert_allclose(weighted.scatter, repeated.scatter, atol=1e-8)


@given(widths, widths, seeds, st.sampled_from([np.float64, np.float32, np.int32]))
def test_least_squares_matches_the_fit_on_rows(d_in, d_out, seed, dtype):
    x, y = data(np.random.default_rng(seed), 50, d_in, d_out)
    x, y = (100 * x).astype(dtype), (100 * y).astype(dtype)
    fitted, expected = least_squares_of(PairMoments.of(x, y)), least_squares(x, y)
    np.testing.assert_allclose(fitted.apply(x), expected.apply(x), atol=1e-6)
    assert fitted.weight.shape == (d_out, d_in) and fitted.weight.dtype == np.float64


@given(st.integers(2, 8), st.data(), seeds)
@settings(max_examples=50)
def test_rank_deficient_least_squares_has_minimum_norm_at_any_scale(dim, draw, seed):
    """Constant directions must be found, and no others, although the scales of columns differ by powers of ten."""
    rng = np.random.default_rng(seed)
    rank = draw.draw(st.integers(1, dim - 1))
    scales = 10.0 ** np.array(draw.draw(st.lists(st.integers(-3, 3), min_size=dim, max_size=dim)))
    mixing = np.hstack([np.eye(rank), rng.integers(-3, 4, (rank, dim - rank))])
    latent = rng.normal(size=(60, rank))
    x, y = latent @ mixing * scales, latent @ rng.normal(size=(rank, 2))
    moments = PairMoments.of(x, y)
    fitted = least_squares_of(moments)
    assert (live_directions(moments)[0] > 0).sum() == rank
    np.testing.assert_allclose(fitted.apply(x), y, atol=1e-6)
    null = np.linalg.qr(scipy.linalg.null_space(mixing) / scales[:, None])[0]
    along = np.linalg.norm(fitted.weight @ null)
    assert along <= 1e-6 * np.linalg.norm(fitted.weight)  # the minimum-norm map is zero along them


def test_constant_columns_get_zero_weight():
    rng = np.random.default_rng(0)
    x = np.hstack([rng.normal(size=(1000, 2)), np.full((1000, 1), 0.1)])
    for dtype in (np.float32, np.float64):
        for products in ("float32", "float64"):
            parts = [PairMoments.of(part.astype(dtype), part[:, :1], products=products) for part in np.split(x, 4)]
            whole = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
            assert whole.scatter[2, 2] == 0
            np.testing.assert_allclose(least_squares_of(whole).weight, [[1, 0, 0]], atol=1e-6)


@given(widths, widths, st.floats(1e-4, 1e4), seeds)
def test_ridge_matches_its_closed_form(d_in, d_out, penalty, seed):
    x, y = data(np.random.default_rng(seed), 25, d_in, d_out)
    xc, yc = x - x.mean(0), y - y.mean(0)
    expected = yc.T @ xc @ np.linalg.inv(xc.T @ xc + penalty * np.eye(d_in))
    np.testing.assert_allclose(ridge_of(PairMoments.of(x, y), penalty).weight, expected, atol=1e-8)


def test_penalty_below_rounding():
    moments = PairMoments.of(*data(np.random.default_rng(0), 100, 3, 2))
    assert is_lost(moments, 0.0) and is_lost(moments, 1e-14) and not is_lost(moments, 1e-8)
    np.testing.assert_array_equal(ridge_of(moments, 1e-14).weight, least_squares_of(moments).weight)
    for penalty in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError, match=str(penalty)):
            ridge_of(moments, penalty)


@given(widths, seeds)
def test_procrustes_matches_scipy(dim, seed):
    x, y = np.random.default_rng(seed).normal(size=(2, 30, dim)) + 3
    expected, _ = scipy.linalg.orthogonal_procrustes(x - x.mean(0), y - y.mean(0))
    np.testing.assert_allclose(procrustes_of(PairMoments.of(x, y)).weight, expected.T, atol=1e-9)


@given(widths, widths, st.booleans(), st.booleans(), seeds)
def test_score_of_moments_matches_the_score_of_rows(d_in, d_out, offset, standardise, seed):
    x, y = data(np.random.default_rng(seed), 60, d_in, d_out)
    fit = PairMoments.of(x[:30], y[:30])
    held = PairMoments.of(x[30:], y[30:])
    fitted = fit_between(fit, lambda m: ridge_of(m, 1.0), offset=offset, standardise=standardise)
    misses = np.square(y[30:] - fitted.apply(x[30:])).sum()
    assert held.residual(fitted) == pytest.approx(misses, rel=1e-8)
    assert held.r2(fitted) == pytest.approx(r2(y[30:], fitted.apply(x[30:])), rel=1e-8)


def test_r2_of_a_constant_is_undefined():
    x = np.random.default_rng(0).normal(size=(50, 2))
    moments = PairMoments.of(x, np.full((50, 3), 0.1))
    assert math.isnan(moments.r2(least_squares_of(moments)))


@given(widths, widths, seeds)
def test_fit_without_offset_maps_zero_to_zero(d_in, d_out, seed):
    x, y = data(np.random.default_rng(seed), 40, d_in, d_out)
    fitted = fit_between(PairMoments.of(x, y), least_squares_of, offset=False)
    np.testing.assert_allclose(fitted.apply(np.zeros((1, d_in))), 0, atol=1e-9)
    np.testing.assert_allclose(fitted.apply(x), x @ np.linalg.lstsq(x, y, rcond=None)[0], atol=1e-6)


@given(widths, widths, seeds)
def test_standardisers_are_part_of_the_map(d_in, d_out, seed):
    rng = np.random.default_rng(seed)
    x, y = data(rng, 40, d_in, d_out)
    x = x * 10.0 ** rng.integers(-3, 4, d_in)
    moments = PairMoments.of(x, y)
    fitted = fit_between(moments, lambda m: ridge_of(m, 2.0), standardise=True)
    u, v = (x - x.mean(0)) / x.std(0), (y - y.mean(0)) / y.std(0)
    weight = v.T @ u @ np.linalg.inv(u.T @ u + 2 * np.eye(d_in))
    np.testing.assert_allclose(fitted.weight, weight, atol=1e-8)
    np.testing.assert_allclose(fitted.apply(x), y.mean(0) + y.std(0) * (u @ weight.T), atol=1e-6)
    standardised = prepared(moments, offset=True, standardise=True)
    np.testing.assert_allclose(np.diag(standardised.scatter), 40, rtol=1e-9)


def test_float32_rows_with_a_large_offset():
    """An offset of 1,000 standard deviations: uncentred float32 squares would lose the signal."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    z = rng.normal(size=(40_000, 8))
    x, y = (z + 1000).astype(np.float32), (z @ turn + 0.1 * rng.normal(size=z.shape) - 1000).astype(np.float32)
    exact = least_squares(x, y).weight
    parts = range(0, len(x), 10_000)
    cases: dict[Products, float] = {"float32": 1e-5, "float64": 1e-9}
    for products, reach in cases.items():
        whole = PairMoments.empty(8, 8)
        for start in parts:
            whole = whole.merge(PairMoments.of(x[start : start + 10_000], y[start : start + 10_000], products=products))
        np.testing.assert_allclose(least_squares_of(whole).weight, exact, atol=reach)
    as_they_are = x.T @ x - len(x) * np.outer(x.mean(0), x.mean(0))
    assert np.abs(as_they_are / len(x) - np.cov(x.T)).max() > 0.1


def test_float32_products_lose_directions_that_float64_products_keep():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(20_000, 3))
    x = (z * [1, 1, 1e-4] @ np.linalg.qr(rng.normal(size=(3, 3)))[0]).astype(np.float32)
    single, double = (PairMoments.of(x, z[:, 2:], products=products) for products in ("float32", "float64"))
    assert double.r2(least_squares_of(double)) > 0.999
    assert (live_directions(single)[0] > 0).sum() == 2
    assert abs(double.r2(least_squares_of(single))) < 0.01


def test_invalid_input_is_rejected():
    ones = np.ones((5, 2))
    with pytest.raises(InputError, match="x has 5 and y has 4"):
        PairMoments.of(ones, ones[:4])
    with pytest.raises(InputError, match=r"2 → 2 .*2 → 1"):
        PairMoments.of(ones, ones).merge(PairMoments.of(ones, ones[:, :1]))
    for bad in (np.nan, np.inf):
        broken = ones.copy()
        broken[3, 1] = bad
        with pytest.raises(InputError, match=r"'y' has 1 .*row 3"):
            PairMoments.of(ones, broken)
    with pytest.raises(InputError, match="float32"):
        PairMoments.of(1e25 * np.arange(10).reshape(5, 2), ones, products="float32")
