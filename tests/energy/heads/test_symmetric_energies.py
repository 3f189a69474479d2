"""The symmetric controls against numpy and scipy."""

from __future__ import annotations

import numpy as np
import scipy.spatial.distance
import torch

from jepatlas.core.seeding import torch_generator
from jepatlas.energy.heads import L2, Cosine, SquaredL2
from jepatlas.energy.heads.head import EnergyHead


def test_energies_match_their_definitions():
    x, y = torch.randn(2, 9, 6, dtype=torch.float64, generator=torch_generator(0, "points"))
    known = {L2: "euclidean", SquaredL2: "sqeuclidean", Cosine: "cosine"}
    for head, name in known.items():
        expected = scipy.spatial.distance.cdist(x.numpy(), y.numpy(), name)  # pyright: ignore[reportCallIssue, reportArgumentType]
        np.testing.assert_allclose(head(6).all_pairs(x, y), expected, rtol=1e-12)


def gradient(head: EnergyHead, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(head(x, y).sum(), x)[0]


def test_the_gradient_of_a_distance_is_a_unit_vector_but_zero_at_identical_points():
    x = torch.randn(4, 3, generator=torch_generator(0, "points"))
    assert (gradient(L2(3), x, x) == 0).all()
    for scale in (1e-30, 1.0, 1e30):
        far = gradient(L2(3), scale * x, torch.zeros(3))
        torch.testing.assert_close(far, x / x.norm(dim=-1, keepdim=True))


def test_directions_of_zero_and_infinity():
    head = Cosine(2)
    zero, east, north = torch.zeros(2), torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    far_east = torch.tensor([np.inf, 5.0])
    assert float(head(east, north)) == 1 and float(head(east, 3 * east)) == 0 and float(head(east, -east)) == 2
    assert float(head(zero, zero)) == 0 and float(head(far_east, east)) == 0 and float(head(far_east, north)) == 1
    assert float(head(zero, east)) == 0.5
