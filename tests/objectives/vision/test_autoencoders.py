"""MAE and the autoencoder against their definitions, patch by patch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from objectives.vision.tiny_vision import crops, tiny
from torch import Tensor

from jepatlas.core.records import Crops
from jepatlas.nn.transformer import sincos_positions
from jepatlas.objectives.vision.masks import random_split, uniforms
from jepatlas.objectives.vision.prediction_configs import AutoencoderConfig, DecoderConfig, MAEConfig

DECODER = DecoderConfig(width=8, depth=2, heads=2)


def pixels(image: Tensor, i: int) -> Tensor:
    r, c = divmod(i, 4)
    return image[:, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4].reshape(-1)


def drawn(decoder: Any, first: Tensor, seen: dict[int, Tensor]) -> Tensor:
    """Decoded patches of a 4 × 4 grid, from the first token and the visible tokens at their positions."""
    places = sincos_positions((4, 4), 8)
    row = [decoder.enter(seen[i]) if i in seen else decoder.mask_token for i in range(16)]
    sequence = torch.stack([decoder.enter(first), *(token + place for token, place in zip(row, places, strict=True))])
    return decoder.leave(decoder.body(sequence[None])[0, 1:])


@pytest.mark.parametrize("normal", [True, False])
def test_mae_matches_the_definition(normal: bool):
    objective, x = tiny(MAEConfig(normal=normal, decoder=DECODER)), crops(5).x
    kept, _ = random_split(uniforms((5, 16), 0, "masks", 2), 4)
    losses = []
    for image, keep in zip(x, kept.tolist(), strict=True):
        tokens = objective.encoder.tokens(image[None], keep=torch.tensor([keep]))[0]
        patches = drawn(objective.decoder, tokens[0], dict(zip(keep, tokens[1:], strict=True)))
        for i in set(range(16)) - set(keep):
            truth = pixels(image, i)
            if normal:
                truth = (truth - truth.mean()) / (truth.var() + 1e-6).sqrt()
            losses.append((patches[i] - truth).square().mean())
    assert len(losses) == 5 * 12
    torch.testing.assert_close(objective(crops(5), 2).total, torch.stack(losses).mean(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pool", ["cls", "mean"])
def test_autoencoder_matches_the_definition(pool: str):
    objective, x = tiny(AutoencoderConfig(4, DECODER), pool), crops(5).x
    losses = []
    for image, latent in zip(x, objective.encode(x), strict=True):
        patches = drawn(objective.decoder, latent, {})
        losses += [(patches[i] - (2 * pixels(image, i) - 1)).square().mean() for i in range(16)]
    torch.testing.assert_close(objective(crops(5), 0).total, torch.stack(losses).mean(), rtol=1e-5, atol=1e-6)


def test_mae_ignores_brightness_and_contrast_of_target_patches():
    """Hidden patches that differ only in these give the same target."""
    objective = tiny(MAEConfig(decoder=DECODER))
    keep, _ = random_split(uniforms((4, 16), 0, "masks", 0), 4)
    x = crops(4).x * 0.5
    brighter = 0.2 + 1.5 * x
    for image, other, seen in zip(x, brighter, keep.tolist(), strict=True):
        for r, c in (divmod(i, 4) for i in seen):
            other[:, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4] = image[:, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4]
    torch.testing.assert_close(objective(Crops(x), 0).total, objective(Crops(brighter), 0).total, rtol=1e-3, atol=0)


def test_smallest_grids_keep_hidden_and_visible_patches():
    for hidden in (0.05, 0.95):
        loss = tiny(MAEConfig(hidden, decoder=DECODER))(Crops(torch.rand(3, 3, 4, 8)), 0)
        assert loss.total.isfinite()


def test_decoder_size_matches_the_publication():
    assert DecoderConfig.published() == DecoderConfig(512, 8, 16)


def test_mae_learns_from_visible_patches():
    """Each image repeats one of four patches; a prediction without visible patches leaves 3/4 of the variance."""
    patterns = torch.rand(4, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    objective = tiny(MAEConfig(), apart=0.0)
    optimizer = torch.optim.AdamW(objective.parameters(), lr=3e-3, fused=True)
    losses = []
    for step in range(60):
        which = torch.randint(0, 4, (32,), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        loss = objective(Crops(patterns[which].repeat(1, 1, 4, 4)), step).total
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[0] > 0.7 and losses[-1] < 0.2
