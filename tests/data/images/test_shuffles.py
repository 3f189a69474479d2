from __future__ import annotations

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.data.images import Shuffle

IMAGES = np.random.default_rng(0).permuted(np.tile(np.arange(96, dtype=np.uint8), (5, 1)), axis=1)
IMAGES = np.stack([IMAGES, 255 - IMAGES, IMAGES // 2], 2).reshape(5, 8, 12, 3)  # all pixels of an image differ
NUMBERS = np.array([7, 3, 100, 0, 4])


def patches(image: np.ndarray, side: int) -> list[bytes]:
    rows, columns = image.shape[0] // side, image.shape[1] // side
    return [
        image[r * side : (r + 1) * side, c * side : (c + 1) * side].tobytes()
        for r in range(rows)
        for c in range(columns)
    ]


@pytest.mark.parametrize("per", ["image", "data set"])
@pytest.mark.parametrize("side", [1, 2])
def test_patches_are_permuted_and_otherwise_unchanged(side: int, per):
    shuffled = Shuffle(side, per)(IMAGES, NUMBERS)
    assert shuffled.shape == IMAGES.shape and shuffled.dtype == np.uint8
    orders = []
    for before, after in zip(IMAGES, shuffled, strict=True):
        given, found = patches(before, side), patches(after, side)
        assert sorted(given) == sorted(found) and given != found
        orders.append([given.index(patch) for patch in found])
    assert len({tuple(order) for order in orders}) == (1 if per == "data set" else len(IMAGES))


@pytest.mark.parametrize("per", ["image", "data set"])
def test_order_depends_only_on_seed_and_image_index(per):
    whole = Shuffle(4, per, seed=1)(IMAGES, NUMBERS)
    assert np.array_equal(whole[3:], Shuffle(4, per, seed=1)(IMAGES[3:], NUMBERS[3:]))
    assert np.array_equal(whole[..., 0], Shuffle(4, per, seed=1)(IMAGES[..., 0], NUMBERS))
    assert not np.array_equal(whole, Shuffle(4, per, seed=2)(IMAGES, NUMBERS))


def test_patch_size_must_divide_the_image():
    with pytest.raises(InputError, match=r"5.*8.*12"):
        Shuffle(5)(IMAGES, NUMBERS)
    with pytest.raises(InputError, match="patch is 0"):
        Shuffle(0)
