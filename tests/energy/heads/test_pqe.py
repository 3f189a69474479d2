"""PQE-LH against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from jepatlas.core.seeding import torch_generator
from jepatlas.energy.heads import PQE, PQEConfig


@pytest.mark.parametrize("chunks", [1, 4])
def test_the_energy_matches_its_definition(chunks: int):
    head = PQE(8, PQEConfig(chunks, bound=3.0)).double()
    with torch.no_grad():
        head.raw_weight.add_(torch.linspace(-1, 1, chunks))
    weights = F.softplus(head.raw_weight).tolist()
    x, y = torch.randn(2, 15, 8, dtype=torch.float64, generator=torch_generator(0, "points"))
    for u, v, energy in zip(x.numpy(), y.numpy(), head(x, y).detach(), strict=True):
        fall = np.minimum(u - v, 0).reshape(chunks, -1).sum(1)
        assert float(energy) == pytest.approx(np.dot(weights, 1 - np.exp(fall)), rel=1e-12)


def test_the_energy_is_bounded_by_the_sum_of_its_weights():
    head = PQE(8, PQEConfig(4, bound=3.0))
    x = torch.zeros(8)
    assert float(head(x, x + 100)) == pytest.approx(3.0)
    assert float(head(x, x + math.inf)) == pytest.approx(3.0)
    small = 1e-6 * torch.ones(8)  # far below its bound it is a sum of positive differences, without loss of precision
    assert float(head(x, small)) == pytest.approx(3.0 / 4 * 8e-6, rel=1e-5)
