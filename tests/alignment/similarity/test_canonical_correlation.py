"""Canonical correlations compared with the eigenvalue problem of their definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
from alignment.latents import SHAPES, gaussian, invertible, related, rotation
from hypothesis import given, settings

from jepatlas.alignment.similarity.canonical_correlation import pwcca, svcca
from jepatlas.core.errors import InputError

Shape = tuple[int, int, int, int]


def cca(a: np.ndarray, b: np.ndarray) -> float:
    """The mean of all canonical correlations."""
    return svcca(a, b, kept=1)


def slow_correlations(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ρ² and the directions of a, from Σ_ab Σ_bb⁻¹ Σ_ba w = ρ² Σ_aa w, for full rank and d_a ≤ d_b."""
    joint, d = np.cov(np.c_[a, b], rowvar=False), a.shape[1]
    s_aa, s_ab, s_bb = joint[:d, :d], joint[:d, d:], joint[d:, d:]
    squares, directions = scipy.linalg.eigh(s_ab @ np.linalg.inv(s_bb) @ s_ab.T, s_aa)
    return np.sqrt(np.maximum(squares[::-1], 0)), directions[:, ::-1]


@pytest.mark.parametrize(("rows", "wide_a", "wide_b"), [(200, 3, 3), (60, 2, 7), (40, 1, 1)])
def test_cca_and_pwcca_match_their_definition(rows: int, wide_a: int, wide_b: int):
    a, b = related(rows, wide_a, wide_b)
    expected, directions = slow_correlations(a, b)
    assert cca(a, b) == pytest.approx(expected.mean())
    assert cca(b, a) == pytest.approx(expected.mean())
    centred = a - a.mean(0)
    weights = [sum(abs(centred @ w @ centred[:, j]) for j in range(wide_a)) for w in directions.T]
    assert pwcca(a, b) == pytest.approx(np.average(expected, weights=weights))


def test_svcca_is_cca_of_the_leading_principal_components():
    a, b = related(150, 6, 8)

    def leading(x: np.ndarray, count: int) -> np.ndarray:
        x = x - x.mean(0)
        values, vectors = np.linalg.eigh(x.T @ x)
        shares = np.cumsum(values[::-1]) / values.sum()
        assert shares[count - 1] >= 0.9 > shares[count - 2]
        return x @ vectors[:, ::-1][:, :count]

    def held(x: np.ndarray) -> int:
        values = np.linalg.eigvalsh(np.cov(x, rowvar=False))[::-1]
        return next(k for k in range(1, len(values) + 1) if values[:k].sum() >= 0.9 * values.sum())

    expected = slow_correlations(*sorted((leading(a, held(a)), leading(b, held(b))), key=lambda x: x.shape[1]))[0]
    assert svcca(a, b, kept=0.9) == pytest.approx(expected.mean())


@settings(deadline=None, max_examples=40, derandomize=True)
@given(SHAPES)
def test_invariances(shape: Shape):
    """CCA: invertible maps of both sides. SVCCA: rotations and scale. PWCCA: invertible maps of the unweighted side."""
    rows, wide_a, wide_b, seed = shape
    a, b = related(*shape)
    general_a, general_b = a @ invertible(wide_a, seed) + 3, 0.1 * b @ invertible(wide_b, seed)
    assert cca(general_a, general_b) == pytest.approx(cca(a, b), abs=1e-7)
    if wide_a + wide_b < rows - 1:  # otherwise several ρ are 1 and their variates are not unique
        assert pwcca(4 * a - 1, general_b) == pytest.approx(pwcca(a, b), abs=1e-7)
    turned = 2 * a @ rotation(wide_a, seed)
    assert svcca(turned, b, kept=0.9) == pytest.approx(svcca(a, b, kept=0.9), abs=1e-7)
    assert svcca(a, b, kept=1) == pytest.approx(cca(a, b))
    assert cca(a, general_a) == pytest.approx(1) and pwcca(a, general_a) == pytest.approx(1)


def test_correlations_of_a_known_population():
    """With b = a + e of equal variance, ρ = √½ in every direction; with half of b noise, in half of them."""
    a, e = gaussian(20_000, 4), gaussian(20_000, 4, seed=1)
    assert cca(a, a + e) == pytest.approx(math.sqrt(0.5), abs=0.01)
    half = np.c_[(a + e)[:, :2], gaussian(20_000, 2, seed=2)]
    assert cca(a, half) == pytest.approx(math.sqrt(0.5) / 2, abs=0.02)
    # PWCCA weights the directions with large variance in a; CCA weights all equally
    big = a * [10, 10, 1, 1]
    assert pwcca(big, half) > 1.5 * cca(big, half)


def test_rank_deficient_and_constant_latents():
    a, b = related(60, 3, 4)
    doubled = np.c_[a, a[:, :1] + a[:, 1:2], np.full(60, 1e6)]
    assert cca(doubled, b) == pytest.approx(cca(a, b), abs=1e-7)
    constant = np.full((60, 2), 0.1)
    for metric in (cca, svcca, pwcca):
        assert math.isnan(metric(constant, b)) and math.isnan(metric(a, constant))


def test_cca_is_one_with_more_columns_than_rows():
    assert cca(gaussian(20, 30), gaussian(20, 30, seed=1)) == pytest.approx(1)


@pytest.mark.parametrize("kept", [0.0, 1.5, -1.0, math.nan])
def test_invalid_share_is_rejected(kept: float):
    with pytest.raises(InputError, match="'kept'"):
        svcca(gaussian(9, 2), gaussian(9, 2), kept=kept)
