"""Slow features one at a time, against the eigenproblem and against worlds whose slow functions are known."""

import numpy as np
import pytest
import scipy.linalg
from gaussian_worlds import pairs, rotation

from jepatlas.experiments.identifiability.sequential import one_by_one


def correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(np.corrcoef(a.T, b.T)[: a.shape[1], a.shape[1] :])


def test_plain_deflation_is_the_eigenproblem_one_vector_at_a_time():
    rho = np.array([0.9, 0.7, 0.5, 0.3])
    z, z_next = pairs(2000, 4, rho)
    mix = np.random.default_rng(1).standard_normal((4, 4))
    phi, phi_next = z @ mix, z_next @ mix
    found = one_by_one(phi, phi_next, phi, 3, ridge=0.0, degree=1)

    both = np.concatenate([phi, phi_next])
    a, b = phi - both.mean(0), phi_next - both.mean(0)
    lagged, covariance = (a.T @ b + b.T @ a) / 2, (a.T @ a + b.T @ b) / 2
    expected = a @ scipy.linalg.eigh(lagged, covariance)[1][:, ::-1][:, :3]
    assert np.diag(correlation(found, expected)) == pytest.approx(1, abs=1e-6)


def test_harmonics_pass_for_sources_unless_they_are_removed():
    """ρ₂ < ρ₁²: the second slowest function is z₁² − 1, and plain deflation takes it.

    The ridge keeps what the estimate of z₁² leaves of it, which is little but slow, from being blown up.
    """
    z, z_next = pairs(20_000, 2, np.array([0.8, 0.5]))
    turn = rotation(5, seed=3)

    def features(s: np.ndarray) -> np.ndarray:
        return np.stack([s[:, 0], s[:, 1], s[:, 0] ** 2 - 1, s[:, 1] ** 2 - 1, s[:, 0] * s[:, 1]], 1) @ turn

    plain, removed = (
        one_by_one(features(z), features(z_next), features(z), 2, ridge=0.05, degree=degree) for degree in (1, 2)
    )
    assert correlation(plain[:, 1:], z[:, :1] ** 2)[0, 0] > 0.95
    assert correlation(plain, z)[1, 1] < 0.1
    assert np.diag(correlation(removed, z)) == pytest.approx(1, abs=0.03)


def test_other_rows_are_treated_as_the_fitted_ones():
    z, z_next = pairs(500, 3, np.array([0.9, 0.7, 0.5]))
    whole = one_by_one(z, z_next, z, 3, ridge=1e-3, degree=2)
    part = one_by_one(z, z_next, z[:7], 3, ridge=1e-3, degree=2)
    np.testing.assert_allclose(part, whole[:7], atol=1e-10)
