import math

import numpy as np
import pytest
import torch
from objectives.vision.every_objective import descend
from objectives.vision.tiny_crops import DIM, double, on_crops, tiny_conv
from objectives.vision.tiny_vision import STEPS, WIDTH, crops, tiny_vit

from jepatlas.core.errors import InputError
from jepatlas.objectives.vision.crop_objective import VisionParts
from jepatlas.objectives.vision.joint_embedding_configs import MoCoV3Config
from jepatlas.objectives.vision.moco_v3 import key_contrast


def contrast_slowly(queries: np.ndarray, keys: np.ndarray, temperature: float) -> float:
    total = 0.0
    for i, q in enumerate(queries):
        scores = [math.exp(q @ k / np.linalg.norm(q) / np.linalg.norm(k) / temperature) for k in keys]
        total -= math.log(scores[i] / sum(scores)) / len(queries)
    return 2 * temperature * total


def test_loss_matches_the_definition():
    """ctr(q(x), k(x')) + ctr(q(x'), k(x)), keys of the momentum encoder; both heads end in a normalisation."""
    objective = on_crops(MoCoV3Config(0.3, (16, 5), 12)).double()
    batch = double(crops(7))
    loss = objective(batch, 0).total.detach()
    x = torch.cat(batch.all[:2])
    queries = objective.predictor(objective.projector(objective.encoder(x))).detach().numpy()
    slow_encoder, slow_projector = objective.target.network
    keys = slow_projector(slow_encoder(x)).detach().numpy()
    for rows in (queries, keys):
        np.testing.assert_allclose(rows.mean(0), 0, atol=1e-12)
        np.testing.assert_allclose(rows.var(0), 1, rtol=1e-2)
    expected = contrast_slowly(queries[:7], keys[7:], 0.3) + contrast_slowly(queries[7:], keys[:7], 0.3)
    assert math.isclose(loss, expected, rel_tol=1e-9)


def test_equal_keys_give_the_chance_level():
    assert math.isclose(key_contrast(torch.randn(5, 3), torch.ones(5, 3), 0.4), 0.8 * math.log(5), rel_tol=1e-6)


def test_frozen_patch_embedding_keeps_its_initial_weights():
    for frozen in (True, False):
        encoder = tiny_vit()
        config = MoCoV3Config(projector=(16, 8), predictor=8, frozen_patches=frozen)
        objective = config.build(VisionParts(encoder, WIDTH, STEPS))
        before = encoder.embed.weight.clone(), encoder.class_token.clone()
        descend(objective, 2)
        assert torch.equal(encoder.embed.weight, before[0]) == frozen
        assert not torch.equal(encoder.class_token, before[1])
        slow = dict(objective.target.network.named_parameters())["0.embed.weight"]
        assert torch.equal(slow, before[0]) == frozen


def test_freezing_patches_requires_a_patch_embedding():
    with pytest.raises(InputError, match="'embed'"):
        MoCoV3Config(frozen_patches=True).build(VisionParts(tiny_conv(), DIM, STEPS))
