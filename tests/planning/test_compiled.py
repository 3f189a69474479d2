from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from jepatlas.core.seeding import forked_rng, torch_generator
from jepatlas.planning import ActionBox, LatentCost, MPPIConfig, compiled


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
def test_compiled_rollouts_plan_alike():
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
