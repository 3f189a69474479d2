"""Ridge maps of permuted pairs agree with fits from scratch."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.alignment import LeastSquaresMap, RidgeMap
from jepatlas.alignment.maps.permuted_ridge import PermutedRidge
from jepatlas.alignment.maps.ridge_penalty import held_out


def pairs(n: int, d_in: int, d_out: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d_in)) * np.geomspace(1, 0.01, d_in) + 5
    return x, x @ rng.standard_normal((d_in, d_out)) + 0.1 * rng.standard_normal((n, d_out))


@pytest.mark.parametrize(
    ("n", "d_in", "d_out", "standardise"),
    [(80, 5, 3, False), (80, 5, 3, True), (60, 50, 4, False), (60, 50, 4, True), (40, 90, 6, True)],
)
@pytest.mark.parametrize("seed", range(2))
def test_predictions_of_permuted_pairs_equal_those_of_refits(
    n: int, d_in: int, d_out: int, standardise: bool, seed: int
) -> None:
    x, y = pairs(2 * n, d_in, d_out, seed)
    y -= y.mean(0)
    held = held_out(np.arange(n), 0)
    shared = PermutedRidge(x[:n], x[n:], held, standardise=standardise)
    for order in (np.arange(n), np.random.default_rng(seed).permutation(n)):
        expected = RidgeMap(standardise=standardise).fit(x[:n], y[order]).map_.apply(x[n:])
        found = shared.predict(y[order].astype(np.float32))
        assert np.abs(found - expected).max() < 2e-3 * y.std()


@pytest.mark.parametrize("seed", range(2))
def test_without_a_penalty_it_is_least_squares(seed: int) -> None:
    x, y = pairs(120, 6, 3, seed)
    found = PermutedRidge(x[:60], x[60:], None, standardise=False).predict((y[:60] - y.mean(0)).astype(np.float32))
    expected = LeastSquaresMap().fit(x[:60], y[:60] - y.mean(0)).map_.apply(x[60:])
    assert np.abs(found - expected).max() < 1e-4 * y.std()
