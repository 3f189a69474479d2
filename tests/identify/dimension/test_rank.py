"""Directions that vary, and coordinates that repeat another."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.identify.rank import effective_rank, principal_axes, repeated_coordinates

H, H_NEXT = np.random.default_rng(0).standard_normal((2, 500, 3))
TURN = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]


def widened(h: np.ndarray, column: np.ndarray) -> np.ndarray:
    return np.c_[h, column]


@pytest.mark.parametrize("level", [0.0, 0.8, 1e6])
def test_a_constant_direction_does_not_vary(level: float):
    views = [np.c_[view, np.full(500, level)] for view in (H, H_NEXT)]
    assert effective_rank(*views).value == 3
    rotated = [view @ TURN for view in views]
    found = effective_rank(*rotated)
    assert (found.value, found.threshold, found.passed) == (3, 4, False) and "Only 3 of 4" in found.advice
    variances, axes, alive = principal_axes(*rotated)
    assert alive.tolist() == [False, True, True, True]
    both = np.concatenate(rotated)
    np.testing.assert_allclose(np.var(both @ axes, axis=0, ddof=1), variances, atol=1e-6 * max(level**2, 1))


def test_all_directions_vary_or_none():
    assert effective_rank(H, H_NEXT).passed is True
    assert effective_rank(np.ones((9, 2)), np.ones((9, 2))).value == 0


def test_repeated_coordinates():
    assert repeated_coordinates(H, H_NEXT).value == 0
    copied = repeated_coordinates(H[:, [0, 1, 0, 2, 1]], H_NEXT[:, [0, 1, 0, 2, 1]])
    assert copied.value == 2 and copied.passed is None
    assert copied.advice == "Latent coordinate 2 repeats coordinate 0, and 1 others repeat one."
    assert repeated_coordinates(np.c_[H, 3 - H[:, 1]], np.c_[H_NEXT, 3 - H_NEXT[:, 1]]).value == 1
    dead = np.zeros((500, 2))
    assert repeated_coordinates(np.c_[H, dead], np.c_[H_NEXT, dead]).value == 0  # they repeat nothing: they are gone
    assert repeated_coordinates(np.c_[H, 0.5 * H[:, 0]], np.c_[H_NEXT, 0.5 * H_NEXT[:, 0]]).value == 0
