"""An embedded energy against its definition, and what it keeps of its head."""

from __future__ import annotations

import pytest
import torch
from energy.learn.tiny import MaxSum
from torch import nn

from jepatlas.core.errors import InputError
from jepatlas.energy.learn import EmbeddedEnergy


class SquaredL2(nn.Module):
    guaranteed_quasimetric, pseudo = False, False

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x - y).square().sum(-1)


def made(floor: float = 0.3, scale: float = 2.0) -> EmbeddedEnergy:
    torch.manual_seed(0)
    energy = EmbeddedEnergy(MaxSum(2), nn.Sequential(nn.Linear(3, 8), nn.Tanh()), floor)
    energy.scale.fill_(scale)
    return energy


def test_the_definition():
    energy, x, y = made(), torch.randn(5, 3), torch.randn(5, 3)
    u, v = energy.embedding(x), energy.embedding(y)
    rise = (v - u).relu()
    expected = 2.0 * torch.maximum(rise[:, :4].sum(1), rise[:, 4:].sum(1)) + 0.3 * (x - y).square().sum(1).sqrt()
    torch.testing.assert_close(energy(x, y), expected)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("tile", [1, 7, 12, 10_000])
def test_all_pairs_are_those_one_by_one(tile: int, nested: bool):
    energy, x, y = made(), torch.randn(6, 3), torch.randn(4, 3)
    energy = EmbeddedEnergy(energy, floor=0.5) if nested else energy  # a head with tables of its own
    torch.testing.assert_close(energy.all_pairs(x, y, tile), energy(x[:, None], y[None]))


@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_it_is_the_quasimetric_that_its_head_is(floor: float):
    energy, x = made(floor), torch.randn(40, 3)
    d = energy.all_pairs(x, x)
    assert energy.guaranteed_quasimetric
    assert torch.equal(d.diagonal(), torch.zeros(40))
    assert (d[:, None, :] <= d[:, :, None] + d[None, :, :] + 1e-5).all()
    assert (d >= floor * (x[:, None] - x[None]).norm(dim=-1) - 1e-5).all()
    assert not EmbeddedEnergy(SquaredL2()).guaranteed_quasimetric


def test_distinct_points_are_apart_by_a_floor_or_where_nothing_merges_them():
    merging = nn.Linear(3, 2)
    assert EmbeddedEnergy(SquaredL2(), merging).pseudo and EmbeddedEnergy(MaxSum()).pseudo
    assert not EmbeddedEnergy(SquaredL2()).pseudo
    assert not EmbeddedEnergy(MaxSum(), merging, floor=0.1).pseudo


def test_gradients_are_finite_at_identical_points():
    energy, x = made(), torch.randn(5, 3, requires_grad=True)
    energy(x, x).sum().backward()
    assert x.grad is not None and x.grad.isfinite().all()


def test_an_embedded_energy_can_be_a_head():
    energy, outer = made(), nn.Linear(2, 3)
    x, y = torch.randn(5, 2), torch.randn(5, 2)
    torch.testing.assert_close(EmbeddedEnergy(energy, outer)(x, y), energy(outer(x), outer(y)))


def test_half_precision_ends_before_the_head():
    energy, x, y = made(), torch.randn(5, 3), torch.randn(5, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert energy(x, y).dtype == torch.float32


@pytest.mark.parametrize("floor", [-0.1, float("nan"), float("inf")])
def test_a_floor_is_not_negative(floor: float):
    with pytest.raises(InputError, match="floor c"):
        EmbeddedEnergy(MaxSum(), floor=floor)
