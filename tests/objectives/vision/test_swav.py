import math

import numpy as np
import torch
from objectives.vision.every_objective import descend
from objectives.vision.tiny_crops import double, on_crops
from objectives.vision.tiny_vision import STEPS, crops

from jepatlas.objectives.vision.prototype_configs import SwAVConfig


def assigned_slowly(scores_bk: np.ndarray, smoothness: float, rounds: int) -> np.ndarray:
    """Diag(u) exp(C Z / ε) Diag(v) with column sums 1/b and row sums 1/K, then scaled to sum 1 per image."""
    k, b = scores_bk.shape[1], scores_bk.shape[0]
    q = np.exp(scores_bk.T / smoothness)
    q /= q.sum()
    for _ in range(rounds):
        for prototype in range(k):
            q[prototype] /= q[prototype].sum() * k
        for image in range(b):
            q[:, image] /= q[:, image].sum() * b
    return (q * b).T


def test_loss_matches_the_definition():
    objective = on_crops(SwAVConfig(6, (16, 5), temperature=0.2, smoothness=0.1, rounds=4)).double()
    objective.after_step(0)
    batch = double(crops(7))
    loss = objective(batch, 3)
    latents = torch.cat([objective.encoder(crop) for crop in batch.all])
    z = objective.projector(latents).detach().numpy().reshape(4, 7, 5)
    prototypes = objective.prototypes.detach().numpy()
    scores = [v / np.linalg.norm(v, axis=1, keepdims=True) @ prototypes.T for v in z]
    total, entropy = 0.0, 0.0
    for i in range(2):
        q = assigned_slowly(scores[i], 0.1, 4)
        entropy -= float(np.sum(q * np.log(q))) / 7 / 2
        for v in set(range(4)) - {i}:
            p = np.exp(scores[v] / 0.2)
            p /= p.sum(1, keepdims=True)
            total -= float(np.sum(q * np.log(p))) / 7 / 3 / 2
    assert math.isclose(loss.total.detach(), total, rel_tol=1e-9)
    assert math.isclose(loss.terms["code_entropy"], entropy, rel_tol=1e-9)


def test_default_codes_of_a_small_batch_are_not_uniform():
    """Checked for the untrained network: uniform codes would give no training signal."""
    found = on_crops(SwAVConfig())(crops(64), 0).terms["code_entropy"]
    assert found < 0.5 * math.log(64)


def test_prototypes_have_unit_norm_and_are_frozen_at_first():
    objective = on_crops(SwAVConfig(6, (16, 5), held=4 / STEPS), apart=0.0)
    first = objective.prototypes.detach().clone()
    torch.testing.assert_close(first.norm(dim=1), torch.ones(6))
    descend(objective, 4)
    torch.testing.assert_close(objective.prototypes.detach(), first)
    descend(objective, 8)
    assert not torch.allclose(objective.prototypes, first, atol=1e-3)
    torch.testing.assert_close(objective.prototypes.detach().norm(dim=1), torch.ones(6))
