"""Rotations of independent coordinates are undone, up to order and sign; of Gaussian ones any rotation is as good."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from jepatlas.identifiability.composition import unmix


def turn(dim: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0]


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("curve", [lambda u: u**3, np.exp, lambda u: np.tanh(2 * u)], ids=["cubes", "exp", "tanh"])
def test_independent_coordinates_are_found_again(curve: Callable[[np.ndarray], np.ndarray], dim: int):
    sources = curve(np.random.default_rng(0).standard_normal((6000, dim)))
    fit = np.arange(4000)
    found = unmix(3 * sources @ turn(dim, 1) - 7, fit, np.random.default_rng(2))
    match = np.abs(np.corrcoef(found[4000:].T, sources[4000:].T)[:dim, dim:])  # rows that took no part
    assert sorted(match.argmax(1)) == list(range(dim)) and match.max(1).min() > 0.97


def test_the_map_is_a_whitening():
    h = np.random.default_rng(0).standard_normal((3000, 3)) @ np.diag([1.0, 5.0, 0.1]) @ turn(3, 4)
    found = unmix(h, np.arange(3000), np.random.default_rng(1))
    np.testing.assert_allclose(np.cov(found.T), np.eye(3), atol=1e-8)


def test_latents_that_do_not_vary_stay_finite():
    h = np.c_[np.random.default_rng(0).standard_normal((500, 1)), np.ones(500)]
    assert np.isfinite(unmix(h, np.arange(500), np.random.default_rng(1))).all()
