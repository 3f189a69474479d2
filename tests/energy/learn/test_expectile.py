"""The expectile loss against its definition, and its fixed point against the discounted truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from energy.learn.tiny import MaxSum, random_steps
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.records import Steps
from jepatlas.energy.learn import EmbeddedEnergy, Expectile, ExpectileConfig, discounted, undiscount
from jepatlas.energy.learn.expectile import expectile_loss
from jepatlas.training import TrainingConfig, train


class Table(nn.Module):
    """A free parameter for every pair of states, so that only the loss determines the result."""

    guaranteed_quasimetric, pseudo = False, True

    def __init__(self, size: int) -> None:
        super().__init__()
        self.entries = nn.Parameter(torch.zeros(size, size))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.entries[x[..., 0].long(), y[..., 0].long()]


def steps(moves: list[tuple[int, int, float]], size: int) -> Steps:
    """Every move with every goal except its own start."""
    rows = torch.tensor([(a, b, cost, g) for a, b, cost in moves for g in range(size) if g != a], dtype=torch.float32)
    return Steps(rows[:, :1], rows[:, 1:2], rows[:, 2], rows[:, 3:])


def learned(moves: list[tuple[int, int, float]], size: int, config: ExpectileConfig, unit: float = 1.0) -> np.ndarray:
    objective = Expectile(EmbeddedEnergy(Table(size)), config, unit)
    optimizer, batch = torch.optim.SGD(objective.parameters(), lr=2.0), steps(moves, size)
    for step in range(300):
        optimizer.zero_grad()
        objective(batch, step).total.backward()
        optimizer.step()
        objective.after_step(step)
    states = torch.arange(float(size))[:, None]
    return objective.energy.all_pairs(states, states).numpy()


@pytest.mark.parametrize("target", [None, 0.5])
def test_the_fixed_point_on_a_chain_is_the_discounted_truth(target: float | None):
    """0 → 1 → 2 with costs 1 and 2; state 2 is absorbing."""
    found = learned([(0, 1, 1.0), (1, 2, 2.0), (2, 2, 1.0)], 3, ExpectileConfig(gamma=0.5, tau=0.7, target=target))
    truth = np.array([[0, 1, 3], [np.inf, 0, 2], [np.inf, np.inf, 0]])
    np.testing.assert_allclose(found, (1 - 0.5**truth) / 0.5, atol=1e-3)
    np.testing.assert_allclose(found, discounted(truth, 0.5), atol=1e-3)


def test_a_high_expectile_learns_the_better_step():
    """From 0, steps lead to 2 or stay. Their mean is not the shortest path, but an upper expectile is."""
    moves = [(0, 2, 1.0), (0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)]
    errors = [learned(moves, 3, ExpectileConfig(gamma=0.5, tau=tau))[0, 2] - 1.0 for tau in (0.5, 0.9, 0.99)]
    assert errors[0] > errors[1] > errors[2] > -1e-3
    assert errors[2] < 0.02


def test_costs_in_another_unit():
    moves = [(0, 1, 10.0), (1, 1, 10.0)]
    found = learned(moves, 2, ExpectileConfig(gamma=0.5), unit=10.0)
    assert found[0, 1] == pytest.approx(10 * discounted(np.array([1.0]), 0.5)[0], abs=1e-2)


@pytest.mark.parametrize("tau", [0.5, 0.8])
def test_the_loss_matches_its_formula(tau: float):
    batch = random_steps()
    goal = torch.where(torch.arange(16)[:, None] < 4, batch.x, batch.goal)  # some states equal their goal
    batch = Steps(batch.x, batch.x_next, torch.ones(16), goal)
    energy = EmbeddedEnergy(MaxSum(2), nn.Linear(4, 6))
    total = Expectile(energy, ExpectileConfig(gamma=0.9, tau=tau))(batch, 0).total.item()
    v, v_next = -energy(batch.x, goal), -energy(batch.x_next, goal)
    expected = 0.0
    for i in range(16):
        u = -1.0 * (i >= 4) + 0.9 * v_next[i].item() - v[i].item()
        expected += abs(tau - (u < 0)) * u**2 / 16
    assert total == pytest.approx(expected, rel=1e-5)


def test_the_next_value_has_no_gradient():
    batch, energy = random_steps(), EmbeddedEnergy(MaxSum(2), nn.Linear(4, 6))
    objective = Expectile(energy, ExpectileConfig(gamma=0.9))
    fixed = -energy(batch.x_next, batch.goal).detach()
    by_hand = expectile_loss(
        -discounted(batch.cost, 0.9) + 0.9**batch.cost * fixed + energy(batch.x, batch.goal), 0.8
    ).mean()
    parameters = list(energy.parameters())
    for ours, expected in zip(
        torch.autograd.grad(objective(batch, 0).total, parameters),
        torch.autograd.grad(by_hand, parameters),
        strict=True,
    ):
        torch.testing.assert_close(ours, expected)


def test_the_target_is_a_moving_average_and_is_saved(tmp_path: Path):
    layer = nn.Linear(4, 6)
    first = layer.weight.detach().clone()
    objective = Expectile(EmbeddedEnergy(MaxSum(2), layer), ExpectileConfig(target=0.75))
    config = TrainingConfig(steps=1, batch_size=16, collapse=0)
    train(objective, lambda step: random_steps(), config, tmp_path, recipe="mine")
    average = objective.state_dict()["target.embedding.weight"]
    torch.testing.assert_close(average, (0.75 * first + 0.25 * layer.weight).detach())
    assert not torch.equal(first, layer.weight)


def test_undiscount_inverts_discounted():
    truth = np.array([0.0, 0.5, 1.0, 7.0, np.inf])
    np.testing.assert_allclose(undiscount(discounted(truth, 0.9), 0.9), truth)
    torch.testing.assert_close(undiscount(discounted(torch.tensor(truth), 0.9), 0.9), torch.tensor(truth))
    steps = np.cumsum(0.9 ** np.arange(7))  # a geometric series
    np.testing.assert_allclose(discounted(np.arange(1.0, 8.0), 0.9), steps)


def test_undiscounting_can_violate_the_triangle_inequality():
    """1.9 ≤ 1 + 1 holds for the values, but 4.3 ≤ 1 + 1 does not hold for the costs."""
    direct, leg = undiscount(np.array([1.9, 1.0]), 0.5)
    assert direct > 2 * leg


@pytest.mark.parametrize("options", [{"gamma": 1.0}, {"gamma": 0.0}, {"tau": 0.0}, {"tau": 1.0}, {"target": 1.0}])
def test_invalid_settings_are_rejected(options: dict):
    with pytest.raises(InputError, match=next(iter(options))):
        ExpectileConfig(**options)
