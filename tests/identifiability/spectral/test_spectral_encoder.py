"""Spectral encoder: features against their definitions, saving, and rejection of damaged files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.moments import Moments
from jepatlas.identifiability import SpectralEncoder
from jepatlas.identifiability.spectral.spectral_encoder import (
    Features,
    normal_quantiles,
    principal_whitener,
    random_frequencies,
)


def encoder(*, scored: bool = True) -> SpectralEncoder:
    rng = np.random.default_rng(0)
    whitening = LinearMap(rng.standard_normal((2, 3)), rng.standard_normal(3), np.zeros(2))
    features = Features(
        whitening,
        rng.standard_normal((5, 2)),
        quadratic=0.1,
        quantiles=normal_quantiles(rng.standard_normal((99, 2))) if scored else None,
    )
    return SpectralEncoder(
        features, rng.standard_normal((4, 15)), rng.standard_normal(15), np.array([0.9, 0.8, 0.7, 0.6])
    )


def test_encoder_matches_the_definition():
    given, x = encoder(), np.random.default_rng(1).standard_normal((9000, 3))  # more than one chunk
    h = given.apply(x)
    assert h.shape == (9000, given.dim)
    for row in (0, 4095, 4096, 8999):
        phi = given.features(x[row : row + 1])[0]
        np.testing.assert_allclose(h[row], given.weight @ (phi - given.mean))


def test_empty_input_gives_empty_latents():
    assert encoder().apply(np.zeros((0, 3))).shape == (0, 4)


@pytest.mark.parametrize("scored", [False, True])
def test_save_and_load_round_trip(tmp_path: Path, *, scored: bool):
    given, x = encoder(scored=scored), np.random.default_rng(1).standard_normal((50, 3))
    given.save(tmp_path / "encoder.safetensors")
    loaded = SpectralEncoder.load(tmp_path / "encoder.safetensors")
    np.testing.assert_array_equal(loaded.apply(x), given.apply(x))
    np.testing.assert_array_equal(loaded.rates, given.rates)
    assert loaded.features.quadratic == 0.1
    assert (loaded.features.quantiles is not None) is scored


def test_other_files_are_rejected(tmp_path: Path):
    path = tmp_path / "other.safetensors"
    with pytest.raises(InputError, match="SpectralEncoder"):
        SpectralEncoder.load(path)
    path.write_bytes(b"not a tensor")
    with pytest.raises(InputError, match="SpectralEncoder"):
        SpectralEncoder.load(path)
    safetensors.numpy.save_file({"weight": np.zeros((2, 2))}, path)
    with pytest.raises(InputError, match="SpectralEncoder"):
        SpectralEncoder.load(path)


@pytest.mark.parametrize(
    "name", ["weight", "mean", "rates", "frequencies", "whitening", "x_mean", "quadratic", "quantiles"]
)
def test_inconsistent_arrays_are_rejected(name: str, tmp_path: Path):
    path = tmp_path / "encoder.safetensors"
    encoder().save(path)
    arrays = safetensors.numpy.load_file(path)
    safetensors.numpy.save_file(arrays | {name: np.zeros((7, 7))}, path)
    with pytest.raises(InputError, match="SpectralEncoder"):
        SpectralEncoder.load(path)


def plain(dim: int) -> LinearMap:
    return LinearMap(np.eye(dim), np.zeros(dim), np.zeros(dim))


def whitened(x: np.ndarray, components: int | None = None) -> np.ndarray:
    return principal_whitener(Moments.of(torch.from_numpy(x)), components).apply(x)


def test_features_match_the_definition():
    rng = np.random.default_rng(0)
    frequencies, x = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    whitening = LinearMap(2 * np.eye(3), np.array([1.0, 2.0, 3.0]), np.zeros(3))
    given = Features(whitening, frequencies, quadratic=0.5)(x)
    for row, phi in zip(x, given, strict=True):
        u = 2 * (row - [1, 2, 3])
        products = [0.5 * u[i] * u[j] for i in range(3) for j in range(i + 1, 3)]
        squares = [0.5 * (u[i] ** 2 - 1) / 2**0.5 for i in range(3)]
        waves = [f(w @ u) / 2 for f in (np.cos, np.sin) for w in frequencies]
        np.testing.assert_allclose(phi, [*u, *products, *squares, *waves])


@pytest.mark.parametrize(("quadratic", "count"), [(0.0, 3 + 8), (0.1, 3 + 6 + 8)])
def test_feature_count(quadratic: float, count: int):
    features = Features(plain(3), np.ones((4, 3)), quadratic)
    assert features.count == features(np.zeros((2, 3))).shape[1] == count


def test_fourier_features_approximate_the_gaussian_kernel():
    rng = np.random.default_rng(0)
    u, length_scale = rng.standard_normal((20, 3)), 1.5
    phi = Features(plain(3), random_frequencies(3000, 3, rng) / length_scale)(u)[:, 3:]
    distances = np.square(u[:, None] - u[None]).sum(-1)
    np.testing.assert_allclose(phi @ phi.T, np.exp(-distances / (2 * length_scale**2)), atol=0.05)


def test_frequencies_are_gaussian_and_orthogonal_in_blocks():
    frequencies = random_frequencies(1000, 4, np.random.default_rng(0))
    assert frequencies.shape == (1000, 4)
    np.testing.assert_allclose(np.cov(frequencies.T), np.eye(4), atol=0.15)
    block = frequencies[4:8] @ frequencies[4:8].T
    np.testing.assert_allclose(block - np.diag(np.diag(block)), 0, atol=1e-10)
    assert np.square(frequencies).sum(1).mean() == pytest.approx(4, rel=0.1)
    assert np.square(frequencies).sum(1).std() == pytest.approx(8**0.5, rel=0.15)  # χ² with 4 degrees of freedom


def test_whitening_gives_identity_covariance():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 3)) * 100 + 1e4
    np.testing.assert_allclose(np.cov(whitened(x).T), np.eye(3), atol=1e-8)
    np.testing.assert_allclose(whitened(x).mean(0), 0, atol=1e-8)


def test_constant_and_repeated_columns_are_dropped():
    x = np.random.default_rng(0).standard_normal((500, 2))
    padded = np.c_[x, np.full(500, 1e3), x[:, 0]]
    assert whitened(padded).shape[1] == 2
    # the same two directions, up to a rotation
    both = np.concatenate([whitened(x), whitened(padded)], axis=1)
    assert np.linalg.matrix_rank(both - both.mean(0), tol=1e-4) == 2


def test_leading_components_are_kept():
    x = np.random.default_rng(0).standard_normal((500, 3)) * [1, 10, 0.1]
    kept = whitened(x, components=1)
    assert kept.shape == (500, 1)
    assert abs(np.corrcoef(kept[:, 0], x[:, 1])[0, 1]) > 0.99


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_constant_rows_are_rejected(value: float):
    with pytest.raises(InputError, match=r"\bx\b.* constant"):
        whitened(np.full((300, 2), value))


def scores(u: np.ndarray, like: np.ndarray) -> np.ndarray:
    return Features(plain(u.shape[1]), np.zeros((0, u.shape[1])), quantiles=normal_quantiles(like))(u)


def test_normal_scores_invert_columnwise_warps():
    z = np.random.default_rng(0).standard_normal((50_000, 3))
    warped = np.stack([np.exp(z[:, 0]), z[:, 1] ** 3, np.tanh(z[:, 2])], axis=1)
    given = scores(warped, warped)
    inside = np.abs(z).max(1) < 3
    np.testing.assert_allclose(given[inside], z[inside], atol=0.15)
    for column in range(3):  # increasing, beyond the knots too
        assert np.diff(given[np.argsort(z[:, column]), column]).min() >= 0
    far = scores(np.array([[1e3, 1e3, 1.0], [0.0, -1e3, -1.0]]), warped)
    assert np.isfinite(far).all() and (far[0] > 3).all() and (far[1] < -3).all()


def test_normal_scores_of_few_distinct_values_are_finite_and_increasing():
    u = np.random.default_rng(0).integers(0, 3, (1000, 1)).astype(float)
    given = scores(np.array([[0.0], [1.0], [2.0]]), u)[:, 0]
    assert given[0] < given[1] < given[2]
    np.testing.assert_allclose(given[1], 0, atol=0.1)


def test_wrong_width_is_rejected():
    with pytest.raises(InputError, match=r"\b3\b"):
        Features(plain(3), np.zeros((0, 3)))(np.zeros((5, 2)))
