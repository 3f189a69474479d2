"""Generalised eigenproblem against dense scipy, and on Hermite functions with eigenvalues ρ^k."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.special

from jepatlas.identifiability.spectral.solver import Candidate, Kernel, best, candidates
from jepatlas.identifiability.spectral.transfer_operator import TransferMoments, eigenfunctions, rayleigh_trace

PLAIN = Kernel(1.0, scored=False)


def pairs(rows: int = 400, width: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    phi = rng.standard_normal((rows, width)) @ rng.standard_normal((width, width)) + 3
    return phi, np.linspace(0.9, 0.1, width) * phi + rng.standard_normal((rows, width)) * 0.5


def slow_matrices(phi: np.ndarray, phi_next: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = np.concatenate([phi, phi_next]).mean(0)
    width = len(mean)
    covariance, lagged = np.zeros((width, width)), np.zeros((width, width))
    for a, b in zip(phi - mean, phi_next - mean, strict=True):
        covariance += (np.outer(a, a) + np.outer(b, b)) / 2
        lagged += (np.outer(a, b) + np.outer(b, a)) / 2
    return covariance / len(phi), lagged / len(phi)


def test_moments_match_their_definition():
    phi, phi_next = pairs()
    moments = TransferMoments.of(phi, phi_next)
    covariance, lagged = slow_matrices(phi, phi_next)
    np.testing.assert_allclose(moments.covariance, covariance, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(moments.lagged, lagged, rtol=1e-10, atol=1e-10)


def test_moments_of_chunks_merge():
    phi, phi_next = pairs()
    whole = TransferMoments.of(phi, phi_next)
    merged = TransferMoments.none(6)
    for part in (slice(0, 7), slice(7, 300), slice(300, 400)):
        merged = merged.merge(TransferMoments.of(phi[part], phi_next[part]))
    assert merged.count == 400
    np.testing.assert_allclose(merged.covariance, whole.covariance, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(merged.lagged, whole.lagged, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_solution_matches_dense_scipy(ridge: float):
    moments = TransferMoments.of(*pairs())
    covariance, lagged = slow_matrices(*pairs())
    (found,) = eigenfunctions(moments, [ridge], 3)
    vectors = scipy.linalg.eigh(lagged, covariance + ridge * np.eye(6))[1][:, -3:]
    angles = scipy.linalg.subspace_angles(found.vectors, vectors)
    assert angles.max() < 1e-6
    # eigenvalues within the span, without the ridge
    values = scipy.linalg.eigh(vectors.T @ lagged @ vectors, vectors.T @ covariance @ vectors)[0][::-1]
    np.testing.assert_allclose(found.values, values, rtol=1e-8)
    np.testing.assert_allclose(found.vectors.T @ covariance @ found.vectors, np.eye(3), atol=1e-8)


def test_joint_ridges_match_separate_solutions():
    moments = TransferMoments.of(*pairs())
    for together, ridge in zip(eigenfunctions(moments, [0.0, 0.1, 2.0], 2), [0.0, 0.1, 2.0], strict=True):
        (alone,) = eigenfunctions(moments, [ridge], 2)
        np.testing.assert_array_equal(together.vectors, alone.vectors)


def hermite(z: np.ndarray, degree: int) -> tuple[np.ndarray, list[int]]:
    """All normalised Hermite products of two columns up to a total degree, and their degrees."""
    powers = [p for p in itertools.product(range(degree + 1), repeat=2) if 0 < sum(p) <= degree]
    norm = [np.sqrt(scipy.special.factorial(i) * scipy.special.factorial(j)) for i, j in powers]
    columns = [
        scipy.special.eval_hermitenorm(i, z[:, 0]) * scipy.special.eval_hermitenorm(j, z[:, 1]) for i, j in powers
    ]
    return np.stack(columns, 1) / norm, [sum(p) for p in powers]


def test_hermite_functions_of_a_gaussian_world_have_powers_of_rho():
    rho, rng = 0.8, np.random.default_rng(0)
    z, noise = rng.standard_normal((2, 200_000, 2))
    phi, degrees = hermite(z, 3)
    phi_next, _ = hermite(rho * z + np.sqrt(1 - rho**2) * noise, 3)
    turn = np.linalg.qr(rng.standard_normal((9, 9)))[0]  # the solution is independent of the basis
    (found,) = eigenfunctions(TransferMoments.of(phi @ turn, phi_next @ turn), [0.0], 9)
    np.testing.assert_allclose(found.values, sorted((rho**d for d in degrees), reverse=True), atol=0.02)
    leading = turn @ found.vectors[:, :2]
    linear = [i for i, d in enumerate(degrees) if d == 1]
    assert np.linalg.norm(leading[linear], axis=0).min() > 0.999


def test_eigenvalues_are_correlations_for_any_pairs():
    rng = np.random.default_rng(1)
    phi, phi_next = rng.standard_cauchy((2, 50, 5))
    (found,) = eigenfunctions(TransferMoments.of(phi, phi_next + 7), [0.0], 5)
    assert np.abs(found.values).max() <= 1 + 1e-9
    assert found.values[0] > found.values[-1]


def test_number_of_functions_is_limited_by_the_rank_of_features():
    phi, phi_next = pairs(width=2)
    doubled = TransferMoments.of(np.tile(phi, 3), np.tile(phi_next, 3))
    (found,) = eigenfunctions(doubled, [1e-6], 5)
    (plain,) = eigenfunctions(TransferMoments.of(phi, phi_next), [0.0], 5)
    assert len(found.values) == 2
    np.testing.assert_allclose(found.values, plain.values, rtol=1e-4)


def test_rayleigh_trace_matches_its_definition():
    covariance, lagged = slow_matrices(*pairs())
    assert rayleigh_trace(covariance, lagged) == pytest.approx(np.trace(np.linalg.inv(covariance) @ lagged))
    mix = np.random.default_rng(0).standard_normal((6, 6))
    assert rayleigh_trace(mix.T @ covariance @ mix, mix.T @ lagged @ mix) == pytest.approx(
        rayleigh_trace(covariance, lagged)
    )
    assert rayleigh_trace(np.zeros((2, 2)), np.zeros((2, 2))) == -np.inf


def test_function_valid_on_one_block_only_is_not_selected():
    lucky = Candidate(PLAIN, 1e-9, np.array([[[100.0]], [[1.0]], [[1.0]]]), np.array([[[99.0]], [[0.1]], [[0.1]]]))
    honest = Candidate(PLAIN, 1e-3, np.array([[[1.0]]] * 3), np.array([[[0.8]]] * 3))
    assert rayleigh_trace(lucky.covariances.sum(0), lucky.lagged.sum(0)) > 0.95  # it wins on a single block
    assert best([lucky, honest], 1) is honest


def test_selection_rejects_overfitted_functions():
    rng = np.random.default_rng(0)
    z, noise = rng.standard_normal((2, 2000, 1))
    x, x_next = z, 0.7 * z + np.sqrt(1 - 0.49) * noise
    waves = rng.standard_normal((1, 300)) * 40

    def moments(rows: slice) -> TransferMoments:
        views = [np.concatenate([v[rows], np.cos(v[rows] @ waves) / 17], axis=1) for v in (x, x_next)]
        return TransferMoments.of(*views)

    fit, select = moments(slice(0, 400)), [moments(slice(400 + 400 * i, 800 + 400 * i)) for i in range(4)]
    spurious, sane = candidates(fit, select, PLAIN, [1e-9, 1.0], 1)
    greedy, _ = eigenfunctions(fit, [1e-9, 1.0], 1)
    assert greedy.values[0] > 0.9  # far above ρ on its own sample
    assert spurious.score(1) < 0.5
    assert best([spurious, sane], 1) is sane
    assert sane.score(1) == pytest.approx(0.7, abs=0.05)


def test_integer_weights_equal_repetitions():
    phi, phi_next = pairs()
    weights = np.random.default_rng(2).integers(0, 4, len(phi))
    weighted = TransferMoments.of(phi, phi_next, weights.astype(float))
    repeated = TransferMoments.of(np.repeat(phi, weights, axis=0), np.repeat(phi_next, weights, axis=0))
    assert weighted.count == repeated.count == weights.sum()
    for name in ("mean", "covariance", "lagged"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(TransferMoments.of(phi, phi_next).plus, TransferMoments.of(phi, phi_next, None).plus)
