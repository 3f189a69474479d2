"""The multiplier against a game of two players with an optimiser each."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.energy.learn import Multiplier


def push(theta: Tensor) -> Tensor:
    return -theta.sum()


def gap(theta: Tensor) -> Tensor:
    return (theta.square() - 1).mean()  # at most 0 is allowed


def two_players(rate: float, steps: int, lr: float) -> tuple[Tensor, Tensor]:
    """One descends in θ, the other climbs in raw at its own learning rate."""
    theta = nn.Parameter(torch.tensor([0.2, -0.4]))
    raw = nn.Parameter(torch.tensor(math.log(math.expm1(0.5))))
    down = torch.optim.AdamW([theta], lr, weight_decay=0.0)
    up = torch.optim.AdamW([raw], rate * lr, weight_decay=0.0, maximize=True)
    for _ in range(steps):
        loss = push(theta) + F.softplus(raw) * gap(theta)
        theta.grad, raw.grad = torch.autograd.grad(loss, [theta, raw])
        down.step()
        up.step()
    return theta.detach(), F.softplus(raw).detach()


def one_player(rate: float, steps: int, lr: float) -> tuple[Tensor, Tensor]:
    theta, multiplier = nn.Parameter(torch.tensor([0.2, -0.4])), Multiplier(0.5, rate)
    both = torch.optim.AdamW([theta, *multiplier.parameters()], lr, weight_decay=0.0)
    for _ in range(steps):
        both.zero_grad()
        (push(theta) + multiplier() * gap(theta)).backward()
        both.step()
    return theta.detach(), multiplier().detach()


@pytest.mark.parametrize("rate", [1.0, 10.0])
def test_one_optimiser_plays_as_two_do(rate: float):
    for ours, expected in zip(one_player(rate, 60, 0.01), two_players(rate, 60, 0.01), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def test_the_game_ends_where_the_constraint_holds():
    theta, multiplier = one_player(1.0, 1500, 0.01)
    torch.testing.assert_close(theta, torch.ones(2), atol=0.1, rtol=0)  # the largest sum with mean square 1
    assert float(multiplier) == pytest.approx(1.0, abs=0.1)  # −1 + λ·θ = 0


def raw_of(multiplier: Multiplier) -> float:
    return math.log(math.expm1(multiplier().item()))


def test_a_rate_changes_the_step_and_not_the_gradient():
    grads, steps = [], []
    for rate in (1.0, 50.0):
        multiplier = Multiplier(0.5, rate)
        before = raw_of(multiplier)
        optimizer = torch.optim.AdamW(multiplier.parameters(), 1e-3, weight_decay=0.0)
        (3.0 * multiplier()).backward()
        assert multiplier.parameter.grad is not None
        grads.append(multiplier.parameter.grad.item())
        optimizer.step()
        steps.append(raw_of(multiplier) - before)
    assert grads[0] == pytest.approx(grads[1], rel=1e-5) and grads[0] < 0
    assert steps == pytest.approx([1e-3, 50e-3], rel=1e-2)


@pytest.mark.parametrize(("violation", "sign"), [(0.3, 1), (-0.3, -1)])
def test_it_rises_where_the_constraint_is_broken_and_falls_where_it_holds(violation: float, sign: int):
    multiplier = Multiplier(0.01, 10.0)
    assert multiplier().item() == pytest.approx(0.01, rel=1e-4)
    optimizer = torch.optim.AdamW(multiplier.parameters(), 1e-2)
    values = [multiplier().item()]
    for _ in range(20):
        optimizer.zero_grad()
        (multiplier() * violation).backward()
        optimizer.step()
        values.append(multiplier().item())
    assert (sign * torch.tensor(values).diff() > 0).all()
