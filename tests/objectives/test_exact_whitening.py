"""Exact whitening by batch statistics in training and by running statistics afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from jepatlas.core.records import Pairs
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import ExactWhitening, WhiteningConfig
from jepatlas.objectives.exact_whitening import whiten


def views(rows: int = 20, dim: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    z, noise = torch.randn(2, rows, dim, dtype=torch.float64, generator=torch_generator(seed, "h"))
    mix = torch.tensor([[2.0, 0.3, 0.0], [0.5, 1.0, 0.2], [0.0, 0.1, 0.4]]).double()[:dim, :dim]
    return z @ mix + 3, (0.8 * z + 0.6 * noise) @ mix + 3


def build(momentum: float = 0.99, epsilon: float = 0.0, dim: int = 3) -> ExactWhitening:
    return ExactWhitening(nn.Identity(), dim, WhiteningConfig(momentum, epsilon)).double()


def test_total_matches_the_definition():
    h, h_next = views()
    both = np.concatenate([h, h_next])
    root = np.linalg.cholesky(np.cov(both, rowvar=False) + 0.01 * np.eye(3))
    u, u_next = ((np.linalg.inv(root) @ (v.numpy() - both.mean(0)).T).T for v in (h, h_next))
    mean = (u + u_next) / 2
    expected = np.mean(np.stack([u - mean, u_next - mean]) ** 2)
    loss = build(epsilon=0.01).loss(h, h_next, 0)
    assert float(loss.total) == pytest.approx(expected, rel=1e-10)
    assert float(loss.terms["invariance"]) == float(loss.total)


def test_whitened_batch_has_identity_covariance():
    both = torch.cat(views())
    u = whiten(both, both.mean(0), both.T.cov())
    torch.testing.assert_close(u.mean(0), torch.zeros(3).double(), atol=1e-12, rtol=0)
    torch.testing.assert_close(u.T.cov(), torch.eye(3).double())


def test_loss_is_invariant_to_linear_maps_of_the_latents():
    h, h_next = views()
    change = torch.tensor([[1.0, 2.0, 0.0], [0.0, 3.0, 1.0], [1.0, 0.0, 0.1]]).double()
    torch.testing.assert_close(
        build().loss(h @ change - 5, h_next @ change - 5, 0).total, build().loss(h, h_next, 0).total
    )


def test_running_statistics_start_as_plain_average_then_move():
    objective = build(momentum=0.75)
    means, covariances = [], []
    mean, covariance = np.zeros(3), np.eye(3)
    for step in range(6):
        h, h_next = views(seed=step)
        objective.loss(h, h_next, step)
        both = np.concatenate([h, h_next])
        means.append(both.mean(0))
        covariances.append(np.cov(both, rowvar=False))
        if step < 4:  # 1/(step + 1) ≥ 1 − 0.75
            mean, covariance = np.mean(means, 0), np.mean(covariances, 0)
        else:
            mean, covariance = 0.75 * mean + 0.25 * means[-1], 0.75 * covariance + 0.25 * covariances[-1]
        np.testing.assert_allclose(objective.mean, mean)
        np.testing.assert_allclose(objective.covariance, covariance)


def test_encode_whitens_with_running_statistics():
    objective = build()
    h, h_next = views(500)
    objective(Pairs(h, h_next, h, h_next), 0)
    u = torch.cat([objective.encode(h), objective.encode(h_next)])
    torch.testing.assert_close(u.T.cov(), torch.eye(3).double())
    mean, covariance = objective.mean.clone(), objective.covariance.clone()
    objective.eval()
    objective(Pairs(h * 9, h_next * 9, h, h_next), 1)
    assert torch.equal(objective.mean, mean) and torch.equal(objective.covariance, covariance)
    assert {"mean", "covariance"} <= objective.state_dict().keys()


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_batches_below_the_smallest_batch_are_rejected(dim: int):
    rows = build(dim=dim).smallest_batch(dim)
    enough, too_few = views(rows, dim), views(rows - 1, dim)
    assert build(dim=dim).loss(*enough, 0).total.isfinite()
    covariance = np.atleast_2d(np.cov(np.concatenate(enough), rowvar=False))
    assert np.linalg.matrix_rank(covariance) == dim
    if rows > 1:
        assert np.linalg.matrix_rank(np.cov(np.concatenate(too_few), rowvar=False)) < dim


def test_singular_covariance_gives_nan_unless_epsilon_is_positive():
    h = torch.zeros(8, 3, dtype=torch.float64)
    assert build().loss(h, h, 0).total.isnan()
    assert float(build(epsilon=1e-6).loss(h, h, 0).total) == 0
