"""R² by direction and effective ranks, by their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.alignment.directions import TargetDirections, effective_rank
from jepatlas.core.linear import r2
from jepatlas.core.linear_moments import PairMoments


def test_against_single_regressions():
    rng = np.random.default_rng(0)
    a, y = rng.standard_normal((300, 4)), rng.standard_normal((300, 3)) * [5, 2, 0.5] + 7
    predicted = y + rng.standard_normal(y.shape) * [0.5, 2, 0.1]
    found = TargetDirections.of(y, predicted, PairMoments.of(a, y))
    values, vectors = np.linalg.eigh(np.cov(y.T))
    expected = [r2(y @ vectors[:, [k]], predicted @ vectors[:, [k]]) for k in (2, 1, 0)]
    np.testing.assert_allclose(found.r2, expected)
    assert found.unweighted(np.arange(300))["r2_unweighted"] == pytest.approx(np.mean(expected))
    shares = values / values.sum()
    assert found.target_rank == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
    total, residual = found.totals()
    assert 1 - residual.sum() / total.sum() == pytest.approx(r2(y, predicted))


def test_effective_rank():
    assert effective_rank(np.ones(7)) == pytest.approx(7)
    assert effective_rank(np.array([1e300, 0.0])) == 1 and effective_rank(np.zeros(3)) == 0
