"""Networks of transformers, and those that look like timm's, give one latent for each image."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from jepatlas.base.errors import InputError
from jepatlas.encoders import pooled_encoder


def pictures(size: int = 16) -> Tensor:
    return torch.rand(3, 3, size, size, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def transformers_vit() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=4
    )
    torch.manual_seed(0)
    return transformers.ViTModel(config).eval()


@pytest.mark.parametrize(("name", "leading"), [("Dinov2WithRegisters", 3), ("DeiT", 2)])
def test_a_mean_is_of_patches_alone(name: str, leading: int):
    """Registers and the token of distillation are none."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 16, "patch_size": 4}
    more = {"num_register_tokens": 2} if leading == 3 else {"intermediate_size": 32}
    model = getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**sizes, **more)).eval()
    tokens = model(pixel_values=2 * pictures() - 1).last_hidden_state
    assert tokens.shape[1] == leading + 16
    torch.testing.assert_close(pooled_encoder(model, "mean")(pictures()), tokens[:, leading:].mean(1))


def test_a_transformers_model(transformers_vit: nn.Module):
    x = pictures()
    output = transformers_vit(pixel_values=2 * x - 1, output_hidden_states=True)
    tokens = output.last_hidden_state
    for encoder, expected in (
        (pooled_encoder(transformers_vit), tokens[:, 0]),
        (pooled_encoder(transformers_vit, "mean"), tokens[:, 1:].mean(1)),
    ):
        torch.testing.assert_close(encoder(x), expected)
        layers = encoder.layers(x)
        assert len(layers) == 3 and torch.equal(layers[-1], encoder(x))
    torch.testing.assert_close(pooled_encoder(transformers_vit).layers(x)[0], output.hidden_states[1][:, 0])
    assert pooled_encoder(transformers_vit)(pictures(24)).shape == (3, 16)


def test_what_is_beside_the_tokens_is_not_trained(transformers_vit: nn.Module):
    encoder = pooled_encoder(transformers_vit)
    encoder.zero_grad()
    encoder(pictures()).square().sum().backward()
    trained = {name for name, p in encoder.named_parameters() if p.requires_grad}
    assert trained == {name for name, p in encoder.named_parameters() if p.grad is not None}
    assert not any("pooler" in name for name in trained) and len(trained) > 40


class TokensLikeTimm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Conv2d(3, 8, 4, 4), nn.Linear(8, 10)

    def forward_features(self, x: Tensor) -> Tensor:
        tokens = self.embed(x).flatten(2).transpose(1, 2)
        return torch.cat([tokens.max(1, keepdim=True).values, tokens], 1)


class MapLikeTimm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 4, 4)

    def forward_features(self, x: Tensor) -> Tensor:
        return self.embed(x)


def test_models_like_those_of_timm():
    x = pictures()
    tokens, features = TokensLikeTimm(), MapLikeTimm()
    normal = (x - torch.tensor([0.4, 0.5, 0.6])[:, None, None]) / 0.25
    encoder = pooled_encoder(tokens, mean=(0.4, 0.5, 0.6), std=(0.25, 0.25, 0.25))
    torch.testing.assert_close(encoder(x), tokens.embed(normal).flatten(2).max(2).values)
    torch.testing.assert_close(pooled_encoder(features)(x), features.embed(2 * x - 1).mean((2, 3)))
    assert not tokens.head.weight.requires_grad and tokens.embed.weight.requires_grad
    x_bytes = (x * 255).to(torch.uint8)
    torch.testing.assert_close(encoder(x_bytes), encoder(x_bytes.float() / 255))
    with pytest.raises(InputError, match="does not give the outputs of its layers"):
        encoder.layers(x)


def test_others_are_refused():
    with pytest.raises(InputError, match="Linear is neither"):
        pooled_encoder(nn.Linear(2, 2))
    with pytest.raises(InputError, match="'cls' or 'mean', but 'max'"):
        pooled_encoder(MapLikeTimm(), "max")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="positive deviation"):
        pooled_encoder(MapLikeTimm(), std=(1.0, 0.0, 1.0))
    flat = MapLikeTimm()
    flat.forward_features = lambda x: x.flatten(1)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(InputError, match=r"gave \(3, 768\)"):
        pooled_encoder(flat)(pictures())
