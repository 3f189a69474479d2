"""Costs against explicit sums; chunks; infinite energies; compiled rollouts."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import forked_rng, torch_generator
from jepatlas.planning import ActionBox, LatentCost, LatentCostConfig, MPPIConfig, compiled, rollout_costs
from jepatlas.testing.linear_problems import double_integrator

PROBLEM = double_integrator()
ACTIONS = torch.randn(3, 5, 6, 2, generator=torch_generator(0, "actions"), dtype=torch.float64)


def uphill(x: Tensor, y: Tensor) -> Tensor:
    """A directed energy, which detects a swap of start and goal."""
    return (y - x).clamp(min=0).sum(-1)


@pytest.mark.parametrize(
    "config",
    [
        LatentCostConfig(),
        LatentCostConfig(stage=2.0, terminal=0.0, discount=0.9),
        LatentCostConfig(stage=0.5, terminal=3.0, discount=0.8, action_penalty=0.1),
    ],
)
def test_latent_cost_against_its_sum(config: LatentCostConfig):
    found = config.build(PROBLEM.system, uphill)(PROBLEM.info, ACTIONS)
    for b in range(3):
        for k in range(5):
            h, goal, expected = PROBLEM.info["start"][b], PROBLEM.info["goal"][b], 0.0
            for s in range(6):
                u = ACTIONS[b, k, s]
                h = torch.tensor(PROBLEM.system.a_dd) @ h + torch.tensor(PROBLEM.system.b_da) @ u
                here = config.stage * uphill(h, goal) + config.action_penalty * (u @ u)
                expected += config.discount**s * here
            expected += config.terminal * uphill(h, goal)
            torch.testing.assert_close(found[b, k], expected)


def test_quadratic_cost_against_its_sum():
    weights, found = PROBLEM.cost.weights, PROBLEM.cost(PROBLEM.info, ACTIONS)
    state, action, final = (torch.tensor(w) for w in (weights.state_dd, weights.action_aa, weights.final_dd))
    h, goal, expected = PROBLEM.info["start"][1], PROBLEM.info["goal"][1], torch.tensor(0.0)
    for u in ACTIONS[1, 2]:
        expected = expected + (h - goal) @ state @ (h - goal) + u @ action @ u
        h = PROBLEM.system.rollout(h[None], u[None, None])[0, 0]
    torch.testing.assert_close(found[1, 2], expected + (h - goal) @ final @ (h - goal))


def test_chunks_bound_the_batch_and_keep_the_result():
    seen = []

    class Watched:
        def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
            seen.append(len(h))
            return PROBLEM.system.rollout(h, actions)

    def score(start: Tensor, goal: Tensor, h: Tensor, u: Tensor) -> Tensor:
        return uphill(h[:, -1], goal)

    whole = rollout_costs(Watched(), score, PROBLEM.info, ACTIONS)
    parts = rollout_costs(Watched(), score, PROBLEM.info, ACTIONS, chunk_numbers=4 * 6 * (4 + 2))
    assert seen == [15, 4, 4, 4, 3]
    torch.testing.assert_close(parts, whole)


def test_terms_of_weight_zero_are_not_computed():
    def unreachable(x: Tensor, y: Tensor) -> Tensor:
        return torch.full(torch.broadcast_shapes(x.shape, y.shape)[:-1], math.inf, dtype=x.dtype)

    for config in (LatentCostConfig(), LatentCostConfig(stage=1.0, terminal=0.0)):
        assert (LatentCost(PROBLEM.system, unreachable, config)(PROBLEM.info, ACTIONS) == math.inf).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: LatentCostConfig(terminal=0.0), "stage and terminal"),
        (lambda: LatentCostConfig(stage=-1.0), "stage is -1.0"),
        (lambda: LatentCostConfig(discount=0.0), "discount is 0.0"),
        (lambda: LatentCostConfig(action_penalty=math.nan), "action_penalty is nan"),
        (lambda: PROBLEM.cost(PROBLEM.info, ACTIONS[:2]), r"b = 3.*\(2, 5, 6, 2\)"),
        (lambda: LatentCost(Wider(), uphill)(PROBLEM.info, ACTIONS), "15, 6, 4.*15, 6, 5"),
        (lambda: ActionBox((-math.inf,), (1.0,)), "dimension 0.*-inf.*RescaleAction"),
        (lambda: ActionBox((0.0, 1.0), (1.0, 1.0)), "dimension 1.*1.0.*1.0"),
        (lambda: ActionBox((0.0,), ()), "low is .*high is"),
    ],
)
def test_invalid_costs_are_refused(wrong: Any, message: str):
    with pytest.raises(InputError, match=message):
        wrong()


class Wider:
    """Dynamics with latents of another width."""

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
        return torch.zeros(*actions.shape[:2], 5)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.change = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
        found = []
        for u in actions.unbind(1):
            h = h + self.change(torch.cat([h, u], -1))
            found.append(h)
        return torch.stack(found, 1)


@pytest.mark.slow
def test_compiled_rollouts_give_the_same_plan():
    with forked_rng(0, "network"):
        network = Network()
    ends = torch.randn(2, 4, 3, generator=torch_generator(0, "ends"))
    info, planner = {"start": ends[0], "goal": ends[1]}, MPPIConfig(3, samples=16).build(ActionBox.symmetric(1.0, 2))
    fast = compiled(network)
    plans = [
        planner(LatentCost(dynamics, lambda x, y: (x - y).norm(dim=-1)), info, torch_generator(0, "noise"))
        for dynamics in (network, fast)
    ]
    torch.testing.assert_close(plans[0].actions, plans[1].actions, rtol=0, atol=1e-4)
    assert fast.original is network
