"""Conversion of raw input to images, image reduction, and selection of rows."""

from __future__ import annotations

import numpy as np

from jepatlas.core.pictures import LARGEST, as_pictures, shrunk, spread_rows

RNG = np.random.default_rng(0)


def test_raw_input_of_every_form_becomes_images():
    grey = RNG.uniform(0, 255, (2, 5, 7))
    expected = np.repeat(grey.round().astype(np.uint8)[..., None], 3, axis=3)
    for form in (grey, grey[..., None], grey[:, None], np.repeat(grey[:, None], 3, axis=1), (grey / 255)):
        np.testing.assert_array_equal(as_pictures(form), expected)
    centred = as_pictures(grey - 300)
    assert centred is not None and (centred.min(), centred.max()) == (0, 255)
    for other in (grey[:, 0], grey[:, :2], grey[:, :, :, None, None], np.full((2, 5, 5), np.nan), grey.astype(str)):
        assert as_pictures(other) is None


def test_large_images_are_reduced_by_block_means():
    images = RNG.integers(0, 256, (2, 2 * LARGEST, 2 * LARGEST, 3), dtype=np.uint8)
    small = shrunk(images)
    assert small.shape == (2, LARGEST, LARGEST, 3)
    assert small[1, 3, 4, 2] == round(images[1, 6:8, 8:10, 2].mean())
    assert shrunk(small) is small


def test_selected_rows_cover_the_labels():
    labels = np.array(["b", "a"] * 30 + ["c"] * 20)
    rows = spread_rows(len(labels), 5, labels)
    assert set(labels[rows]) == {"a", "b", "c"} and len(set(rows.tolist())) == 5
    np.testing.assert_array_equal(spread_rows(3, 8), [0, 1, 2])
