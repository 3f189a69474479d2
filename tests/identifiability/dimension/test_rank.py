"""Effective rank and duplicated coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.identifiability.dimension.rank import effective_rank, linear_rank, principal_axes, repeated_coordinates

H, H_NEXT = np.random.default_rng(0).standard_normal((2, 500, 3))
TURN = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]


def widened(h: np.ndarray, column: np.ndarray) -> np.ndarray:
    return np.c_[h, column]


@pytest.mark.parametrize("level", [0.0, 0.8, 1e6])
def test_constant_direction_lowers_the_rank(level: float):
    views = [np.c_[view, np.full(500, level)] for view in (H, H_NEXT)]
    assert effective_rank(*views).value == 3
    rotated = [view @ TURN for view in views]
    found = effective_rank(*rotated)
    assert (found.value, found.threshold, found.passed) == (3, 4, False) and "Only 3 of 4" in found.advice
    white = principal_axes(*rotated).whitener
    assert white.weight.shape == (3, 4)
    np.testing.assert_allclose(np.cov(white.apply(np.concatenate(rotated)).T, bias=True), np.eye(3), atol=1e-9)


def test_rank_matches_the_correlation_matrix():
    mixed = [view @ np.array([[1.0, 0.4, 0.0], [0.0, 30.0, 0.1], [0.0, 0.0, 0.2]]) for view in (H, H_NEXT)]
    axes, both = principal_axes(*mixed), np.concatenate(mixed)
    correlation = np.corrcoef(both.T)
    np.testing.assert_allclose(axes.values, np.linalg.eigvalsh(correlation)[::-1])
    np.testing.assert_allclose(correlation @ axes.vectors, axes.vectors * axes.values, atol=1e-9)
    np.testing.assert_allclose(axes.units, 1 / both.std(0))
    np.testing.assert_allclose(axes.mean, both.mean(0))


@pytest.mark.parametrize(("scale", "rank"), [(1e-2, 3), (1e-4, 2)])
def test_rank_is_independent_of_units_above_the_floor(scale: float, rank: int):
    """The same with and without a confidence interval."""
    h, h_next = (view * [1.0, 1.0, scale] for view in (H, H_NEXT))
    estimate = linear_rank(h, h_next, np.random.default_rng(0), replicates=5)
    assert effective_rank(h, h_next).value == estimate.value == rank
    given = effective_rank(h, h_next, estimate)
    assert given.value == rank and given.passed is (rank == 3)


def test_full_and_zero_rank():
    assert effective_rank(H, H_NEXT).passed is True
    assert effective_rank(np.ones((9, 2)), np.ones((9, 2))).value == 0


def test_repeated_coordinates_are_counted():
    assert repeated_coordinates(H, H_NEXT).value == 0
    copied = repeated_coordinates(H[:, [0, 1, 0, 2, 1]], H_NEXT[:, [0, 1, 0, 2, 1]])
    assert copied.value == 2 and copied.passed is None
    assert copied.value == 2 and "coordinate 2 repeats coordinate 0" in copied.advice
    assert repeated_coordinates(np.c_[H, 3 - H[:, 1]], np.c_[H_NEXT, 3 - H_NEXT[:, 1]]).value == 1
    dead = np.zeros((500, 2))
    assert (
        repeated_coordinates(np.c_[H, dead], np.c_[H_NEXT, dead]).value == 0
    )  # constant coordinates are not repetitions
    assert repeated_coordinates(np.c_[H, 0.5 * H[:, 0]], np.c_[H_NEXT, 0.5 * H_NEXT[:, 0]]).value == 0


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.2])
def test_repetition_lowers_the_rank_by_one(noise: float):
    """The number of copies equals the missing rank."""
    views = [5 * np.c_[view, view[:, 1] + noise * view[:, 2]] for view in (H, H_NEXT)]
    two = [view[:, [1, 3]] for view in views]
    assert repeated_coordinates(*views).value == 2 - effective_rank(*two).value == (noise < 0.1)
