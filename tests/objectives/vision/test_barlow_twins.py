import math

import numpy as np
import torch
from objectives.vision.tiny_crops import double, on_crops
from objectives.vision.tiny_vision import crops

from jepatlas.objectives.vision.barlow_twins import cross_correlation
from jepatlas.objectives.vision.joint_embedding_configs import BarlowTwinsConfig


def losses_slowly(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Σ_i (1 − C_ii)² and Σ_{i≠j} C_ij² from numpy's correlation, which ε shrinks by √(v / (v + ε)) for variance v."""
    alike = redundant = 0.0
    shrunk = [np.sqrt(z.var(0) / (z.var(0) + 1e-5)) for z in (first, second)]
    for i in range(first.shape[1]):
        for j in range(first.shape[1]):
            correlation = np.corrcoef(first[:, i], second[:, j])[0, 1] * shrunk[0][i] * shrunk[1][j]
            alike += (1 - correlation) ** 2 if i == j else 0
            redundant += correlation**2 if i != j else 0
    return alike, redundant


def test_loss_matches_the_definition():
    objective = on_crops(BarlowTwinsConfig(0.02, projector=(16, 4))).double()
    batch = double(crops(9))
    loss = objective(batch, 0)
    first, second = objective.projector(objective.encoder(torch.cat(batch.all[:2]))).detach().numpy().reshape(2, 9, 4)
    alike, redundant = losses_slowly(first, second)
    assert math.isclose(loss.terms["invariance"], alike, rel_tol=1e-9)
    assert math.isclose(loss.terms["redundancy"], redundant, rel_tol=1e-9)
    assert math.isclose(loss.total.detach(), alike + 0.02 * redundant, rel_tol=1e-9)


def test_constant_dimension_has_zero_correlation():
    z = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    z[:, 1] = 5
    z.requires_grad_()
    found = cross_correlation(z, z)
    found.square().sum().backward()
    assert z.grad is not None and z.grad.isfinite().all()
    torch.testing.assert_close(found.diagonal(), torch.tensor([1.0, 0.0, 1.0]), rtol=0, atol=1e-4)
    assert found[1].abs().max() < 1e-4 and found[:, 1].abs().max() < 1e-4
