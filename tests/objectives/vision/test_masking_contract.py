"""What only objectives on a ViT are asked: that the loss reaches its latent, other sizes of images, the defaults."""

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
def test_the_loss_reaches_the_latent_itself(config: Any, pool: str):
    """Not only the weights, which the patches may train alone: what `encode` gives is what the loss looks at."""
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
def test_other_images_and_other_networks(config: Any):
    """Any size that the patch divides; without patches only where an objective needs none."""
    wide = Crops(torch.rand(4, 3, 24, 16), (torch.rand(4, 3, 24, 16), torch.rand(4, 3, 8, 12)))
    assert tiny(config)(wide, STEP).total.isfinite()
    plain = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, WIDTH))
    if config.kind in MASKING:
        with pytest.raises(InputError, match="needs an encoder with tokens"):
            config.build(VisionParts(plain, WIDTH, STEPS))
    else:
        assert config.build(VisionParts(plain, WIDTH, STEPS))(crops(4), STEP).total.isfinite()


@pytest.mark.parametrize("config", {c.kind: type(c) for c in ON_VIT}.values(), ids=lambda c: c.kind)
def test_the_defaults_fit_the_default_network(config: Any):
    encoder = ViTConfig().build((3, 64, 64))
    x = torch.rand(2, 3, 64, 64)
    assert config().build(VisionParts(encoder, encoder.width, STEPS))(Crops(x, (x, x[:, :, :32, :32])), 0).total > 0
