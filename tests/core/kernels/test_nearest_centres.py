"""Nearest centres by the compiled search, against all distances."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.energy.least_action.cells import CentreSearch


@pytest.mark.parametrize("count", [5, 256, 257, 900])
def test_the_nearest_of_all_centres_is_found(count: int):
    rng = np.random.default_rng(count)
    centres = (rng.standard_normal((count, 3)) @ rng.standard_normal((3, 8))).astype(np.float32)
    queries = np.concatenate([centres, centres[:200] + 0.3, 50 * rng.standard_normal((50, 8))]).astype(np.float32)
    squares = np.square(queries.astype(np.float64)[:, None] - centres).sum(-1)
    found = CentreSearch(centres)(queries)
    np.testing.assert_allclose(squares[np.arange(len(queries)), found], squares.min(1), rtol=1e-5, atol=1e-5)
    assert (found[:count] == np.arange(count)).all()


def test_equal_centres_and_no_queries():
    centres = np.zeros((400, 2), dtype=np.float32)
    search = CentreSearch(centres)
    assert 0 <= search(np.ones((1, 2)))[0] < 400
    assert search(np.empty((0, 2))).shape == (0,)
