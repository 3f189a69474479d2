"""The scale of pixels, against numpy over all of them."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.data.images import pixel_scale


@pytest.mark.parametrize("shape", [(40, 6, 5, 3), (40, 6, 5)])
def test_it_is_the_mean_and_the_deviation_of_every_channel(shape: tuple[int, ...]):
    images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    images[..., 0] //= 3
    rows = np.array([1, 5, 7, 30])
    pixels = images[rows] / 255 if len(shape) == 4 else np.repeat(images[rows][..., None], 3, 3) / 255
    mean, std = pixel_scale(images, rows)
    np.testing.assert_allclose(mean, pixels.mean((0, 1, 2)), atol=1e-6)
    np.testing.assert_allclose(std, pixels.std((0, 1, 2)), atol=1e-6)


def test_of_many_images_an_even_choice_is_taken():
    images = np.zeros((5000, 1, 1, 3), np.uint8)
    images[:2500] = 255
    mean, std = pixel_scale(images, np.arange(5000))
    np.testing.assert_allclose([*mean, *std], 0.5, atol=1e-3)


def test_images_without_contrast_have_a_scale():
    mean, std = pixel_scale(np.full((3, 2, 2, 3), 102, np.uint8), np.arange(3))
    assert mean == (0.4, 0.4, 0.4) and min(std) == pytest.approx(1 / 255, abs=1e-6)
