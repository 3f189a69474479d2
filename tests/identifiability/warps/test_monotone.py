"""Monotone regression against the isotonic optimum and known curves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from jepatlas.core.errors import InputError
from jepatlas.identifiability.warps.monotone import Monotone, fit_monotone


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(20, 400), st.floats(0, 2))
def test_fit_is_monotone_and_close_to_isotonic_regression(seed: int, rows: int, noise: float):
    """Isotonic regression is the best increasing fit; the spline comes close to it for any samples."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.standard_normal(rows))
    y = np.sin(2 * x) + x + noise * rng.standard_normal(rows)  # its trend decreases in places
    curve = fit_monotone(x, y)
    assert (np.diff(curve.y) >= 0).all() and (np.diff(curve(np.linspace(-9, 9, 999))) >= -1e-12).all()
    best = np.mean((y - isotonic_regression(y).x) ** 2)
    found = np.mean((y - curve(x)) ** 2)
    assert best - 1e-9 <= found < np.var(y)
    line = np.mean((y - np.polyval(np.polyfit(x, y, 1), x)) ** 2)
    assert found <= line * 1.02 + 1e-3
    assert np.mean(curve(x)) == pytest.approx(np.mean(y), abs=0.02)


@pytest.mark.parametrize("function", [np.tanh, np.exp, lambda x: x**3, lambda x: x])
def test_smooth_curves_are_recovered(function):
    x = np.random.default_rng(0).standard_normal(5000)
    curve = fit_monotone(x, function(x))
    inner = np.abs(x) < 2.5
    np.testing.assert_allclose(curve(x)[inner], function(x)[inner], atol=0.01 * float(np.std(function(x))))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000))
def test_weights_equal_repeated_samples(seed: int):
    rng = np.random.default_rng(seed)
    x, noise = rng.standard_normal((2, 300))
    y = np.tanh(x) + 0.3 * noise
    counts = rng.integers(0, 3, 300)
    counts[[np.argmin(x), np.argmax(x)]] = 1
    at = np.quantile(x, [0.1, 0.3, 0.5, 0.7, 0.9])
    weighted, repeated = fit_monotone(x, y, counts), fit_monotone(np.repeat(x, counts), np.repeat(y, counts))
    # The knots are at quantiles of x, which ignore the weights.
    np.testing.assert_allclose(weighted(at), repeated(at), atol=0.25)
    np.testing.assert_allclose(fit_monotone(x, y, np.full(300, 7.0))(at), fit_monotone(x, y)(at), atol=1e-6)


def test_decreasing_relation_gives_a_constant_fit():
    x = np.linspace(-1, 1, 100)
    np.testing.assert_allclose(fit_monotone(x, 2 - x)(x), 2, atol=1e-9)


def test_curve_is_linear_between_and_beyond_the_knots():
    curve = Monotone(np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 3.0]))
    np.testing.assert_allclose(curve(np.array([[-1.0, 0.5], [2.0, 5.0]])), [[-2.0, 1.0], [2.5, 4.0]])


def test_invalid_inputs_are_rejected():
    with pytest.raises(InputError, match="two distinct values"):
        fit_monotone(np.ones(50), np.arange(50.0))
