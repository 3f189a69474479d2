"""SIGReg against its definition, and each option against its documented effect."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.integrate import trapezoid
from torch import Tensor

from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import LeJEPA, SIGReg, SIGRegConfig, draw_slices
from jepatlas.objectives.objective_configs import Design
from jepatlas.objectives.sigreg import LOW_DISCREPANCY_DIM, sigreg

DESIGNS: tuple[Design, ...] = ("random", "low-discrepancy")


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch_generator(seed, "h"))


def pair(rows: int, dim: int, rho: float = 0.8, seed: int = 0) -> tuple[Tensor, Tensor]:
    z, noise = normal(2, rows, dim, seed=seed)
    return z, rho * z + math.sqrt(1 - rho**2) * noise


def bent(rows: int, dim: int) -> Tensor:
    """Not Gaussian, not isotropic, not centred."""
    h = normal(rows, dim)
    h[:, 0] *= 0.5
    h[:, -1] = h[:, -1] ** 3 / math.sqrt(15) + 0.3
    return h


def slow_sigreg(h: Tensor, slices: Tensor, knots: int, limit: float) -> float:
    """The definition, one slice and one frequency at a time."""
    values = []
    for a in slices.double().numpy().T:
        u = h.numpy() @ a
        t = np.linspace(-limit, limit, 2 * knots - 1)  # both signs, without using symmetry
        empirical = np.array([np.mean(np.exp(1j * s * u)) for s in t])
        gap = np.abs(empirical - np.exp(-(t**2) / 2)) ** 2
        values.append(len(u) * trapezoid(gap * np.exp(-(t**2) / 2), t))
    return float(np.mean(values))


def slices_of(config: SIGRegConfig, dim: int, seed: int, step: int) -> Tensor:
    return draw_slices(dim, config.slices, torch_generator(seed, "slices", step), config.design).double()


@pytest.mark.parametrize(("knots", "limit"), [(17, 3.0), (5, 1.0), (2, 2.0), (40, 6.0)])
@pytest.mark.parametrize(("rows", "dim"), [(40, 3), (7, 1), (1, 2)])
def test_value_matches_the_definition(rows: int, dim: int, knots: int, limit: float):
    h = bent(rows, dim)
    slices = slices_of(SIGRegConfig(slices=6, design="random"), dim, 0, 0)
    assert float(sigreg(h, slices, knots, limit)) == pytest.approx(slow_sigreg(h, slices, knots, limit), rel=1e-9)


def test_many_knots_converge_to_the_closed_form_integral():
    """n ∫ |φ̂ − φ|² φ dt has a closed form: (√2π) ΣΣ e^{−(u−v)²/2}/n − 2√π Σ e^{−u²/4} + n √(2π/3)."""
    h, slices = bent(50, 2), slices_of(SIGRegConfig(slices=3), 2, 0, 0)
    expected = []
    for u in (h @ slices).T.numpy():
        among = math.sqrt(2 * math.pi) * np.exp(-((u[:, None] - u) ** 2) / 2).sum() / 50
        to_normal = 2 * math.sqrt(math.pi) * np.exp(-(u**2) / 4).sum()
        expected.append(among - to_normal + 50 * math.sqrt(2 * math.pi / 3))
    assert float(sigreg(h, slices, 200, 9.0)) == pytest.approx(np.mean(expected), rel=1e-9)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("views", ["each", "pooled"])
def test_settings_select_slices_and_views(design: Design, views):
    h, h_next = bent(30, 3), bent(30, 3).flip(0) + normal(30, 3, seed=5)
    config = SIGRegConfig(slices=7, design=design, knots=9, limit=2.0, views=views)
    slices = slices_of(config, 3, 11, 4)
    if views == "pooled":
        expected = slow_sigreg(torch.cat([h, h_next]), slices, 9, 2.0)
    else:
        expected = (slow_sigreg(h, slices, 9, 2.0) + slow_sigreg(h_next, slices, 9, 2.0)) / 2
    assert float(SIGReg(config, seed=11)(h, h_next, 4)) == pytest.approx(expected, rel=1e-9)


def test_each_setting_changes_the_value():
    base = SIGRegConfig(slices=8, design="random")
    h, h_next = bent(30, 3), 0.5 * bent(30, 3) + normal(30, 3, seed=5)
    others = [
        {"slices": 9},
        {"design": "low-discrepancy"},
        {"fresh": False},
        {"knots": 16},
        {"limit": 2.5},
        {"views": "pooled"},
    ]
    values = [float(SIGReg(replace(base, **change))(h, h_next, 4)) for change in ({}, *others)]
    assert len({round(value, 6) for value in values}) == len(values)


def test_only_fresh_slices_change_with_the_step():
    h = bent(30, 4)
    fresh, kept = SIGReg(SIGRegConfig(slices=5), seed=2), SIGReg(SIGRegConfig(slices=5, fresh=False), seed=2)
    assert len({float(fresh(h, h, step)) for step in range(4)}) == 4
    assert {float(kept(h, h, step)) for step in range(4)} == {float(fresh(h, h, 0))}
    assert float(kept(h, h, 0)) != float(SIGReg(SIGRegConfig(slices=5, fresh=False), seed=3)(h, h, 0))


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("dim", [1, 2, 3, 8, 100])
def test_slices_are_unit_vectors_determined_by_the_generator(design: Design, dim: int):
    draws = [draw_slices(dim, 12, torch_generator(seed, "slices", step), design) for seed, step in [(0, 1), (0, 1)]]
    assert draws[0].shape == (dim, 12)
    torch.testing.assert_close(draws[0].norm(dim=0), torch.ones(12))
    assert torch.equal(draws[0], draws[1])
    if dim > 1:
        for seed, step in [(0, 2), (1, 1)]:
            assert not torch.allclose(draws[0], draw_slices(dim, 12, torch_generator(seed, "slices", step), design))


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("dim", [2, 3, 8])
def test_slices_are_isotropic(design: Design, dim: int):
    """Over many draws: E aaᵀ = I/d and E a_i⁴ = 3/d(d+2), as for the uniform distribution on the sphere."""
    a = torch.cat([draw_slices(dim, 16, torch_generator(0, "slices", step), design) for step in range(1500)], 1)
    second, fourth = a @ a.T / a.shape[1], a.pow(4).mean(1)
    torch.testing.assert_close(second, torch.eye(dim) / dim, atol=0.012, rtol=0)
    torch.testing.assert_close(fourth, torch.full((dim,), 3 / (dim * (dim + 2))), atol=0.012, rtol=0)


def test_low_discrepancy_in_the_plane_is_equal_angles_on_the_half_circle():
    a = draw_slices(2, 10, torch_generator(3, "slices"), "low-discrepancy").double()
    angles = torch.atan2(a[1], a[0])
    torch.testing.assert_close(angles.diff(), torch.full((9,), math.pi / 10).double(), atol=1e-6, rtol=0)
    assert 0 <= float(angles[0]) <= math.pi / 10


def test_low_discrepancy_falls_back_to_independent_slices():
    def drawn(dim: int, design: Design) -> Tensor:
        return draw_slices(dim, 6, torch_generator(0, "slices"), design)

    assert not torch.equal(drawn(LOW_DISCREPANCY_DIM, "low-discrepancy"), drawn(LOW_DISCREPANCY_DIM, "random"))
    for dim in (LOW_DISCREPANCY_DIM + 1, 30_000):  # a Sobol sequence has at most 21,201 dimensions
        assert torch.equal(drawn(dim, "low-discrepancy"), drawn(dim, "random"))


@pytest.mark.parametrize(("dim", "least"), [(2, 100.0), (8, 1.5)])
def test_low_discrepancy_slices_reduce_variance_between_draws(dim: int, least: float):
    h = bent(128, dim)
    variance = {}
    for design in DESIGNS:
        config = SIGRegConfig(slices=64, design=design)
        variance[design] = np.var([float(SIGReg(config, seed)(h, h, 0)) for seed in range(150)])
    assert variance["random"] > least * variance["low-discrepancy"]


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.95])
@pytest.mark.parametrize("config", [SIGRegConfig(), SIGRegConfig(views="pooled"), SIGRegConfig(knots=9, limit=5.0)])
def test_null_is_the_mean_over_gaussian_latents(config: SIGRegConfig, rho: float):
    values, nulls = [], []
    for seed in range(150):
        h, h_next = pair(64, 4, rho, seed)
        values.append(float(SIGReg(config, seed)(h, h_next, 0)))
        nulls.append(float(SIGReg(config, seed).null(h, h_next)))
    error = np.std(values) / math.sqrt(len(values))
    assert abs(np.mean(values) - np.mean(nulls)) < 4 * error
    assert np.std(nulls) < 0.05 * np.mean(nulls)


@pytest.mark.parametrize("views", ["each", "pooled"])
def test_lejepa_reports_the_null(views):
    objective = LeJEPA(torch.nn.Identity())
    objective.sigreg = SIGReg(SIGRegConfig(views=views))
    h, h_next = pair(200, 3)
    terms = objective.loss(h, h_next, 0).terms
    assert float(terms["sigreg_null"]) == float(objective.sigreg.null(h, h_next))
    far = objective.loss(h + 1, h_next + 1, 0).terms
    assert far["sigreg"] > 10 * far["sigreg_null"]


@pytest.mark.parametrize("views", ["each", "pooled"])
def test_gradients(views):
    h, h_next = (view.requires_grad_() for view in pair(9, 3))
    regulariser = SIGReg(SIGRegConfig(slices=4, views=views))
    assert torch.autograd.gradcheck(lambda a, b: regulariser(a, b, 0), (h, h_next))


def test_minimising_sigreg_makes_latents_gaussian():
    h = torch.rand(200, 2, dtype=torch.float64, generator=torch_generator(0, "h")).requires_grad_()
    optimizer = torch.optim.Adam([h], lr=0.1)
    regulariser = SIGReg(SIGRegConfig(slices=16))
    for step in range(300):
        optimizer.zero_grad()
        regulariser(h, h, step).backward()
        optimizer.step()
    h = h.detach()
    assert float(regulariser(h, h, 999)) < float(regulariser.null(h, h))
    torch.testing.assert_close(h.T.cov(), torch.eye(2).double(), atol=0.15, rtol=0)
