"""CKA in feature space, compared with its definition by n × n kernels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from alignment.latents import SHAPES, gaussian, related, rotation
from hypothesis import given, settings

from jepatlas.alignment.similarity.kernel_alignment import cka, cka_debiased
from jepatlas.core.errors import InputError

Shape = tuple[int, int, int, int]


def slow_hsic(k: np.ndarray, m: np.ndarray) -> float:
    n = len(k)
    centring = np.eye(n) - 1 / n
    return float(np.trace(k @ centring @ m @ centring))


def slow_unbiased_hsic(k: np.ndarray, m: np.ndarray) -> float:
    """Equation 5 of "Feature Selection via Dependence Maximization", on kernels without centring."""
    n, ones = len(k), np.ones(len(k))
    k, m = (kernel - np.diag(np.diag(kernel)) for kernel in (k, m))
    middle = (ones @ k @ ones) * (ones @ m @ ones) / ((n - 1) * (n - 2))
    return float(np.trace(k @ m) + middle - 2 / (n - 2) * (ones @ k @ m @ ones)) / (n * (n - 3))


def slow_cka(a: np.ndarray, b: np.ndarray, hsic=slow_hsic) -> float:
    k, m = a @ a.T, b @ b.T
    return hsic(k, m) / math.sqrt(hsic(k, k) * hsic(m, m))


@settings(deadline=None, max_examples=60, derandomize=True)
@given(SHAPES)
def test_matches_definition(shape: Shape):
    a, b = related(*shape)
    assert cka(a, b) == pytest.approx(slow_cka(a, b), rel=1e-9)
    assert cka_debiased(a, b) == pytest.approx(slow_cka(a, b, slow_unbiased_hsic), rel=1e-6, abs=1e-9)


def test_unbiased_hsic_is_the_mean_over_quadruples():
    """The U-statistic over distinct rows."""
    a, b = related(6, 2, 3)
    k, m = a @ a.T, b @ b.T
    rows = range(6)
    quadruples = [(i, j, q, r) for i in rows for j in rows for q in rows for r in rows if len({i, j, q, r}) == 4]
    mean = np.mean([k[i, j] * (m[i, j] + m[q, r] - 2 * m[i, q]) for i, j, q, r in quadruples])
    assert slow_unbiased_hsic(k, m) == pytest.approx(mean)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(SHAPES)
def test_invariant_under_rotation_shift_and_scale(shape: Shape):
    _, wide_a, _, seed = shape
    a, b = related(*shape)
    turned = 3 * a @ rotation(wide_a, seed) - 7
    assert cka(turned, b) == pytest.approx(cka(a, b), rel=1e-9)
    assert cka_debiased(turned, b) == pytest.approx(cka_debiased(a, b), rel=1e-6, abs=1e-9)
    assert cka(b, a) == pytest.approx(cka(a, b)) and cka(a, turned) == pytest.approx(1)
    assert cka_debiased(a, turned) == pytest.approx(1)


def test_blocks_match_definition(monkeypatch: pytest.MonkeyPatch):
    """Blocks of columns if there are more rows, blocks of rows otherwise."""
    monkeypatch.setattr("jepatlas.alignment.similarity.kernel_alignment.BLOCK", 50)
    a, b = gaussian(300, 40), gaussian(300, 170, seed=1)
    b[:, :40] += a
    for rows in (300, 70):
        assert cka(a[:rows], b[:rows]) == pytest.approx(slow_cka(a[:rows], b[:rows]))
        slow = slow_cka(a[:rows], b[:rows], slow_unbiased_hsic)
        assert cka_debiased(a[:rows], b[:rows]) == pytest.approx(slow)


def test_debiased_cka_of_independent_gaussians_is_zero():
    """The biased estimate of unrelated latents is 0.43 here; the debiased estimate is 0."""
    a, b = gaussian(500, 384), gaussian(500, 384, seed=1)
    assert cka(a, b) == pytest.approx(0.43, abs=0.01)
    assert cka_debiased(a, b) == pytest.approx(0, abs=0.02)
    small = [cka_debiased(gaussian(20, 10, s), gaussian(20, 10, s + 1000)) for s in range(200)]
    assert abs(np.mean(small)) < 3 * np.std(small) / math.sqrt(200) and min(small) < 0


def test_single_precision_integers_and_extreme_scales():
    a, b = related(50, 3, 4)
    for metric in (cka, cka_debiased):
        assert metric(a.astype(np.float32), b.astype(np.float32)) == pytest.approx(metric(a, b), rel=1e-5)
        assert metric(1e200 * a, 1e-200 * b) == pytest.approx(metric(a, b))
        assert math.isfinite(metric(np.arange(12).reshape(6, 2), np.arange(6)[:, None] ** 2))


def test_constant_latents_are_undefined():
    varied = gaussian(20, 3)
    for level in (0.0, 0.1, 1e9):
        for metric in (cka, cka_debiased):
            assert math.isnan(metric(np.full((20, 2), level), varied)) and math.isnan(metric(varied, np.zeros((20, 1))))
    assert math.isnan(cka_debiased(np.eye(20), varied))  # all pairs of rows have the same distance


def test_invalid_input_is_rejected():
    a = gaussian(10, 2)
    spoiled = a.copy()
    spoiled[3, 0] = np.nan
    for one, other, message in [
        (a, a[:-1], "'a' has 10, 'b' has 9"),
        (spoiled, a, r"'a' .*row 3"),
        (a[:, 0], a, r"'a' must be .*\(10,\)"),
        (a, np.zeros((10, 0)), "'b' must be"),
        (a[:3], a[:3], r"4 pairs of rows.* 3"),
    ]:
        with pytest.raises(InputError, match=message):
            cka_debiased(one, other)
