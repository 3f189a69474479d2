"""Properties of single planners beyond the common contract."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import torch_generator
from jepatlas.planning import ActionBox, CEMConfig, GradientConfig, ICEMConfig, ShootingConfig, StraightLineConfig
from jepatlas.planning.cem import cheapest, refit
from jepatlas.planning.gradient import Adam
from jepatlas.testing.linear_problems import double_integrator, walker

BOX = ActionBox.symmetric(3.0, 2)
NOISE = torch_generator(0, "unused")


class CountingCost:
    """A cost that records the number of sequences of each call."""

    def __init__(self) -> None:
        self.cost, self.counts = double_integrator().cost, []

    def __call__(self, info: dict[str, Tensor], actions: Tensor) -> Tensor:
        self.counts.append(actions.shape[1])
        return self.cost(info, actions)


@pytest.mark.parametrize(
    ("config", "counts"),
    [
        (CEMConfig(4, samples=20, elites=5, iterations=3), [20, 20, 20, 1]),
        (ICEMConfig(4, samples=50, elites=10, iterations=4, decay=1.25), [50, 40, 32, 25]),
        (ICEMConfig(4, samples=50, elites=10, iterations=4, decay=2.0), [50, 25, 20, 20]),
        (ShootingConfig(4, samples=30), [30]),
        (GradientConfig(4, steps=2, restarts=3), [3, 3, 4]),
    ],
)
def test_number_of_evaluated_sequences(config: CEMConfig, counts: list[int]):
    cost = CountingCost()
    config.build(BOX)(cost, double_integrator().info, torch_generator(0, "noise"))  # pyright: ignore
    assert cost.counts == counts


def test_refit_uses_finite_elites():
    candidates = torch.randn(2, 6, 3, 2, generator=torch_generator(0, "candidates"), dtype=torch.float64)
    costs = torch.tensor([[3.0, 1.0, math.inf, 2.0, 5.0, 4.0], [math.inf, 1.0] + [math.inf] * 4], dtype=torch.float64)
    old = torch.ones(2, 3, 2, dtype=torch.float64)
    mean, std = refit(old, 2 * old, *cheapest(candidates, costs, 3), 0.25)
    elites = candidates[0, [1, 3, 0]]
    torch.testing.assert_close(mean[0], 0.25 + 0.75 * elites.mean(0))
    torch.testing.assert_close(std[0], 0.5 + 0.75 * elites.std(0, unbiased=False))
    assert torch.equal(mean[1], old[1]) and torch.equal(std[1], 2 * old[1])  # a single finite elite has no spread


def test_adam_against_torch():
    first = torch.randn(4, 3, generator=torch_generator(0, "first"), dtype=torch.float64)
    ours, theirs, adam = first, first.clone().requires_grad_(), Adam(0.1)
    optimizer = torch.optim.Adam([theirs], lr=0.1)
    for _ in range(20):
        theirs.grad = theirs.detach() ** 3 - 1
        optimizer.step()
        ours = ours - adam(ours**3 - 1)
    torch.testing.assert_close(ours, theirs.detach())


def test_costs_without_gradient_are_refused():
    info = double_integrator().info
    with pytest.raises(InputError, match="gradient"):
        GradientConfig(4).build(BOX)(
            lambda info, actions: torch.zeros(actions.shape[:2]), info, torch_generator(0, "n")
        )


def test_gradient_planner_finds_optima_at_the_bounds():
    """The optimum is at the bound, and an action at the bound can leave it again."""
    info, box = walker().info, ActionBox.symmetric(0.7, 2)
    warm = torch.full((3, 4, 2), 0.7, dtype=torch.float64)
    goal = -0.3

    def cost(info: dict[str, Tensor], actions: Tensor) -> Tensor:
        return (actions[..., 0] + 5).square().sum(-1) + (actions[..., 1] - goal).square().sum(-1)

    found = GradientConfig(4, steps=100).build(box)(cost, info, torch_generator(0, "noise"), warm)  # pyright: ignore
    assert (found.actions[..., 0] == -0.7).all()
    torch.testing.assert_close(found.actions[..., 1], torch.full((3, 4), goal, dtype=torch.float64), rtol=0, atol=1e-2)


def test_straight_line_needs_dynamics():
    with pytest.raises(InputError, match="CountingCost"):
        StraightLineConfig(4).build(BOX)(CountingCost(), walker().info, torch_generator(0, "n"))  # pyright: ignore
