"""Errors of maps against loops, and the Procrustes error against scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.spatial
from alignment.latents import SHAPES, gaussian, related, rotation
from hypothesis import given, settings

from jepatlas.alignment.similarity.similarity_metrics import mse_per_dim, mse_sum, procrustes_error, r2
from jepatlas.core.errors import InputError


def test_definition():
    a, b = gaussian(30, 4), gaussian(30, 4, seed=1) + 2
    rows = [sum((b[i, j] - a[i, j]) ** 2 for j in range(4)) for i in range(30)]
    spread = sum((b[i, j] - b[:, j].mean()) ** 2 for i in range(30) for j in range(4))
    assert mse_sum(a, b) == pytest.approx(np.mean(rows)) == pytest.approx(4 * mse_per_dim(a, b))
    assert r2(a, b) == pytest.approx(1 - sum(rows) / spread)
    assert r2(b, b) == 1 and r2(np.broadcast_to(b.mean(0), b.shape), b) == pytest.approx(0)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(SHAPES)
def test_procrustes_error_is_scipys(shape: tuple[int, int, int, int]):
    _, wide_a, wide_b, seed = shape
    a, b = related(*shape)
    wide = max(wide_a, wide_b)  # scipy wants one width: zeros change nothing
    padded = [np.pad(x, ((0, 0), (0, wide - x.shape[1]))) for x in (a, b)]
    assert procrustes_error(a, b) == pytest.approx(scipy.spatial.procrustes(*padded)[2], abs=1e-9)
    assert procrustes_error(b, a) == pytest.approx(procrustes_error(a, b), abs=1e-9)
    assert procrustes_error(a, 3 - 2 * a @ rotation(wide_a, seed)) == pytest.approx(0, abs=1e-9)
    assert procrustes_error(5 * a @ rotation(wide_a, seed), b) == pytest.approx(procrustes_error(a, b), abs=1e-9)


def test_constant_latents():
    a, constant = gaussian(20, 2), np.full((20, 2), 0.3)
    assert math.isnan(procrustes_error(constant, a)) and math.isnan(procrustes_error(a, constant))
    assert math.isnan(r2(a, constant)) and r2(constant, a) <= 0


@pytest.mark.parametrize("metric", [mse_sum, mse_per_dim, r2])
def test_other_widths_are_refused(metric):
    with pytest.raises(InputError, match="'a' has 2 columns and 'b' has 3"):
        metric(gaussian(9, 2), gaussian(9, 3))
