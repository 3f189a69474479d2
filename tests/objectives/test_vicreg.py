"""VICReg against Algorithm 1 of its paper, line by line."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import VICReg, VICRegConfig


def algorithm_1(z_a: np.ndarray, z_b: np.ndarray, c: VICRegConfig) -> tuple[float, float, float]:
    n, d = z_a.shape
    sim_loss = np.mean((z_a - z_b) ** 2)
    std_loss, cov_loss = 0.0, 0.0
    for z in (z_a, z_b):
        std = np.sqrt(z.var(axis=0, ddof=1) + c.epsilon)
        std_loss += np.mean(np.maximum(0, c.target - std))
        centred = z - z.mean(axis=0)
        cov = centred.T @ centred / (n - 1)
        for i in range(d):
            for j in range(d):
                cov_loss += cov[i, j] ** 2 / d if i != j else 0.0
    return float(sim_loss), float(std_loss), float(cov_loss)


@pytest.mark.parametrize("config", [VICRegConfig(), VICRegConfig(1.0, 3.0, 2.0, target=1.7, epsilon=0.02)])
def test_total_and_terms(config: VICRegConfig):
    h, h_next = torch.randn(2, 12, 4, dtype=torch.float64, generator=torch_generator(0, "h"))
    h, h_next = h * torch.tensor([0.3, 1.0, 2.0, 0.9]) + 5, h_next * 0.8  # on both sides of the hinge
    loss = VICReg(nn.Identity(), config).loss(h, h_next, 0)
    expected = algorithm_1(h.numpy(), h_next.numpy(), config)
    got = [float(loss.terms[name]) for name in ("invariance", "variance", "covariance")]
    assert got == pytest.approx(expected, rel=1e-10)
    weights = (config.invariance, config.variance, config.covariance)
    assert float(loss.total) == pytest.approx(np.dot(weights, expected), rel=1e-10)


def test_collapsed_latents_have_a_finite_gradient():
    h = torch.zeros(8, 3, requires_grad=True)
    loss = VICReg(nn.Identity()).loss(h, h * 1, 0)
    loss.total.backward()
    assert h.grad is not None and h.grad.isfinite().all()
    assert float(loss.terms["variance"].detach()) == pytest.approx(2 * (1 - 0.01))
