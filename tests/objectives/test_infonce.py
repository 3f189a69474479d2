"""InfoNCE against its formula, pair by pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import AnInfoNCE, InfoNCE, InfoNCEConfig, Parts
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


def test_chance_level_is_the_logarithm_of_the_batch_size():
    assert float(contrast(torch.zeros(16, 16))) == pytest.approx(math.log(16))
    assert float(contrast(1e3 * torch.eye(16))) == 0


def test_adaptive_width_grows_with_the_distances():
    """For distant latents a learned σ grows, so that gradients no longer vanish."""
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


def test_large_common_mean_keeps_precision():
    """Distances do not depend on the mean, but ‖u‖² + ‖v‖² − 2uv would lose precision in float32."""
    near, width = H / 10, torch.tensor(1.0)
    exact = gaussian_similarity(near, near + 0.1, width)
    shifted = gaussian_similarity((near + 1000).float(), (near + 1000.1).float(), width)
    torch.testing.assert_close(shifted.double(), exact, atol=2e-4, rtol=0)


def test_cosine_ignores_norms():
    objective = InfoNCE(nn.Identity(), InfoNCEConfig("cosine", 0.1)).double()
    lengths = torch.linspace(0.1, 9, 10, dtype=torch.float64)[:, None]
    torch.testing.assert_close(objective.loss(H, H_NEXT, 0).total, objective.loss(H * lengths, H_NEXT, 0).total)


LOG_PRECISION = torch.tensor([1.5, -0.5, 0.2], dtype=torch.float64)


def anisotropic(dose: float | None, width: float = 0.7) -> AnInfoNCE:
    objective = InfoNCEConfig("anisotropic", width, adaptive=True, dose=dose).build(Parts(nn.Identity(), 3)).double()
    assert isinstance(objective, AnInfoNCE)
    objective.log_precision.data.copy_(LOG_PRECISION)
    return objective


def slow_anisotropic(h: Tensor, h_next: Tensor, log_precision: np.ndarray, width: float) -> float:
    """Whiten by the Cholesky factor of the pooled covariance, scale by √Λ, then use the isotropic loss."""
    both = torch.cat([h, h_next]).numpy()
    root = np.linalg.cholesky(np.cov(both.T) + 1e-6 * np.eye(3))
    stretch = np.exp((log_precision - log_precision.mean()) / 2)
    u, v = (torch.from_numpy(np.linalg.solve(root, (x.numpy() - both.mean(0)).T).T * stretch) for x in (h, h_next))
    return slow_infonce(u, v, "gaussian", width)


@pytest.mark.parametrize("dose", [None, 1.0, 0.3, 0.0])
def test_anisotropic_kernel_matches_its_definition(dose: float | None):
    loss = anisotropic(dose).loss(H, H_NEXT, 0)
    share = 1.0 if dose is None else dose
    assert float(loss.total.detach()) == pytest.approx(slow_anisotropic(H, H_NEXT, share * LOG_PRECISION.numpy(), 0.7))
    assert float(loss.terms["infonce"]) == float(loss.total.detach())
    assert float(loss.terms["anisotropy"]) == pytest.approx(math.exp((1.5 + 0.5) / 2))


@pytest.mark.parametrize("dose", [1.0, 0.3, 0.0])
def test_precisions_minimise_the_loss_at_full_dose(dose: float):
    objective = anisotropic(dose)
    objective.loss(H, H_NEXT, 0).total.backward()
    found = objective.log_precision.grad
    assert found is not None
    for i in range(3):
        step = 1e-5 * np.eye(3)[i]
        up, down = (slow_anisotropic(H, H_NEXT, LOG_PRECISION.numpy() + sign * step, 0.7) for sign in (1, -1))
        assert float(found[i]) == pytest.approx((up - down) / 2e-5, abs=1e-7)


def test_isotropic_loss_of_whitened_latents_is_linearly_invariant():
    """Because of whitening, scaling and mixing of latents cannot replace Λ."""
    mix = torch.randn(3, 3, dtype=torch.float64, generator=torch_generator(1, "mix"))
    objective = anisotropic(0.0)
    torch.testing.assert_close(
        objective.loss(H @ mix + 3, H_NEXT @ mix + 3, 0).total, objective.loss(H, H_NEXT, 0).total, rtol=1e-4, atol=0
    )


def test_precisions_recover_the_rates():
    """Gaussian pairs with two rates: the slow dimension gets the narrow width."""
    rho = torch.tensor([0.95, 0.6])
    z, noise = torch.randn(2, 256, 2, generator=torch_generator(0, "pairs"))
    z_next = rho * z + (1 - rho.square()).sqrt() * noise
    objective = AnInfoNCE(nn.Identity(), 2, InfoNCEConfig("anisotropic", adaptive=True))
    optimizer = torch.optim.Adam(objective.parameters(), lr=0.1)
    for step in range(80):
        optimizer.zero_grad()
        objective.loss(z, z_next, step).total.backward()
        optimizer.step()
    slow, fast = objective.log_precision.detach()
    # the kernel's exponent is ρ/(1 − ρ²) of each dimension: .95/.0975 against .6/.64
    assert float(slow - fast) == pytest.approx(math.log(0.95 / 0.0975 / (0.6 / 0.64)), rel=0.2)


def test_too_few_rows_for_the_covariance_are_rejected():
    assert anisotropic(None).smallest_batch(7) == 4
    with pytest.raises(InputError, match="projector"):
        InfoNCEConfig("anisotropic").build(Parts(nn.Identity(), 3, nn.Identity()))
