"""Families of regression maps against shares known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jepatlas.core.linear import r2
from jepatlas.identifiability.regressions import FAMILIES, fit_families

ROWS = np.arange(1500)
Z = np.random.default_rng(0).standard_normal((3000, 2))
HELD = slice(1500, None)


def scores(y: np.ndarray, x: np.ndarray = Z) -> list[float]:
    found = fit_families(x, y, ROWS, np.random.default_rng(1))
    assert list(found) == list(FAMILIES)
    return [r2(y[HELD], found[family][HELD]) for family in FAMILIES]


def test_linear_map_is_explained_by_the_linear_family():
    found = fit_families(Z, Z @ np.array([[2.0, 1.0], [0.0, 3.0]]) + 4, ROWS, np.random.default_rng(1))
    for family in FAMILIES[1:]:
        assert found[family] is found["linear"]
    np.testing.assert_allclose(found["linear"], Z @ np.array([[2.0, 1.0], [0.0, 3.0]]) + 4, atol=1e-9)


def test_simplest_sufficient_family_is_found():
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((2, 2)))[0]
    linear, warped, additive, anything = scores(Z**3 @ turn)
    assert linear == pytest.approx(0.6, abs=0.05)  # Corr(z, z³)² = 9/15
    assert min(warped, additive, anything) > 0.98
    linear, warped, additive, anything = scores(np.c_[Z[:, 0] + np.sin(1.5 * Z[:, 1]), Z[:, 1]] @ turn)
    hidden = (math.sinh(2.25) - 2.25) * math.exp(-2.25)  # Var sin(1.5 z) without its first Hermite degree
    total = 2 + math.sinh(2.25) * math.exp(-2.25)
    assert linear == pytest.approx(1 - hidden / total, abs=0.015)
    assert warped < linear + 0.01 and min(additive, anything) > 0.995
    linear, warped, additive, anything = scores(Z[:, :1] * Z[:, 1:])
    assert max(linear, warped, additive) < 0.05 and anything > 0.98


def test_noise_is_not_explained_by_any_family():
    y = Z + np.random.default_rng(5).standard_normal(Z.shape)
    assert scores(y) == pytest.approx([0.5] * 4, abs=0.03)
    unrelated = scores(np.random.default_rng(5).standard_normal(Z.shape))
    assert max(unrelated) < 0.02 and unrelated[0] > -0.02 and unrelated[3] > -0.02


def test_constant_columns_and_few_rows_are_accepted():
    assert min(scores(Z**3, np.c_[Z, np.ones(3000)])[1:]) > 0.98
    found = fit_families(Z, Z**3, np.arange(20), np.random.default_rng(0))
    assert all(np.array_equal(found[family], found["linear"]) for family in FAMILIES)
    constant = fit_families(Z, np.ones_like(Z), ROWS, np.random.default_rng(0))
    assert all(np.allclose(found, 1) for found in constant.values())
