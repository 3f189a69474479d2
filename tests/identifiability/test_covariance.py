"""Weighted covariances against numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.identifiability.covariance import (
    SignedProduct,
    UnitProducts,
    WeightedCovariance,
    resampling_units,
    weighted_product,
)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 40), st.integers(1, 5), st.floats(-1e6, 1e6), st.integers(0, 10_000))
def test_integer_weights_equal_repeated_rows(rows: int, dim: int, mean: float, seed: int):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, dim)) + mean
    counts = rng.multinomial(rows, np.full(rows, 1 / rows))
    expected = np.atleast_2d(np.cov(np.repeat(x, counts, axis=0), rowvar=False, bias=True))
    for scale in (1.0, 0.1):  # only relative weights matter
        np.testing.assert_allclose(WeightedCovariance(x)(counts * scale), expected, atol=1e-9)


def test_constant_column_has_exactly_zero_covariance():
    x = np.random.default_rng(0).standard_normal((50, 3))
    x[:, 1] = 0.1 + 0.7  # not a binary fraction, so sums are rounded
    covariance = WeightedCovariance(x)(np.random.default_rng(1).multinomial(50, np.full(50, 0.02)))
    assert not covariance[1].any() and not covariance[:, 1].any()
    assert covariance[0, 0] == pytest.approx(1, abs=0.6)


def test_weighted_and_signed_products_match_their_sums():
    rng = np.random.default_rng(0)
    a, b, weights, signs = rng.random((20, 3)), rng.random((20, 2)), rng.integers(3, size=20), rng.choice([-1.0, 1], 20)
    for other in (a, b):
        by_weight = sum(w * np.outer(x, y) for w, x, y in zip(weights, a, other, strict=True))
        by_sign = sum(s * np.outer(x, y) for s, x, y in zip(signs, a, other, strict=True))
        np.testing.assert_allclose(weighted_product(a, other, weights), by_weight)
        np.testing.assert_allclose(SignedProduct(a, other)(signs), by_sign, atol=1e-12)


def test_sums_over_units_give_the_same_as_rows():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 300, 3)) + 5
    units = resampling_units(300, rng.integers(0, 40, 300), 3)
    assert len(np.unique(units)) == 40
    weights = rng.integers(0, 3, 40)[units].astype(float)
    assert np.allclose(WeightedCovariance(a, units)(weights), WeightedCovariance(a)(weights))
    assert np.allclose(UnitProducts(a, b, units)(weights), (a * weights[:, None]).T @ b)
    wide = resampling_units(100_000, None, 512)
    assert 50 <= wide.max() + 1 < 200 and (np.diff(wide) >= 0).all()
