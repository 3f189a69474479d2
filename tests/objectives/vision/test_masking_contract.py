"""Contract of objectives on a ViT: gradients of the latent, image sizes, and defaults."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from objectives.vision.every_objective import MASKING, ON_VIT, ROWS, STEP, named
from objectives.vision.tiny_vision import STEPS, WIDTH, crops, tiny
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.records import Crops
from jepatlas.nn import ViTConfig
from jepatlas.objectives.vision.crop_objective import VisionParts

on_vit = pytest.mark.parametrize("config", ON_VIT, ids=named)


@on_vit
@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_loss_has_a_gradient_for_the_encoded_latent(config: Any, pool: str):
    """Gradients of the weights could come from patches only; the latent of `encode` must enter the loss as well."""
    objective = tiny(config, pool)
    pooled = objective.encoder.pooled
    seen: list[Tensor] = []
    body = objective.encoder.body.forward

    def watched(x: Tensor) -> Tensor:
        tokens = body(x)
        if tokens.requires_grad:
            tokens.retain_grad()
            seen.append(tokens)
        return tokens

    objective.encoder.body.forward = watched
    objective(crops(ROWS), STEP).total.backward()
    assert seen
    for tokens in seen:
        assert tokens.grad is not None
        in_latent = torch.autograd.grad(pooled(tokens).sum(), tokens)[0] != 0
        assert (tokens.grad[in_latent].view(len(tokens), -1).abs().sum(1) > 0).all()


@on_vit
def test_image_sizes_and_networks_without_patches(config: Any):
    """Any size divisible by the patch works; networks without patches only for objectives that need none."""
    wide = Crops(torch.rand(4, 3, 24, 16), (torch.rand(4, 3, 24, 16), torch.rand(4, 3, 8, 12)))
    assert tiny(config)(wide, STEP).total.isfinite()
    plain = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, WIDTH))
    if config.kind in MASKING:
        with pytest.raises(InputError, match=r"encoder .*tokens"):
            config.build(VisionParts(plain, WIDTH, STEPS))
    else:
        assert config.build(VisionParts(plain, WIDTH, STEPS))(crops(4), STEP).total.isfinite()


@pytest.mark.parametrize("config", {c.kind: type(c) for c in ON_VIT}.values(), ids=lambda c: c.kind)
def test_defaults_fit_the_default_network(config: Any):
    encoder = ViTConfig().build((3, 64, 64))
    x = torch.rand(2, 3, 64, 64)
    assert config().build(VisionParts(encoder, encoder.width, STEPS))(Crops(x, (x, x[:, :, :32, :32])), 0).total > 0
