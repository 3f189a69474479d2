"""The weighted sum of positive differences against its definition, and against IQE without overlapping intervals."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from jepatlas.core.seeding import torch_generator
from jepatlas.energy.heads import IQE, IQEConfig, ReluSum, ReluSumConfig


@pytest.mark.parametrize("chunks", [1, 4])
def test_the_energy_matches_its_definition(chunks: int):
    head = ReluSum(8, ReluSumConfig(chunks, alpha=0.3, learn_alpha=False)).double()
    with torch.no_grad():
        head.raw_weight.add_(torch.linspace(-2, 2, 8))
    weights = F.softplus(head.raw_weight).detach().numpy()
    x, y = torch.randn(2, 15, 8, dtype=torch.float64, generator=torch_generator(0, "points"))
    for u, v, energy in zip(x.numpy(), y.numpy(), head(x, y).detach(), strict=True):
        parts = (weights * np.maximum(v - u, 0)).reshape(chunks, -1).sum(1)
        assert float(energy) == pytest.approx(0.3 * parts.max() + 0.7 * parts.mean(), rel=1e-12)


def test_untrained_energy_equals_iqe_if_no_intervals_overlap():
    x = 10.0 * torch.arange(8)
    y = x + torch.randn(20, 8, generator=torch_generator(0, "steps"))
    torch.testing.assert_close(ReluSum(8, ReluSumConfig(2))(x, y), IQE(8, IQEConfig(2))(x, y))
