"""Pixel mean and standard deviation against numpy over all pixels."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.data.images import pixel_scale


@pytest.mark.parametrize("shape", [(40, 6, 5, 3), (40, 6, 5)])
def test_mean_and_standard_deviation_per_channel(shape: tuple[int, ...]):
    images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    images[..., 0] //= 3
    rows = np.array([1, 5, 7, 30])
    pixels = images[rows] / 255 if len(shape) == 4 else np.repeat(images[rows][..., None], 3, 3) / 255
    mean, std = pixel_scale(images, rows)
    np.testing.assert_allclose(mean, pixels.mean((0, 1, 2)), atol=1e-6)
    np.testing.assert_allclose(std, pixels.std((0, 1, 2)), atol=1e-6)


def test_many_images_are_subsampled_evenly():
    images = np.zeros((5000, 1, 1, 3), np.uint8)
    images[:2500] = 255
    mean, std = pixel_scale(images, np.arange(5000))
    np.testing.assert_allclose([*mean, *std], 0.5, atol=1e-3)


def test_constant_images_have_a_finite_scale():
    mean, std = pixel_scale(np.full((3, 2, 2, 3), 102, np.uint8), np.arange(3))
    assert mean == (0.4, 0.4, 0.4) and min(std) == pytest.approx(1 / 255, abs=1e-6)
