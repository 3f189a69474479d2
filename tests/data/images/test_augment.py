"""The compiled pass against kornia's functions and classes, and random draws against their distributions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import kornia.augmentation
import numpy as np
import pytest
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.data.images import PIPELINES, Drawn, Pipeline, augmented, draw, pipeline_named
from jepatlas.data.images.augment import augment, blur_weights

SHAPE = (40, 56)
NOTHING = Pipeline(scale=None, flip=0)


def photos(count: int, shape: tuple[int, int] = SHAPE) -> Tensor:
    """Noise; some rows hold edge cases of hue and saturation: grey, black, white, pure colours."""
    images = np.random.default_rng(0).integers(0, 256, (count, *shape, 3), dtype=np.uint8)
    images[0] = images[0, ..., :1]
    images[1] = np.array([255, 0, 0])
    images[2, :20], images[2, 20:] = 0, 255
    return torch.from_numpy(images)


def drawn(pipeline: Pipeline, count: int = 8, shape: tuple[int, int] = SHAPE) -> Drawn:
    return draw(pipeline, count, shape, np.random.default_rng(1))


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("size", [(32, 32), (64, 48)])
def test_compiled_pass_matches_kornia_functions(name: str, size: tuple[int, int]):
    images, how = photos(40), drawn(PIPELINES[name], 40)
    compiled, plain = augment(images, how, size), augment(images, how, size, compiled=False)
    assert compiled.shape == (40, 3, *size) and compiled.dtype == torch.float32
    assert compiled.min() >= 0 and compiled.max() <= 1 + 1e-6
    close = (compiled - plain).abs() < 2e-5
    if name != "B":
        assert close.all()
    else:  # values within rounding of one half may be inverted by one of them only
        assert close.float().mean() > 0.9999


def test_images_are_unchanged_without_augmentation():
    images = photos(4)
    torch.testing.assert_close(augment(images, drawn(NOTHING, 4), SHAPE), images.permute(0, 3, 1, 2).float() / 255)


def by_class(module: Any, images: Tensor) -> Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return module(images.permute(0, 3, 1, 2).float() / 255)


def test_jitter_matches_kornia_class():
    images = photos(8)
    module = kornia.augmentation.ColorJitter(0.4, 0.4, 0.4, 0.1, p=1.0)
    expected = by_class(module, images)
    names = ("brightness_factor", "contrast_factor", "saturation_factor", "hue_factor")
    factors = np.stack([module._params[name].numpy() for name in names], 1).astype(np.float32)
    how = replace(drawn(NOTHING), orders=np.tile(module._params["order"].numpy(), (8, 1)), factors=factors)
    torch.testing.assert_close(augment(images, how, SHAPE), expected, rtol=0, atol=2e-5)


def test_crop_matches_kornia_class():
    images = photos(8)
    module = kornia.augmentation.RandomResizedCrop((32, 24), (0.2, 1.0), cropping_mode="slice", align_corners=False)
    expected = by_class(module, images)
    corners = module._params["src"].long()  # (x, y) from the top left, inclusive
    left, top, right, bottom = corners[:, 0, 0], corners[:, 0, 1], corners[:, 2, 0], corners[:, 2, 1]
    boxes = torch.stack([top, left, bottom - top + 1, right - left + 1], 1).numpy()
    torch.testing.assert_close(
        augment(images, replace(drawn(NOTHING), boxes=boxes), (32, 24)), expected, rtol=0, atol=1e-5
    )


def test_blur_matches_kornia_class():
    images = photos(8)
    module = kornia.augmentation.RandomGaussianBlur((5, 5), (0.1, 2.0), p=1.0)
    expected = by_class(module, images)
    how = replace(drawn(NOTHING), sigmas=module._params["sigma"].numpy().astype(np.float32))
    torch.testing.assert_close(augment(images, how, SHAPE), expected, rtol=0, atol=1e-5)  # 40 pixels: 5 taps


def test_blur_weights_are_a_normal_density():
    weights = blur_weights(np.array([0.0, 0.5, 2.0], np.float32), 7)
    assert not weights[0].any()
    for row, sigma in ((1, 0.5), (2, 2.0)):
        density = np.array([np.exp(-(j**2) / (2 * sigma**2)) for j in range(-3, 4)])
        np.testing.assert_allclose(weights[row], density / density.sum(), rtol=1e-6)


@pytest.mark.parametrize("compiled", [True, False])
def test_greyscale_solarisation_and_flip(compiled: bool):
    images, yes = photos(8), np.ones(8, bool)
    x = augment(images, drawn(NOTHING), SHAPE)
    made = {
        name: augment(images, replace(drawn(NOTHING), **{name: yes}), SHAPE, compiled=compiled)
        for name in ("flips", "greys", "solarised")
    }
    torch.testing.assert_close(made["flips"], x.flip(3))
    torch.testing.assert_close(made["solarised"], torch.where(x < 0.5, x, 1 - x))
    grey = 0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2]
    torch.testing.assert_close(made["greys"], grey[:, None].expand_as(x), rtol=0, atol=1e-6)


def test_draws_follow_their_probabilities():
    how = drawn(PIPELINES["B"], 20_000, (64, 64))
    jittered = how.orders[:, 0] >= 0
    for found, expected in [
        (how.flips, 0.5),
        (jittered, 0.8),
        (how.greys, 0.2),
        (how.sigmas > 0, 0.5),
        (how.solarised, 0.2),
    ]:
        assert abs(found.mean() - expected) < 0.02
    assert all((np.sort(order) == np.arange(4)).all() for order in how.orders[jittered][:50])
    assert how.factors[:, :3].min() > 0.6 and how.factors[:, :3].max() < 1.4 and abs(how.factors[:, 3]).max() < 0.1
    assert how.factors[:, :3].min() < 0.61 and abs(how.factors[:, 3]).max() > 0.099
    first = how.orders[jittered][:, 0]
    assert all(abs((first == which).mean() - 0.25) < 0.02 for which in range(4))


@pytest.mark.parametrize("shape", [(64, 64), (32, 112)])
def test_boxes_lie_within_the_image_and_have_the_requested_area(shape: tuple[int, int]):
    top, left, height, width = drawn(Pipeline(scale=(0.2, 0.6)), 20_000, shape).boxes.T
    assert top.min() == left.min() == 0 and (top + height).max() == shape[0] and (left + width).max() == shape[1]
    area = height * width / (shape[0] * shape[1])
    assert 0.18 < area.min() < 0.22 and 0.58 < area.max() < 0.63 and abs(area.mean() - 0.4) < 0.01
    stretch = (width / shape[1]) / (height / shape[0])  # full width except for the aspect ratio
    assert 0.68 < stretch.min() < 0.78 and 1.3 < stretch.max() < 1.46 and abs(np.median(stretch) - 1) < 0.03


def test_views_depend_only_on_the_image_index():
    images = photos(6).numpy()
    whole = augmented(images, PIPELINES["B"], (16, 16), np.arange(6), seed=1, name="view")
    parts = [
        augmented(images[i : i + 2], PIPELINES["B"], (16, 16), np.arange(i, i + 2), seed=1, name="view")
        for i in (0, 2, 4)
    ]
    assert torch.equal(whole, torch.cat(parts))
    assert not torch.equal(whole, augmented(images, PIPELINES["B"], (16, 16), np.arange(6), seed=1, name="other"))
    grey = augmented(images[..., 0], PIPELINES["plain"], (16, 16), np.arange(6), seed=1, name="view")
    assert torch.equal(grey[:, 0], grey[:, 2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": (0.5, 0.2)}, r"0.*1,.*\(0.5,.*0.2\)"),
        ({"ratio": 0.5}, "ratio.*1"),
        ({"flip": 1.5}, "flip.*0.*1"),
        ({"hue": 0.6}, "hue.*0.*0.5"),
    ],
)
def test_impossible_pipelines_are_rejected(options: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        Pipeline(**options)


def test_misspelt_pipelines_and_invalid_images_are_rejected():
    with pytest.raises(InputError, match=r"'plane'.* 'plain'"):
        pipeline_named("plane")
    with pytest.raises(InputError, match=r"float64 of shape \(2, 4, 4, 3\)"):
        augmented(np.zeros((2, 4, 4, 3)), PIPELINES["A"], (4, 4), np.arange(2), seed=0, name="view")
