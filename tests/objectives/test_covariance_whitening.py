"""The covariance-whitening loss against its formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import CovarianceConfig, CovarianceWhitening
from jepatlas.objectives.covariance_whitening import covariance_gap


@pytest.mark.parametrize("weight", [0.0, 0.5, 0.2, 1.0])
def test_total_and_terms(weight: float):
    h, h_next = torch.randn(2, 12, 4, dtype=torch.float64, generator=torch_generator(0, "h"))
    loss = CovarianceWhitening(nn.Identity(), CovarianceConfig(weight)).loss(h, h_next, 0)
    both = np.concatenate([h.numpy(), h_next.numpy()])
    gap = np.mean((np.cov(both, rowvar=False) - np.eye(4)) ** 2)
    views = np.stack([h.numpy(), h_next.numpy()])
    align = np.mean((views - views.mean(0)) ** 2)
    assert float(loss.terms["covariance"]) == pytest.approx(gap, rel=1e-10)
    assert float(loss.terms["invariance"]) == pytest.approx(align, rel=1e-10)
    assert float(loss.total) == pytest.approx(weight * gap + (1 - weight) * align, rel=1e-10)


def test_loss_ignores_the_mean_and_is_zero_for_white_latents():
    h = torch.randn(30, 3, dtype=torch.float64, generator=torch_generator(0, "h"))
    assert float(covariance_gap(h)) == pytest.approx(float(covariance_gap(h + 100)), rel=1e-6)
    centred = h - h.mean(0)
    white = centred @ torch.linalg.inv(torch.linalg.cholesky(h.T.cov())).T
    assert float(covariance_gap(white)) < 1e-24
    assert float(covariance_gap(2 * white)) == pytest.approx(3 * (4 - 1) ** 2 / 9)
