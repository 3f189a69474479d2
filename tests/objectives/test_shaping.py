"""Shaping terms for latents of windows, each against its definition."""

import itertools
import math

import pytest
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.normality import epps_pulley
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import Contrastive, Regressive, SIGRegConfig, SIGRegShaping, VCRegShaping, draw_slices


def latents(rows: int = 30, times: int = 3, dim: int = 4) -> torch.Tensor:
    return torch.randn(rows, times, dim, generator=torch.Generator().manual_seed(0))


def test_sigreg_is_the_mean_over_times():
    h = latents()
    slices = draw_slices(4, 32, torch_generator(5, "slices", 7), "low-discrepancy")
    each = [epps_pulley(h[:, time] @ slices).mean() for time in range(3)]
    assert torch.allclose(SIGRegShaping().term(h, 7, 5), torch.stack(each).mean(), rtol=1e-5)


def test_vcreg_is_the_sum_of_hinge_and_covariance_terms():
    h = 0.5 * latents()
    rows = h.reshape(-1, 4)
    cov = torch.cov(rows.T)
    hinge = torch.stack([max(torch.tensor(0.0), 1 - (cov[i, i] + 1e-4).sqrt()) for i in range(4)]).mean()
    off = sum(cov[i, j] ** 2 for i, j in itertools.permutations(range(4), 2)) / 4
    assert torch.allclose(VCRegShaping(covariance=0.3).term(h, 0, 0), hinge + 0.3 * off, rtol=1e-4)


def test_contrast_is_the_log_probability_of_the_next_frame():
    h, total = latents(rows=8), 0.0
    for i in range(8):
        forth = [math.exp(-float((h[i, 0] - h[j, 1]).square().sum()) / 2) for j in range(8)]
        back = [math.exp(-float((h[j, 0] - h[i, 1]).square().sum()) / 2) for j in range(8)]
        total -= (math.log(forth[i] / sum(forth)) + math.log(back[i] / sum(back))) / 2 / 8
    assert float(Contrastive().term(h, 0, 0)) == pytest.approx(total, rel=1e-4)


def test_regressive_term_matches_distances_to_elapsed_steps():
    line = torch.arange(4.0)[None, :, None] * torch.tensor([0.6, 0.8])
    assert Regressive().term(line.expand(5, 4, 2), 0, 0) < 1e-6
    h, errors = latents(rows=2), []
    for row, (s, t) in itertools.product(range(2), itertools.combinations(range(3), 2)):
        errors.append((float((h[row, s] - h[row, t]).norm()) - (t - s)) ** 2)
    assert float(Regressive().term(h, 0, 0)) == pytest.approx(sum(errors) / len(errors), rel=1e-4)


def test_equal_latents_have_finite_gradients():
    h = torch.zeros(4, 3, 2, requires_grad=True)
    Regressive().term(h, 0, 0).backward()
    assert h.grad is not None and h.grad.isfinite().all()


@pytest.mark.parametrize("shaping", [SIGRegShaping, VCRegShaping, Contrastive, Regressive])
def test_invalid_weights_are_rejected(shaping):
    with pytest.raises(InputError, match="weight"):
        shaping(weight=-1)


def test_pooled_views_are_rejected():
    with pytest.raises(InputError, match="views"):
        SIGRegShaping(sigreg=SIGRegConfig(views="pooled"))
