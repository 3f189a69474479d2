"""IQE against its definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from jepatlas.core.seeding import torch_generator
from jepatlas.energy.heads import IQE, IQEConfig


def points(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch_generator(0, "points"))


def covered(u: np.ndarray, v: np.ndarray) -> float:
    cuts = np.unique(np.concatenate([u, v]))
    inside = (any(a <= low and high <= b for a, b in zip(u, v, strict=True)) for low, high in itertools.pairwise(cuts))
    return float(np.diff(cuts)[list(inside)].sum())


@pytest.mark.parametrize("chunks", [1, 3, 12])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_the_energy_matches_its_definition(chunks: int, alpha: float):
    head = IQE(12, IQEConfig(chunks, alpha, learn_alpha=False))
    x, y = points(2, 20, 12)
    for u, v, energy in zip(x.numpy(), y.numpy(), head(x, y).detach(), strict=True):
        parts = [covered(a, b) for a, b in zip(u.reshape(chunks, -1), v.reshape(chunks, -1), strict=True)]
        assert float(energy) == pytest.approx(alpha * max(parts) + (1 - alpha) * np.mean(parts), rel=1e-12)


def test_alpha_weights_the_maximum_and_is_learned_within_its_limits():
    head = IQE(12, IQEConfig(3, alpha=0.9))
    assert float(torch.as_tensor(head.reduce.alpha).detach()) == pytest.approx(0.9)
    x, y = points(2, 5, 12)
    head(x, y).sum().backward()
    assert head.reduce.logit.grad is not None and head.reduce.logit.grad > 0  # the maximum is above the mean
    with torch.no_grad():
        head.reduce.logit.fill_(-30)
    assert 0 < float(torch.as_tensor(head.reduce.alpha).detach()) < 1e-9
    assert not list(IQE(12, IQEConfig(3, learn_alpha=False)).parameters())


def test_the_energy_to_a_lower_point_is_zero():
    head = IQE(12, IQEConfig(3))
    x = points(30, 12)
    below = x - points(30, 12).abs()
    assert (head(x, below) == 0).all() and (head(below, x) > 0).all()


def test_a_union_counts_overlaps_once():
    head = IQE(2, IQEConfig(1))
    start, goal = torch.tensor([0.0, 1.0]), torch.tensor([2.0, 3.0])
    assert float(head(start, goal)) == 3
    assert float(head(start, torch.tensor([0.5, 3.0]))) == 2.5


def test_all_pairs_are_computed_in_tiles(monkeypatch: pytest.MonkeyPatch):
    from jepatlas.energy.heads import head as module

    sizes: list[int] = []
    head = IQE(8, IQEConfig(2))
    tile = head.pair_energies
    monkeypatch.setattr(module, "TILE_NUMBERS", 8 * 5**2)
    monkeypatch.setattr(head, "pair_energies", lambda x, y: sizes.append(max(len(x), len(y))) or tile(x, y))
    x = points(12, 8)
    torch.testing.assert_close(head.all_pairs(x), head(x[:, None], x))
    assert max(sizes) == 5 and len(sizes) == 9


def test_infinite_coordinates_have_one_finite_direction():
    head = IQE(4, IQEConfig(2))
    x = torch.tensor([0.0, 1.0, 2.0, 3.0])
    top = torch.tensor([0.0, math.inf, 2.0, 3.0])
    assert float(head(x, top)) == math.inf and float(head(top, x)) == 0 and float(head(top, top)) == 0
