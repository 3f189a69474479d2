import math

import numpy as np
import torch
from objectives.vision.tiny_crops import double, on_crops
from objectives.vision.tiny_vision import crops

from jepatlas.objectives import VICRegConfig
from jepatlas.objectives.vision.joint_embedding_configs import CropVICRegConfig


def test_loss_matches_the_definition():
    """λ s(Z, Z') + μ [v(Z) + v(Z')] + ν [c(Z) + c(Z')] of the expander's outputs."""
    config = CropVICRegConfig(VICRegConfig(3.0, 5.0, 2.0, target=1.5), expander=(16, 4))
    objective = on_crops(config).double()
    batch = double(crops(9))
    loss = objective(batch, 0)
    views = objective.expander(objective.encoder(torch.cat(batch.all[:2]))).detach().numpy().reshape(2, 9, 4)
    invariance = np.mean([np.sum((u - v) ** 2) / 4 for u, v in zip(*views, strict=True)])
    variance = covariance = 0.0
    for view in views:
        for i in range(4):
            variance += max(0.0, 1.5 - math.sqrt(np.var(view[:, i], ddof=1) + 1e-4)) / 4
            covariance += sum(np.cov(view[:, i], view[:, j])[0, 1] ** 2 for j in range(4) if j != i) / 4
    assert math.isclose(loss.total.detach(), 3 * invariance + 5 * variance + 2 * covariance, rel_tol=1e-9)
    assert math.isclose(loss.terms["variance"], variance, rel_tol=1e-9)
    assert math.isclose(loss.terms["covariance"], covariance, rel_tol=1e-9)
