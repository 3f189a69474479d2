"""Models of transformers, and models with timm's interface, give one latent per image."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.nn import pooled_encoder


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


SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 4,
}
MLP: dict[str, Any] = SIZES | {"intermediate_size": 32}
STAGES: dict[str, Any] = {
    "embed_dim": 8,
    "depths": [1, 1],
    "num_heads": [2, 2],
    "window_size": 2,
    "image_size": 16,
    "patch_size": 2,
}
LEADING: list[tuple[str, dict[str, Any], int]] = [
    ("ViT", MLP, 1),
    ("DeiT", MLP, 2),
    ("Dinov2", SIZES, 1),
    ("Dinov2WithRegisters", SIZES | {"num_register_tokens": 2}, 3),
    ("Dinov2WithRegisters", SIZES | {"num_register_tokens": 0}, 1),
    ("DINOv3ViT", MLP | {"num_register_tokens": 2}, 3),
    ("Beit", MLP | {"use_relative_position_bias": True}, 1),
    ("ViTMAE", MLP | {"mask_ratio": 0.0}, 1),
    ("CLIPVision", MLP, 1),
    ("Pixio", MLP | {"n_cls_tokens": 3}, 3),
    ("Radio", MLP | {"num_registers": 2, "num_cls_tokens": 1, "summary_idxs": [0]}, 3),
    ("SiglipVision", MLP, 0),
    ("IJepa", MLP, 0),
    ("Aimv2Vision", MLP, 0),  # its class token belongs to a head
    ("Swin", STAGES, 0),
    ("Swinv2", STAGES, 0),
]


def made(name: str, options: dict[str, Any]) -> nn.Module:
    """A small untrained model of transformers."""
    transformers = pytest.importorskip("transformers")
    if not hasattr(transformers, f"{name}Model"):
        pytest.skip(f"this version of transformers has no {name}")
    torch.manual_seed(0)
    return getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**options)).eval()


@pytest.mark.parametrize(("name", "options", "leading"), LEADING, ids=[f"{name}-{k}" for name, _, k in LEADING])
def test_mean_pooling_averages_patches_only(name: str, options: dict[str, Any], leading: int):
    """Registers, class and distillation tokens are excluded; models without a class token are supported."""
    model = made(name, options)
    tokens = model(pixel_values=2 * pictures() - 1).last_hidden_state
    assert tokens.shape[1] == leading + 16
    encoder = pooled_encoder(model, "mean")
    torch.testing.assert_close(encoder(pictures()), tokens[:, leading:].mean(1))
    assert torch.equal(encoder.layers(pictures())[-1], encoder(pictures()))
    if leading:
        torch.testing.assert_close(pooled_encoder(model)(pictures()), tokens[:, 0])
        return
    for ask in (pooled_encoder(model), pooled_encoder(model).layers):
        with pytest.raises(InputError, match=rf"{name}Model has none.*Use pool='mean'"):
            ask(pictures())


def test_masked_autoencoder_receives_all_patches():
    """Its default mask_ratio hides three quarters of the patches, at random in each call."""
    model, whole = made("ViTMAE", MLP), made("ViTMAE", MLP | {"mask_ratio": 0.0})
    whole.load_state_dict(model.state_dict())
    x = pictures()
    hidden: Any = model(pixel_values=2 * x - 1)
    assert hidden.last_hidden_state.shape[1] == 1 + 4
    tokens = whole(pixel_values=2 * x - 1).last_hidden_state
    for pool, expected in (("cls", tokens[:, 0]), ("mean", tokens[:, 1:].mean(1))):
        encoder = pooled_encoder(model, pool)  # pyright: ignore[reportArgumentType]
        before = torch.get_rng_state()
        found = encoder(x)
        torch.testing.assert_close(found, expected)
        assert torch.equal(encoder(x), found) and torch.equal(torch.get_rng_state(), before)
        assert torch.equal(copy.deepcopy(encoder)(x), found) and encoder(pictures(24)).shape == (3, 16)
    config: Any = model.config
    assert config.mask_ratio == 0.75  # part of the model, so it is saved with it


def test_convolutional_network_pools_its_feature_map():
    model = made("ConvNext", {"depths": [1, 1], "hidden_sizes": [4, 8], "num_stages": 2, "patch_size": 2})
    features = model(pixel_values=2 * pictures() - 1).last_hidden_state
    assert features.shape == (3, 8, 4, 4)
    for pool in ("cls", "mean"):
        encoder = pooled_encoder(model, pool)  # pyright: ignore[reportArgumentType]
        torch.testing.assert_close(encoder(pictures()), features.mean((2, 3)))


def test_feature_map_preceded_by_its_mean():
    model = made("DINOv3ConvNext", {"depths": [1, 1, 1, 1], "hidden_sizes": [4, 4, 8, 8]})
    tokens = model(pixel_values=2 * pictures(64) - 1).last_hidden_state
    assert tokens.shape == (3, 1 + 4, 8)
    torch.testing.assert_close(pooled_encoder(model)(pictures(64)), tokens[:, 0])
    torch.testing.assert_close(pooled_encoder(model, "mean")(pictures(64)), tokens[:, 1:].mean(1))


def test_unknown_tokens_are_rejected():
    """Detection tokens follow the patches and could be mistaken for patches."""
    model = made("Yolos", MLP | {"image_size": [16, 16], "num_detection_tokens": 5})
    assert pooled_encoder(model)(pictures()).shape == (3, 16)
    with pytest.raises(InputError, match=r"22.*1.*16.*pool='cls'"):
        pooled_encoder(model, "mean")(pictures())


def test_model_with_a_head_is_rejected():
    transformers = pytest.importorskip("transformers")
    model = transformers.ViTForImageClassification(transformers.ViTConfig(**MLP))
    with pytest.raises(InputError, match=r"ViTForImageClassification.*last_hidden_state"):
        pooled_encoder(model)(pictures())


def test_transformers_model(transformers_vit: nn.Module):
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


def test_unused_parameters_are_frozen(transformers_vit: nn.Module):
    encoder = pooled_encoder(transformers_vit)
    encoder.zero_grad()
    encoder(pictures()).square().sum().backward()
    trained = {name for name, p in encoder.named_parameters() if p.requires_grad}
    assert trained == {name for name, p in encoder.named_parameters() if p.grad is not None}
    assert not any("pooler" in name for name in trained) and len(trained) > 40


@pytest.mark.parametrize(("name", "options"), [("SiglipVision", MLP), ("Swin", STAGES), ("Beit", MLP)])
def test_all_trainable_parameters_have_gradients(name: str, options: dict[str, Any]):
    encoder = pooled_encoder(made(name, options), "mean")
    encoder(pictures()).square().sum().backward()
    trained = {name for name, p in encoder.named_parameters() if p.requires_grad}
    assert trained and trained == {name for name, p in encoder.named_parameters() if p.grad is not None}


class TokensLikeTimm(nn.Module):
    num_prefix_tokens: int = 1

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


def test_timm_like_models():
    x = pictures()
    tokens, features = TokensLikeTimm(), MapLikeTimm()
    normal = (x - torch.tensor([0.4, 0.5, 0.6])[:, None, None]) / 0.25
    encoder = pooled_encoder(tokens, mean=(0.4, 0.5, 0.6), std=(0.25, 0.25, 0.25))
    torch.testing.assert_close(encoder(x), tokens.embed(normal).flatten(2).max(2).values)
    torch.testing.assert_close(pooled_encoder(features)(x), features.embed(2 * x - 1).mean((2, 3)))
    assert not tokens.head.weight.requires_grad and tokens.embed.weight.requires_grad
    x_bytes = (x * 255).to(torch.uint8)
    torch.testing.assert_close(encoder(x_bytes), encoder(x_bytes.float() / 255))
    with pytest.raises(InputError, match="layers"):
        encoder.layers(x)


class PatchesLikeTimm(nn.Module):
    """A timm-like model with a given number of registers, with or without a class token."""

    def __init__(self, registers: int, *, class_token: bool, counted: bool = True) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 4, 4)
        self.cls_token = nn.Parameter(torch.randn(1, 1, 8)) if class_token else None
        self.reg_token = nn.Parameter(torch.randn(1, registers, 8)) if registers else None
        if counted:
            self.num_prefix_tokens = class_token + registers

    def forward_features(self, x: Tensor) -> Tensor:
        front = [token.expand(len(x), -1, -1) for token in (self.cls_token, self.reg_token) if token is not None]
        return torch.cat([*front, self.embed(x).flatten(2).transpose(1, 2)], 1)


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("class_token", [True, False])
@pytest.mark.parametrize("registers", [0, 4])
def test_leading_tokens_of_timm_like_models(registers: int, class_token: bool, counted: bool):
    """Some models have registers but no class token, some have neither, and older ones do not report the number."""
    model = PatchesLikeTimm(registers, class_token=class_token, counted=counted)
    expected = model.embed(2 * pictures() - 1).mean((2, 3))
    torch.testing.assert_close(pooled_encoder(model, "mean")(pictures()), expected)
    if model.cls_token is not None:
        torch.testing.assert_close(pooled_encoder(model)(pictures()), model.cls_token[0].expand(3, -1))
        return
    with pytest.raises(InputError, match=r"PatchesLikeTimm has none.*Use pool='mean'"):
        pooled_encoder(model)(pictures())


def test_mean_pooling_requires_patches():
    alone = PatchesLikeTimm(0, class_token=True)
    alone.forward_features = lambda x: x.new_zeros(len(x), 1, 8)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(InputError, match=r"1.*1"):
        pooled_encoder(alone, "mean")(pictures())


class MapsLast(nn.Module):
    """Feature maps (b, height, width, d), as in timm's Swin or transformers' Dinat."""

    def __init__(self, *, timm: bool) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 4, 4)
        if timm:
            self.output_fmt, self.forward_features = "NHWC", self.features
        else:
            self.config = SimpleNamespace(model_type="dinat")

    def features(self, x: Tensor) -> Tensor:
        return self.embed(x).permute(0, 2, 3, 1)

    def forward(self, pixel_values: Tensor) -> SimpleNamespace:
        return SimpleNamespace(last_hidden_state=self.features(pixel_values))


@pytest.mark.parametrize("timm", [True, False])
def test_feature_map_may_have_trailing_channels(timm: bool):
    model = MapsLast(timm=timm)
    torch.testing.assert_close(pooled_encoder(model)(pictures()), model.embed(2 * pictures() - 1).mean((2, 3)))


def test_unsupported_models_are_rejected():
    with pytest.raises(InputError, match="Linear is neither"):
        pooled_encoder(nn.Linear(2, 2))
    with pytest.raises(InputError, match=r"'cls'.*'mean',.*'max'"):
        pooled_encoder(MapLikeTimm(), "max")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="std"):
        pooled_encoder(MapLikeTimm(), std=(1.0, 0.0, 1.0))
    flat = MapLikeTimm()
    flat.forward_features = lambda x: x.flatten(1)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(InputError, match=r"\(3, 768\)"):
        pooled_encoder(flat)(pictures())
