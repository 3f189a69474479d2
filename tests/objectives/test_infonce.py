"""InfoNCE against its formula, pair by pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from jepatlas.base.seeding import torch_generator
from jepatlas.objectives import InfoNCE, InfoNCEConfig
from jepatlas.objectives.infonce import contrast, gaussian_similarity

H, H_NEXT = torch.randn(2, 10, 3, dtype=torch.float64, generator=torch_generator(0, "h"))


def slow_infonce(h: Tensor, h_next: Tensor, kernel: str, width: float) -> float:
    def similarity(u: np.ndarray, v: np.ndarray) -> float:
        if kernel == "gaussian":
            return -float(np.sum((u - v) ** 2)) / (2 * width**2)
        return float(u @ v) / (float(np.linalg.norm(u)) * float(np.linalg.norm(v))) / width

    views = h.numpy(), h_next.numpy()
    total = 0.0
    for i in range(len(h)):
        right = math.exp(similarity(views[0][i], views[1][i]))
        forth = sum(math.exp(similarity(views[0][i], other)) for other in views[1])
        back = sum(math.exp(similarity(other, views[1][i])) for other in views[0])
        total -= (math.log(right / forth) + math.log(right / back)) / 2
    return total / len(h)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("width", [1.0, 0.5])
@pytest.mark.parametrize("kernel", ["gaussian", "cosine"])
def test_total_and_terms(kernel: Any, width: float, adaptive: bool):
    objective = InfoNCE(nn.Identity(), InfoNCEConfig(kernel, width, adaptive)).double()
    loss = objective.loss(H, H_NEXT, 0)
    assert float(loss.total.detach()) == pytest.approx(slow_infonce(H, H_NEXT, kernel, width), rel=1e-6)
    assert float(loss.terms["infonce"]) == float(loss.total.detach())
    assert float(loss.terms["width"]) == pytest.approx(width, rel=1e-6)
    assert objective.log_width.requires_grad == adaptive


def test_chance_is_the_logarithm_of_the_batch():
    assert float(contrast(torch.zeros(16, 16))) == pytest.approx(math.log(16))
    assert float(contrast(1e3 * torch.eye(16))) == 0


def test_only_an_adaptive_width_follows_the_distances():
    """Far-apart latents: a learned σ grows, and what could not be learned from becomes learnable."""
    h, h_next = 30 * H, 30 * H_NEXT
    objective = InfoNCE(nn.Identity(), InfoNCEConfig(adaptive=True)).double()
    optimizer = torch.optim.Adam(objective.parameters(), lr=0.1)
    first = float(objective.loss(h, h_next, 0).total.detach())
    for step in range(150):
        optimizer.zero_grad()
        objective.loss(h, h_next, step).total.backward()
        optimizer.step()
    assert float(objective.log_width.exp().detach()) > 10
    assert float(objective.loss(h, h_next, 0).total.detach()) < 0.1 * first
    assert not [p for p in InfoNCE(nn.Identity()).parameters() if p.requires_grad]


def test_a_large_common_mean_costs_no_precision():
    """Distances do not see the mean, but ‖u‖² + ‖v‖² − 2uv would, in float32."""
    near, width = H / 10, torch.tensor(1.0)
    exact = gaussian_similarity(near, near + 0.1, width)
    shifted = gaussian_similarity((near + 1000).float(), (near + 1000.1).float(), width)
    torch.testing.assert_close(shifted.double(), exact, atol=2e-4, rtol=0)


def test_cosine_does_not_see_lengths():
    objective = InfoNCE(nn.Identity(), InfoNCEConfig("cosine", 0.1)).double()
    lengths = torch.linspace(0.1, 9, 10, dtype=torch.float64)[:, None]
    torch.testing.assert_close(objective.loss(H, H_NEXT, 0).total, objective.loss(H * lengths, H_NEXT, 0).total)
