"""Hermite degrees in a certificate: closed forms, and a reason where there are none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jepatlas.core.linear import hold_out
from jepatlas.core.records import Verdict
from jepatlas.identifiability.preconditions.sliced_distance import distance_from_gaussian, gaussian_null
from jepatlas.identifiability.resampling import Halves
from jepatlas.identifiability.theory.hermite import degree_verdicts

Z = np.random.default_rng(0).standard_normal((6000, 2))


def degrees(h: np.ndarray, z: np.ndarray, groups: np.ndarray | None = None) -> dict[str, Verdict]:
    halves = Halves(h, z, hold_out(len(h), np.random.default_rng(0), groups=groups), groups)
    return {verdict.name: verdict for verdict in degree_verdicts(halves, 0, replicates=30)}


def test_shares_by_degree_whatever_the_units():
    cubes = degrees(7 * Z**3, Z @ np.array([[2.0, 1.0], [0.0, 30.0]]) + 100)  # z³ = 3 z + (z³ − 3z), 9 + 6
    assert cubes["degree_1"].value == pytest.approx(0.6, abs=0.03)
    assert cubes["degree_3"].value == pytest.approx(0.4, abs=0.03)
    assert abs(cubes["degree_2"].value) < 0.01 and abs(cubes["degree_beyond"].value) < 0.01
    assert list(cubes) == [f"degree_{d}" for d in (1, 2, 3, 4, 5, "beyond")]
    noisy = degrees(Z + np.random.default_rng(1).standard_normal(Z.shape), Z)
    assert noisy["degree_beyond"].value == pytest.approx(0.5, abs=0.03)


def reason(h: np.ndarray, z: np.ndarray, groups: np.ndarray | None = None) -> str:
    (verdict,) = degrees(h, z, groups).values()
    assert verdict.name == "degree_1" and math.isnan(verdict.value) and verdict.passed is None
    assert verdict.advice.startswith("Not computed: ")
    return verdict.advice


def test_reasons():
    assert "not Gaussian" in reason(Z, np.random.default_rng(2).uniform(-1, 1, Z.shape))
    assert "60 dimensions do not support" in reason(*np.random.default_rng(3).standard_normal((2, 300, 60)))
    assert "latents are constant" in reason(np.ones_like(Z), Z)
    assert "states do not vary in every direction" in reason(Z, np.c_[Z[:, 0], np.ones(6000)])
    assert "do not support" in reason(Z[:20], Z[:20])
    uneven = np.where(np.arange(6000) < 5990, 0, np.arange(6000))
    assert "Not computed" in reason(Z, Z, uneven)


def test_the_null_is_the_distance_of_gaussian_samples():
    each = np.arange(400)
    drawn = []
    for seed in range(60):
        x = np.random.default_rng(seed).standard_normal((400, 3))
        white = (x - x.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T))).T
        drawn.append(distance_from_gaussian(white, each, 0)(np.ones(400)))
    mean, high = gaussian_null(400, 3, 0)
    assert mean == pytest.approx(np.mean(drawn), rel=0.1)
    assert np.mean(np.array(drawn) > high) < 0.06
    skewed = np.random.default_rng(0).exponential(size=(400, 3)) - 1
    assert distance_from_gaussian(skewed, each, 0)(np.ones(400)) > high
