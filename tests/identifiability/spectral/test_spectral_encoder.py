"""The encoder as a record: what it computes, and that a file gives the same one back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.identifiability import SpectralEncoder
from jepatlas.identifiability.spectral.features import Features, normal_quantiles


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


def test_apply_from_the_definition():
    given, x = encoder(), np.random.default_rng(1).standard_normal((9000, 3))  # more than one piece
    h = given.apply(x)
    assert h.shape == (9000, given.dim)
    for row in (0, 4095, 4096, 8999):
        phi = given.features(x[row : row + 1])[0]
        np.testing.assert_allclose(h[row], given.weight @ (phi - given.mean))


def test_no_rows_give_no_latents():
    assert encoder().apply(np.zeros((0, 3))).shape == (0, 4)


@pytest.mark.parametrize("scored", [False, True])
def test_save_and_load(tmp_path: Path, *, scored: bool):
    given, x = encoder(scored=scored), np.random.default_rng(1).standard_normal((50, 3))
    given.save(tmp_path / "encoder.safetensors")
    loaded = SpectralEncoder.load(tmp_path / "encoder.safetensors")
    np.testing.assert_array_equal(loaded.apply(x), given.apply(x))
    np.testing.assert_array_equal(loaded.rates, given.rates)
    assert loaded.features.quadratic == 0.1
    assert (loaded.features.quantiles is not None) is scored


def test_other_files_are_refused(tmp_path: Path):
    path = tmp_path / "other.safetensors"
    with pytest.raises(InputError, match="is not a saved SpectralEncoder"):
        SpectralEncoder.load(path)
    path.write_bytes(b"not a tensor")
    with pytest.raises(InputError, match="is not a saved SpectralEncoder"):
        SpectralEncoder.load(path)
    safetensors.numpy.save_file({"weight": np.zeros((2, 2))}, path)
    with pytest.raises(InputError, match="is not a saved SpectralEncoder"):
        SpectralEncoder.load(path)


@pytest.mark.parametrize(
    "name", ["weight", "mean", "rates", "frequencies", "whitening", "x_mean", "quadratic", "quantiles"]
)
def test_arrays_that_do_not_fit_together_are_refused(name: str, tmp_path: Path):
    path = tmp_path / "encoder.safetensors"
    encoder().save(path)
    arrays = safetensors.numpy.load_file(path)
    safetensors.numpy.save_file(arrays | {name: np.zeros((7, 7))}, path)
    with pytest.raises(InputError, match="is not a saved SpectralEncoder"):
        SpectralEncoder.load(path)
