"""Embedded and ported energies: definition, declared properties and rejected input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from energy.learn.tiny import MaxSum
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.energy.audit import audit
from jepatlas.energy.heads import HEADS, IQE, L2, IQEConfig, SquaredL2
from jepatlas.energy.learn import EmbeddedEnergy, PortedEnergy


class Squares(nn.Module):
    guaranteed_quasimetric, pseudo = False, False

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x - y).square().sum(-1)


def made(floor: float = 0.3, scale: float = 2.0) -> EmbeddedEnergy:
    torch.manual_seed(0)
    energy = EmbeddedEnergy(MaxSum(2), nn.Sequential(nn.Linear(3, 8), nn.Tanh()), floor)
    energy.scale.fill_(scale)
    return energy


def test_the_energy_matches_its_definition():
    energy, x, y = made(), torch.randn(5, 3), torch.randn(5, 3)
    u, v = energy.embedding(x), energy.embedding(y)
    rise = (v - u).relu()
    expected = 2.0 * torch.maximum(rise[:, :4].sum(1), rise[:, 4:].sum(1)) + 0.3 * (x - y).square().sum(1).sqrt()
    torch.testing.assert_close(energy(x, y), expected)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("tile", [1, 7, 12, 10_000])
def test_all_pairs_match_single_pairs(tile: int, nested: bool):
    energy, x, y = made(), torch.randn(6, 3), torch.randn(4, 3)
    energy = EmbeddedEnergy(energy, floor=0.5) if nested else energy  # a head with its own all_pairs
    torch.testing.assert_close(energy.all_pairs(x, y, tile), energy(x[:, None], y[None]))


@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_an_embedded_energy_is_a_quasimetric_if_its_head_is(floor: float):
    energy, x = made(floor), torch.randn(40, 3)
    d = energy.all_pairs(x, x)
    assert energy.guaranteed_quasimetric
    assert torch.equal(d.diagonal(), torch.zeros(40))
    assert (d[:, None, :] <= d[:, :, None] + d[None, :, :] + 1e-5).all()
    assert (d >= floor * (x[:, None] - x[None]).norm(dim=-1) - 1e-5).all()
    assert not EmbeddedEnergy(Squares()).guaranteed_quasimetric


def test_pseudo_unless_there_is_a_floor_or_an_injective_embedding():
    merging = nn.Linear(3, 2)
    assert EmbeddedEnergy(Squares(), merging).pseudo and EmbeddedEnergy(MaxSum()).pseudo
    assert not EmbeddedEnergy(Squares()).pseudo
    assert not EmbeddedEnergy(MaxSum(), merging, floor=0.1).pseudo


def test_gradients_are_finite_at_identical_points():
    energy, x = made(), torch.randn(5, 3, requires_grad=True)
    energy(x, x).sum().backward()
    assert x.grad is not None and x.grad.isfinite().all()


def test_an_embedded_energy_can_be_a_head():
    energy, outer = made(), nn.Linear(2, 3)
    x, y = torch.randn(5, 2), torch.randn(5, 2)
    torch.testing.assert_close(EmbeddedEnergy(energy, outer)(x, y), energy(outer(x), outer(y)))


def test_heads_compute_in_float32_under_autocast():
    energy, x, y = made(), torch.randn(5, 3), torch.randn(5, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert energy(x, y).dtype == torch.float32


@pytest.mark.parametrize("floor", [-0.1, float("nan"), float("inf")])
def test_invalid_floors_are_rejected(floor: float):
    with pytest.raises(InputError, match="floor"):
        EmbeddedEnergy(MaxSum(), floor=floor)


def random_map(d_out: int, d_in: int, seed: int = 0) -> LinearMap:
    rng = np.random.default_rng(seed)
    scales = rng.uniform(0.5, 2, d_in), rng.uniform(0.5, 2, d_out)
    weight, x_mean, y_mean = rng.standard_normal((d_out, d_in)), rng.standard_normal(d_in), rng.standard_normal(d_out)
    return LinearMap(weight, x_mean, y_mean, *scales)


@pytest.mark.parametrize("kind", HEADS)
def test_a_ported_energy_is_the_source_energy_of_the_mapped_latents(kind: str) -> None:
    config: Any = HEADS[kind]()
    head, to_source = config.build(16), random_map(16, 5)
    x, y = np.random.default_rng(1).standard_normal((2, 30, 5))
    ported = PortedEnergy(head, to_source)
    here = [torch.as_tensor(to_source.apply(rows), dtype=torch.float32) for rows in (x, y)]
    there = [torch.as_tensor(rows, dtype=torch.float32) for rows in (x, y)]
    torch.testing.assert_close(ported(*there), head(*here), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ported.all_pairs(*there), head.all_pairs(*here), rtol=1e-4, atol=1e-4)
    assert ported(*there).dtype == torch.float32
    assert ported.guaranteed_quasimetric == head.guaranteed_quasimetric


@given(st.integers(0, 2**31), st.integers(2, 6), st.integers(2, 6))
@settings(max_examples=6, deadline=None)
def test_a_quasimetric_stays_one_under_any_map(seed: int, d_out: int, d_in: int) -> None:
    ported = PortedEnergy(IQE(2 * d_out, IQEConfig(chunks=2)), random_map(2 * d_out, d_in, seed))
    points = np.random.default_rng(seed).standard_normal((30, d_in)).astype(np.float32)
    assert audit(ported, points).passed


def test_a_ported_energy_is_pseudo_if_the_map_is_not_injective() -> None:
    weight = np.diag([1.0, 2.0, 0.0])
    full, lossy = (LinearMap(one, np.zeros(3), np.zeros(3)) for one in (np.eye(3), weight))
    assert not PortedEnergy(L2(3), full).pseudo and PortedEnergy(L2(3), lossy).pseudo
    assert not PortedEnergy(L2(4), random_map(4, 3)).pseudo  # injective
    assert PortedEnergy(L2(2), random_map(2, 3)).pseudo
    assert PortedEnergy(IQE(16), random_map(16, 3)).pseudo == IQE(16).pseudo
    apart = torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.0, 0.0, -1.0]])
    assert float(PortedEnergy(L2(3), lossy)(*apart)) == 0
    assert not PortedEnergy(SquaredL2(3), full).guaranteed_quasimetric


def test_large_means_do_not_lose_precision() -> None:
    """Latents far from the origin are mapped in float64."""
    far = LinearMap(np.eye(2), np.full(2, 1e6), np.zeros(2))
    x, y = (1e6 + torch.tensor(rows, dtype=torch.float64) for rows in ([[0.25, 0.0]], [[0.5, 0.0]]))
    assert float(PortedEnergy(L2(2), far)(x, y)) == pytest.approx(0.25)


def test_ported_energies_broadcast_and_have_gradients() -> None:
    ported = PortedEnergy(L2(2), random_map(2, 3))
    x, y = torch.randn(4, 1, 3, requires_grad=True), torch.randn(5, 3)
    energies = ported(x, y)
    energies.sum().backward()
    assert energies.shape == (4, 5) and x.grad is not None and x.grad.abs().sum() > 0


def test_maps_that_do_not_fit_are_rejected() -> None:
    with pytest.raises(InputError, match=r"\b3\b.*\b2\b"):
        PortedEnergy(L2(2), random_map(2, 3))(torch.zeros(1, 2), torch.zeros(1, 2))
    with pytest.raises(InputError, match="to_source"):
        PortedEnergy(L2(2), LinearMap(np.full((2, 2), np.nan), np.zeros(2), np.zeros(2)))
