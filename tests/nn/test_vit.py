"""Vision transformer against its definition token by token; masked and dropped patches, and operation counts."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.patches import patches
from jepatlas.nn import ViT, ViTConfig
from jepatlas.nn.transformer import sincos_positions
from jepatlas.training.flops import counted_flops

TINY = ViTConfig(patch=4, width=16, depth=2, heads=2, mlp_ratio=2.0)


def pictures(count: int = 3, size: tuple[int, int] = (16, 12)) -> Tensor:
    return torch.rand(count, 3, *size, generator=torch.Generator().manual_seed(0))


def vit(pool: Any = "cls", size: tuple[int, int] = (16, 12)) -> ViT:
    torch.manual_seed(0)
    network = ViTConfig(4, 16, 2, 2, 2.0, pool).build((3, *size), mean=(0.5, 0.4, 0.2), std=(0.5, 0.2, 0.3))
    with torch.no_grad():  # non-trivial norms and biases
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return network


def position(row: float, column: float, width: int) -> np.ndarray:
    quarter = width // 4
    found = []
    for place in (row, column):
        for turn in (math.sin, math.cos):
            found += [turn(place / 10000 ** (i / quarter)) for i in range(quarter)]
    return np.array(found)


def norm(x: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    centred = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return centred * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def linear(x: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def attention(x: np.ndarray, weights: dict[str, np.ndarray], name: str, heads: int) -> np.ndarray:
    size = x.shape[1] // heads
    q, k, v = np.split(linear(x, weights, f"{name}.qkv"), 3, axis=1)
    out = np.zeros_like(x)
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        for i in range(len(x)):
            scores = np.exp([q[i, part] @ k[j, part] / math.sqrt(size) for j in range(len(x))])
            out[i, part] = sum(s * v[j, part] for j, s in enumerate(scores / scores.sum()))
    return linear(out, weights, f"{name}.out")


def reference(network: ViT, image: np.ndarray, kept: list[int] | None = None) -> list[np.ndarray]:
    """Tokens of one image after each block and after the last norm."""
    weights = {name: value.double().numpy() for name, value in network.state_dict().items()}
    rows, columns = image.shape[1] // 4, image.shape[2] // 4
    tokens = [weights["class_token"]]
    for i in range(rows * columns) if kept is None else kept:
        r, c = divmod(i, columns)
        pixels = image[:, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4] - np.array([0.5, 0.4, 0.2])[:, None, None]
        pixels = (pixels / np.array([0.5, 0.2, 0.3])[:, None, None]).reshape(-1)
        tokens.append(linear(pixels, weights, "embed") + position(r, c, 16))
    x, found = np.stack(tokens), []
    gelu = np.vectorize(lambda value: value * (1 + math.erf(value / math.sqrt(2))) / 2)
    for block in (f"body.blocks.{i}" for i in range(2)):
        x = x + attention(norm(x, weights, f"{block}.norms.0"), weights, block, 2)
        hidden = gelu(linear(norm(x, weights, f"{block}.norms.1"), weights, f"{block}.mlp.0"))
        x = x + linear(hidden, weights, f"{block}.mlp.2")
        found.append(x)
    return [*found, norm(x, weights, "body.norm")]


def test_tokens_match_the_definition():
    network, x = vit(), pictures()
    keep = torch.tensor([[0, 5, 11], [1, 2, 3], [4, 7, 10]])
    whole, part = network.tokens(x).detach().numpy(), network.tokens(x, keep=keep).detach().numpy()
    for i, image in enumerate(x.double().numpy()):
        np.testing.assert_allclose(whole[i], reference(network, image)[-1], atol=2e-5)
        np.testing.assert_allclose(part[i], reference(network, image, keep[i].tolist())[-1], atol=2e-5)


def test_pixel_scale_is_saved_with_the_weights():
    network, x = vit(), pictures()
    other = ViTConfig(4, 16, 2, 2, 2.0).build((3, 16, 12))
    other.load_state_dict(network.state_dict())
    assert torch.equal(other(x), network(x))
    assert torch.equal(other((255 * x).byte()), other((255 * x).byte() / 255))  # bytes, or floats in [0, 1]
    plain = TINY.build((3, 16, 12))
    assert torch.equal(plain.mean, torch.full((3,), 0.5)) and torch.equal(plain.std, plain.mean)  # −1 … 1
    with pytest.raises(InputError, match=r"mean|std"):
        TINY.build((3, 16, 12), (0.5, 0.5, 0.5), (0.1, 0.0, 0.1))


@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_latent_is_the_class_token_or_the_patch_mean(pool: str):
    network, x = vit(pool), pictures()
    layers = network.layers(x)
    for i, image in enumerate(x.double().numpy()):
        blocks = reference(network, image)
        expected = [tokens[0] if pool == "cls" else tokens[1:].mean(0) for tokens in (blocks[0], blocks[-1])]
        for layer, latent in zip(layers, expected, strict=True):
            np.testing.assert_allclose(layer[i].detach().numpy(), latent, atol=2e-5)
    assert torch.equal(network(x), layers[-1])


@pytest.mark.parametrize(
    ("config", "published"),
    [(ViTConfig.s16(), 21_665_664), (ViTConfig.b16(), 85_798_656), (ViTConfig.l16(), 303_301_632)],
)
def test_parameter_counts_match_published_models(config: ViTConfig, published: int):
    """Published networks learn their 197 position embeddings, which are fixed here."""
    with torch.device("meta"):
        network = config.build((3, 224, 224))
    assert network.grid == (14, 14)
    assert sum(p.numel() for p in network.parameters()) + 197 * config.width == published


def test_dropped_patches_cost_nothing():
    network, x = ViTConfig().build((3, 64, 64)), torch.rand(2, 3, 64, 64)

    def flops(kept: int) -> int:
        with counted_flops() as counter:
            network.tokens(x, keep=torch.arange(kept).expand(2, -1))
        return counter.get_total_flops()

    assert flops(16) < 0.27 * flops(64)
    assert flops(32) < 0.52 * flops(64)


def test_masked_patch_hides_pixels_but_keeps_its_position():
    network, x = vit(), pictures(1)
    token = torch.randn(16)
    masked = torch.zeros(1, 12, dtype=torch.bool)
    masked[0, [2, 7]] = True
    changed = x.clone()
    changed[:, :, :4, 8:12] = 0.3  # patch 2
    with_token = network.tokens(x, masked=masked, mask_token=token)
    assert torch.equal(with_token, network.tokens(changed, masked=masked, mask_token=token))
    assert not torch.allclose(with_token, network.tokens(x))
    # two masked patches differ only by their position embeddings
    assert not torch.allclose(with_token[0, 1 + 2], with_token[0, 1 + 7])
    part = network.tokens(x, torch.tensor([[2, 3]]), masked, token)
    assert torch.equal(part, network.tokens(changed, torch.tensor([[2, 3]]), masked, token))


def test_positions_are_interpolated_to_other_grids():
    native, finer = sincos_positions((4, 4), 16), sincos_positions((12, 12), 16, (4, 4))
    # the middle of three finer patches is at the native position
    torch.testing.assert_close(finer.view(12, 12, 16)[1::3, 1::3].flatten(0, 1), native)
    torch.testing.assert_close(sincos_positions((2, 2), 16, (4, 4))[3].double(), torch.tensor(position(2.5, 2.5, 16)))


def test_image_sizes_divisible_by_the_patch_are_accepted():
    network = vit()
    assert network(pictures(2, (8, 8))).shape == (2, 16)
    with pytest.raises(InputError, match=r"4.*4"):
        network(pictures(2, (10, 8)))


def test_bytes_and_floats_give_the_same_latents():
    network = vit()
    x = (pictures() * 255).to(torch.uint8)
    assert torch.equal(network(x), network(x.float() / 255))
    assert network.double()(x).dtype == torch.float64


def test_patches_are_in_row_major_order():
    x = torch.arange(2 * 3 * 4 * 6).reshape(2, 3, 4, 6)
    cut = patches(x, 2)
    assert cut.shape == (2, 6, 12)
    assert torch.equal(cut[1, 4].reshape(3, 2, 2), x[1, :, 2:4, 2:4])


def test_all_weights_have_gradients_with_either_pooling():
    for pool in ("cls", "mean"):
        network = vit(pool)
        (network(pictures()) * torch.randn(3, 16)).sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"heads": 5}, "heads 5"),
        ({"width": 6, "heads": 3}, "width is 6"),
        ({"depth": 0}, "depth 0"),
        ({"patch": 0}, "patch.*0"),
        ({"mlp_ratio": 0.0}, "ratio"),
        ({"pool": "max"}, "max"),
    ],
)
def test_invalid_settings_are_rejected(config: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        ViTConfig(**config)


def test_inputs_that_are_not_images_are_rejected():
    with pytest.raises(InputError, match="channels, height, width"):
        TINY.build((16, 16))
    with pytest.raises(InputError, match="15 × 16"):
        TINY.build((3, 15, 16))
    vit = TINY.build((3, 16, 16))
    for shape in ((2, 1, 16, 16), (3, 16, 16)):
        with pytest.raises(InputError, match=re.escape(str(shape))):
            vit(torch.zeros(shape))
