import math

import numpy as np
import torch
from objectives.vision.tiny_crops import double, on_crops
from objectives.vision.tiny_vision import crops

from jepatlas.objectives.vision.joint_embedding_configs import SimCLRConfig
from jepatlas.objectives.vision.simclr import nt_xent


def nt_xent_slowly(first: np.ndarray, second: np.ndarray, temperature: float) -> float:
    rows, b = [*first, *second], len(first)

    def similarity(i: int, j: int) -> float:
        return math.exp(rows[i] @ rows[j] / np.linalg.norm(rows[i]) / np.linalg.norm(rows[j]) / temperature)

    losses = []
    for i in range(2 * b):
        partner = i + b if i < b else i - b
        losses.append(-math.log(similarity(i, partner) / sum(similarity(i, k) for k in range(2 * b) if k != i)))
    return sum(losses) / (2 * b)


def test_loss_matches_the_definition():
    objective = on_crops(SimCLRConfig(0.3, projector=(16, 5))).double()
    batch = double(crops(7))
    loss = objective(batch, 0).total.detach()
    z = objective.projector(objective.encoder(torch.cat(batch.all[:2]))).detach().numpy()
    assert math.isclose(loss, nt_xent_slowly(z[:7], z[7:], 0.3), rel_tol=1e-9)


def test_known_values():
    """Equal latents: log(2b − 1). Equal partners, all others orthogonal, τ = 1: log(e + 2b − 2) − 1."""
    same = torch.ones(4, 3)
    assert math.isclose(nt_xent(same, same, 0.2), math.log(7), rel_tol=1e-6)
    apart = torch.eye(4)
    assert math.isclose(nt_xent(apart, 2 * apart, 1.0), math.log(math.e + 6) - 1, rel_tol=1e-6)
