"""I-JEPA block by block with all predictors, and its momentum target."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from objectives.vision.tiny_vision import STEPS, crops, tiny
from torch import Tensor

from jepatlas.nn.ema import momentum_at
from jepatlas.nn.transformer import sincos_positions
from jepatlas.objectives.vision.prediction_configs import (
    IJEPAConfig,
    LinearPredictorConfig,
    MLPPredictorConfig,
    NarrowPredictorConfig,
)

NARROW, MLP = NarrowPredictorConfig(width=8, depth=2, heads=2), MLPPredictorConfig(32)
GRID = (4, 4)


def predict_by_transformer(predictor: Any, tokens: Tensor, latent: Tensor, seen: list[int], block: list[int]) -> Tensor:
    del latent
    places = sincos_positions(GRID, 8)
    sequence = [predictor.enter(tokens[0])]
    sequence += [predictor.enter(token) + places[i] for token, i in zip(tokens[1:], seen, strict=True)]
    sequence += [predictor.mask_token + places[i] for i in block]
    return predictor.leave(predictor.body(torch.stack(sequence)[None])[0, len(tokens) :])


def predict_by_perceptron(predictor: Any, tokens: Tensor, latent: Tensor, seen: list[int], block: list[int]) -> Tensor:
    del tokens, seen
    weight = torch.cat([predictor.from_latent.weight, predictor.from_place.weight], 1)
    places = sincos_positions(GRID, len(latent))
    predicted = []
    for i in block:
        hidden = weight @ torch.cat([latent, places[i]]) + predictor.from_latent.bias
        hidden = F.gelu(
            (hidden - hidden.mean()) / (hidden.var(correction=0) + 1e-5).sqrt() * predictor.out[0].weight
            + predictor.out[0].bias
        )
        predicted.append(predictor.out[2].weight @ hidden + predictor.out[2].bias)
    return torch.stack(predicted)


def predict_linearly(predictor: Any, tokens: Tensor, latent: Tensor, seen: list[int], block: list[int]) -> Tensor:
    del tokens, seen
    weight = torch.cat([predictor.from_latent.weight, predictor.from_place.weight], 1)
    places = sincos_positions(GRID, len(latent))
    return torch.stack([weight @ torch.cat([latent, places[i]]) + predictor.from_latent.bias for i in block])


@pytest.mark.parametrize("pool", ["cls", "mean"])
@pytest.mark.parametrize("distance", ["squared", "smooth-l1"])
@pytest.mark.parametrize(
    ("predictor", "predict"),
    [(NARROW, predict_by_transformer), (MLP, predict_by_perceptron), (LinearPredictorConfig(), predict_linearly)],
)
def test_loss_matches_the_definition(predictor: Any, predict: Any, distance: Any, pool: str):
    objective, x = tiny(IJEPAConfig(predictor, distance), pool), crops(5).x
    contexts, blocks = objective.masks(x, GRID, 2)
    losses = []
    for image, seen, targets in zip(x, contexts.tolist(), blocks.tolist(), strict=True):
        tokens = objective.encoder.tokens(image[None], keep=torch.tensor([seen]))[0]
        latent = tokens[0] if pool == "cls" else tokens[1:].mean(0)
        whole = objective.target.network.tokens(image[None])[0]
        for block in targets:
            predicted = predict(objective.predictor, tokens, latent, seen, block)
            for prediction, i in zip(predicted, block, strict=True):
                target = whole[1 + i]
                target = (target - target.mean()) / (target.var(correction=0) + 1e-5).sqrt()
                off = (prediction - target).abs()
                losses.append(off.square() if distance == "squared" else torch.where(off < 1, off**2 / 2, off - 0.5))
    torch.testing.assert_close(objective(crops(5), 2).total, torch.stack(losses).mean(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("rise", "due"), [("cosine", 0.925), ("line", 0.9 + 0.1 / 3)])
def test_target_is_updated_with_the_scheduled_momentum(rise: Any, due: float):
    objective = tiny(IJEPAConfig(NARROW, momentum=0.9, rise=rise))
    name = "body.blocks.0.mlp.0.weight"
    slow = objective.target.network.get_parameter(name).clone()
    fast = objective.encoder.get_parameter(name).detach()
    objective.after_step(STEPS // 3)
    m = momentum_at(0.9, STEPS // 3, STEPS, rise)
    assert m == pytest.approx(due, abs=0.005)
    torch.testing.assert_close(objective.target.network.get_parameter(name), m * slow + (1 - m) * fast)


def test_context_does_not_contain_the_target_patches():
    """Changed pixels in hidden patches change the targets, but not the predictions."""
    objective, x = tiny(IJEPAConfig(NARROW)), crops(4).x
    contexts, _ = objective.masks(x, GRID, 0)
    changed = torch.rand_like(x)
    for image, other, seen in zip(x, changed, contexts.tolist(), strict=True):
        for r, c in (divmod(i, 4) for i in seen):
            other[:, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4] = image[:, 4 * r : 4 * r + 4, 4 * c : 4 * c + 4]
    one, two = (objective.encoder.tokens(view, keep=contexts) for view in (x, changed))
    assert torch.equal(one, two)
    assert not torch.allclose(objective.targets(x), objective.targets(changed))


def test_predictor_size_matches_the_publication():
    config = NarrowPredictorConfig.published(depth=6, heads=12)
    assert (config.width, config.depth, config.heads) == (384, 6, 12)


def test_target_spread_is_the_standard_deviation_of_targets():
    objective, batch = tiny(IJEPAConfig(NARROW)), crops(5)
    _, blocks = objective.masks(batch.x, GRID, 2)
    rows = torch.cat(
        [targets[index.flatten()] for targets, index in zip(objective.targets(batch.x), blocks, strict=True)]
    )
    torch.testing.assert_close(objective(batch, 2).terms["target_spread"], rows.std(0, correction=0).mean())
