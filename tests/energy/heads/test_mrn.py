"""MRN against its definition, with and without the root."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jepatlas.core.seeding import torch_generator
from jepatlas.energy.heads import MRN, MRNConfig


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("width", [2, 7])
def test_the_energy_matches_its_definition(width: int, root: bool):
    x, y = torch.randn(2, 15, width, dtype=torch.float64, generator=torch_generator(0, "points"))
    half = width // 2
    for u, v, energy in zip(x.numpy(), y.numpy(), MRN(width, MRNConfig(root))(x, y).detach(), strict=True):
        symmetric = np.mean((v[:half] - u[:half]) ** 2)
        rises = [max(b - a, 0) for a, b in zip(u[half:], v[half:], strict=True)]
        assert float(energy) == pytest.approx((np.sqrt(symmetric) if root else symmetric) + max(rises), rel=1e-12)


def test_the_gradient_of_the_root_is_zero_and_not_nan_at_identical_points():
    x = torch.randn(4, 6, generator=torch_generator(0, "points")).requires_grad_()
    energy = MRN(6)(x, x.detach())
    (gradient,) = torch.autograd.grad(energy.sum(), x)
    assert (energy == 0).all() and (gradient == 0).all()  # exactly: nothing is added under the root


def test_without_the_root_midpoints_violate_the_triangle_inequality():
    x, z = torch.zeros(4), torch.tensor([2.0, 2.0, 0.0, 0.0])
    for root, shorter in ((True, False), (False, True)):
        head = MRN(4, MRNConfig(root))
        assert bool(head(x, z / 2) + head(z / 2, z) < head(x, z)) == shorter
        assert head.guaranteed_quasimetric != shorter
