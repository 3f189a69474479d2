import math

import numpy as np
import torch
from objectives.vision.tiny_crops import double, on_crops
from objectives.vision.tiny_vision import crops

from jepatlas.objectives.vision.joint_embedding_configs import BYOLConfig


def normal(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_loss_matches_the_definition():
    """‖q̄(x) − z̄'(x')‖² + ‖q̄(x') − z̄'(x)‖² of unit vectors, z' of the momentum encoder."""
    objective = on_crops(BYOLConfig((16, 5), 12)).double()
    batch = double(crops(7))
    loss = objective(batch, 0).total.detach()
    x = torch.cat(batch.all[:2])
    predicted = objective.predictor(objective.projector(objective.encoder(x))).detach().numpy()
    slow_encoder, slow_projector = objective.target.network
    kept = slow_projector(slow_encoder(x)).detach().numpy()
    assert not np.allclose(kept, objective.projector(objective.encoder(x)).detach().numpy())
    swapped = normal(np.concatenate([kept[7:], kept[:7]]))
    assert math.isclose(loss, 2 * np.mean(np.sum((normal(predicted) - swapped) ** 2, axis=1)), rel_tol=1e-9)


def test_targets_receive_no_gradient():
    objective = on_crops(BYOLConfig((16, 5), 12), apart=0.0).double()  # the momentum encoder is equal, but constant
    batch = double(crops(7))
    weight = objective.encoder[2].weight
    objective(batch, 0).total.backward()
    kept = objective.targets(batch.all[:2])

    def value(shift: float) -> float:
        with torch.no_grad():
            weight[1, 2] += shift
            predicted = objective.predictor(objective.projector(objective.encoder(torch.cat(batch.all[:2])))).chunk(2)
            weight[1, 2] -= shift
            return float(objective.compare(predicted[0], kept[1]) + objective.compare(predicted[1], kept[0]))

    assert math.isclose(weight.grad[1, 2], (value(1e-6) - value(-1e-6)) / 2e-6, rel_tol=1e-5)
