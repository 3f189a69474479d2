"""Hermite degrees against quadrature and exact polynomials, and their verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gaussian_worlds import Polynomial, psi, quadrature, rotation
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.linear import hold_out
from jepatlas.core.records import Verdict
from jepatlas.identifiability import degree_variances
from jepatlas.identifiability.preconditions.sliced_distance import distance_from_gaussian, gaussian_null
from jepatlas.identifiability.resampling import Halves
from jepatlas.identifiability.theory.hermite import (
    HermiteFit,
    degree_verdicts,
    hermite_basis,
    largest_degree,
    multi_indices,
)


def gaussian(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, dim))


def values(h: np.ndarray, z: np.ndarray, degree: int, seed: int = 0) -> dict[str, float]:
    found = degree_variances(h, z, degree, np.random.default_rng(seed), replicates=2)
    return {name: estimate.value for name, estimate in found.items()}


@pytest.mark.parametrize(("dim", "degree"), [(1, 12), (2, 5), (3, 3), (5, 2), (40, 1)])
def test_basis_matches_numpy(dim: int, degree: int):
    z, indices = gaussian(20, dim), multi_indices(dim, degree)
    assert len(indices) == math.comb(dim + degree, degree) == len(np.unique(indices, axis=0))
    assert (np.diff(indices.sum(1)) >= 0).all() and indices.sum(1).max() == degree
    expected = np.stack([psi(tuple(k), z) for k in indices], 1)
    np.testing.assert_allclose(hermite_basis(z, degree), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("dim", "degree"), [(1, 9), (2, 5), (3, 3)])
def test_basis_is_orthonormal(dim: int, degree: int):
    z, weights = quadrature(dim, degree + 1)
    basis = hermite_basis(z, degree)
    np.testing.assert_allclose(basis.T @ (weights[:, None] * basis), np.eye(basis.shape[1]), atol=1e-10)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(0, 10_000))
def test_polynomials_are_decomposed_exactly(dim: int, degree: int, out: int, seed: int):
    """Polynomials within the basis have exact shares v_d up to rounding, and no remainder."""
    h = Polynomial(dim, degree, out, seed)
    z = gaussian(1200, dim, seed + 1)
    found = values(h(z), z, degree, seed)
    expected = {d: h.variance(d) for d in range(1, degree + 1)}
    for d, variance in expected.items():
        assert found[f"degree_{d}"] == pytest.approx(variance, rel=1e-8)
    assert found["beyond"] == pytest.approx(0, abs=1e-8)
    assert found["total"] == pytest.approx(sum(expected.values()), rel=1e-8)
    assert found["nonlinear"] == pytest.approx(sum(expected.values()) - expected[1], abs=1e-8)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 3), st.integers(0, 10_000))
def test_degrees_do_not_mix_under_a_rotation(dim: int, seed: int):
    """Rotating z moves energy between terms of one degree, but not between degrees."""
    z, turn = gaussian(900, dim, seed), rotation(dim, seed)
    h = np.tanh(z @ gaussian(dim, 2, seed + 1)) + 0.1 * z[:, :1] ** 3
    plain, turned = values(h, z, 3), values(h, z @ turn.T, 3)
    assert turned == pytest.approx(plain, rel=1e-6, abs=1e-9)


def test_variance_estimates_are_unbiased():
    """For latents independent of z, an in-sample fit explains terms/rows of the variance; the estimate is zero."""
    found, naive = [], []
    for seed in range(60):
        z, h = gaussian(240, 2, 2 * seed), gaussian(240, 3, 2 * seed + 1)
        found.append(values(h, z, 3, seed))
        basis = hermite_basis(z, 3)
        naive.append(np.sum(np.linalg.lstsq(basis, h, rcond=None)[0][1:] ** 2))
    explained = np.array([f["degree_1"] + f["degree_2"] + f["degree_3"] for f in found])
    error = explained.std() / math.sqrt(len(explained))
    assert abs(explained.mean()) < 3 * error < 0.06
    assert explained.min() < 0  # unbiased, so not always positive
    assert np.mean(naive) > 0.1
    assert np.mean([f["beyond"] for f in found]) == pytest.approx(3, abs=0.1)


def test_remainder_beyond_the_largest_degree():
    z = gaussian(30_000, 2)
    h = np.c_[2 * psi((2, 2), z), z[:, 0]]
    found = degree_variances(h, z, 2, np.random.default_rng(0), replicates=200)
    assert found["degree_1"].value == pytest.approx(1, abs=0.05)
    assert found["degree_2"].low <= 0 <= found["degree_2"].high
    assert found["beyond"].low <= 4 <= found["beyond"].high
    assert found["total"].value == pytest.approx(5, abs=0.5)


@pytest.mark.parametrize("rows", [600, 126])
def test_intervals_cover_the_truth(rows: int):
    """h = z₁ + z₁z₂ + e/2 with twenty and four rows per term. Of 60 intervals, 57 ± 1.7 should cover."""
    truth = {"degree_1": 1.0, "degree_2": 1.0, "degree_3": 0.0, "beyond": 0.25, "nonlinear": 1.25}
    covered = dict.fromkeys(truth, 0)
    for seed in range(60):
        z, e = gaussian(rows, 2, 2 * seed), gaussian(rows, 1, 2 * seed + 1)
        h = z[:, :1] + psi((1, 1), z)[:, None] + e / 2
        found = degree_variances(h, z, 3, np.random.default_rng(seed), replicates=120)
        for name, value in truth.items():
            covered[name] += found[name].low <= value <= found[name].high
            assert found[name].n == rows
    assert min(covered.values()) >= 50


def test_groups_widen_the_interval():
    z, e = gaussian(300, 2), gaussian(300, 2, seed=1)
    copies = np.repeat(np.arange(300), 8)
    jitter = 1e-3 * gaussian(2400, 2, seed=2)  # distinct states, but only 300 independent ones
    h, z = (z + e)[copies], z[copies] + jitter

    def width(labels: np.ndarray | None) -> float:
        found = degree_variances(h, z, 1, np.random.default_rng(0), groups=labels, replicates=200)["degree_1"]
        return found.high - found.low

    assert width(copies) > 1.8 * width(None)


def test_too_many_terms_error_names_the_largest_possible_degree():
    z = gaussian(300, 4)
    assert largest_degree(4, 200) == 2
    assert values(z[:200], z[:200], 2)["degree_1"] == pytest.approx(4)
    with pytest.raises(InputError, match=r"Degree 3 in 4 dimensions.* 35 .* 210 .* 2\."):
        values(z[:200], z[:200], 3)
    with pytest.raises(InputError, match="degree 1 "):
        values(z[:20], z[:20], 1)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 30), st.integers(0, 5000))
def test_largest_degree_is_maximal(dim: int, rows: int):
    degree = largest_degree(dim, rows)
    assert degree == 0 or 6 * math.comb(dim + degree, dim) <= rows
    assert 6 * math.comb(dim + degree + 1, dim) > rows - 3


def test_coefficients_of_the_three_thirds():
    z = gaussian(900, 2)
    groups = np.repeat(np.arange(90), 10)
    fit = HermiteFit(np.sin(z), z, 2, np.random.default_rng(0), groups)
    assert all(len(set(fit.parts[groups == g])) == 1 for g in range(90))
    for part in range(3):
        rows = fit.parts == part
        expected = np.linalg.lstsq(hermite_basis(z[rows], 2), np.sin(z[rows]), rcond=None)[0]
        np.testing.assert_allclose(fit.coefficients[part], expected, atol=1e-10)
    c = fit.coefficients
    np.testing.assert_allclose(fit.energies(), np.sum(c[0] * c[1] + c[0] * c[2] + c[1] * c[2], axis=1) / 3)
    np.testing.assert_allclose(fit.energies(np.ones(900)), fit.energies())


def test_invalid_inputs_are_rejected():
    z, rng = gaussian(300, 2), np.random.default_rng(0)
    spoiled = z.copy()
    spoiled[7, 1] = np.nan
    for h, states, degree, groups, message in [
        (z, z, 0, None, "degree.* 0"),
        (spoiled, z, 1, None, r"'h' has 1 NaN .*row 7"),
        (z[:, 0], z, 1, None, r"'h'.*\(300,\)"),
        (z[:-1], z, 1, None, "'h' has 299, 'z' has 300"),
        (z, z, 1, np.zeros(9), "'groups' has 9"),
        (z, z, 1, np.arange(300) % 2, "3 groups.* 2"),
        (z, 100 * z, 1, None, r"'z' must have mean 0.* 1"),
        (z, z + 3, 1, None, "Standardise"),
    ]:
        with pytest.raises(InputError, match=message):
            degree_variances(h, states, degree, rng, groups=groups)


def test_repeated_states_are_rejected():
    z = np.tile(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), (100, 1))
    with pytest.raises(InputError, match="'z' has too few"):
        values(z, z, 2)


Z = np.random.default_rng(0).standard_normal((6000, 2))


def degrees(h: np.ndarray, z: np.ndarray, groups: np.ndarray | None = None) -> dict[str, Verdict]:
    halves = Halves(h, z, hold_out(len(h), np.random.default_rng(0), groups=groups), groups)
    return {verdict.name: verdict for verdict in degree_verdicts(halves, 0, replicates=30)}


def test_shares_by_degree_are_independent_of_units():
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


def test_reasons_for_undefined_verdicts():
    assert "not Gaussian" in reason(Z, np.random.default_rng(2).uniform(-1, 1, Z.shape))
    assert "60 dimensions do not support" in reason(*np.random.default_rng(3).standard_normal((2, 300, 60)))
    assert "latents are constant" in reason(np.ones_like(Z), Z)
    assert "states do not vary in every direction" in reason(Z, np.c_[Z[:, 0], np.ones(6000)])
    assert "do not support" in reason(Z[:20], Z[:20])
    uneven = np.where(np.arange(6000) < 5990, 0, np.arange(6000))
    assert "Not computed" in reason(Z, Z, uneven)


def test_null_is_the_distance_of_gaussian_samples():
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
