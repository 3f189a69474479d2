"""MPPI's weights against their formula, and bimodal costs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import Tensor

from jepatlas.core.seeding import torch_generator
from jepatlas.planning import ActionBox, MPPIConfig
from jepatlas.planning.mppi import path_weights

COSTS = torch.tensor([[1.0, 2.0, 4.0, math.inf], [3.0, 3.0, 3.0, 3.0], [math.inf] * 4, [math.inf, 7.0, math.inf, 8.0]])


@pytest.mark.parametrize("relative", [False, True])
def test_weights_match_the_formula(relative: bool):
    found = path_weights(COSTS.double(), 0.5, relative).numpy()
    for row, costs in zip(found, COSTS.double().numpy(), strict=True):
        finite = costs[np.isfinite(costs)]
        unit = 0.5 * (finite.std() or 1.0) if relative and len(finite) else 0.5
        raw = np.exp(-costs / unit)
        np.testing.assert_allclose(row, raw / raw.sum() if len(finite) else 0.0, atol=1e-12)


def test_weights_do_not_overflow():
    far = torch.tensor([[1e30, 1.1e30, 3e38], [-1e30, 0.0, 1.0]])
    for relative in (False, True):
        weights = path_weights(far, 1e-3, relative)
        assert weights.isfinite().all()
        torch.testing.assert_close(weights.sum(1), torch.ones(2))


def test_relative_weights_are_invariant_to_the_unit_of_cost():
    costs = torch.rand(3, 50, generator=torch_generator(0, "costs"), dtype=torch.float64)
    torch.testing.assert_close(path_weights(1e3 * costs + 7, 0.2, True), path_weights(costs, 0.2, True))


def test_bimodal_costs_give_one_of_the_modes():
    """The mean of both modes is in the wall, where the cost is +∞."""

    def around(info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        far = actions[..., 0, 0].abs()
        return torch.where(far > 0.5, far, math.inf)

    info = {"start": torch.zeros(1, 1), "goal": torch.ones(1, 1)}
    planner = MPPIConfig(horizon=2, iterations=1, temperature=100.0).build(ActionBox.symmetric(1.0, 1))
    found = planner(around, info, torch_generator(0, "noise"))
    assert 0.5 < found.cost[0] < 0.51
    torch.testing.assert_close(around(info, found.actions[:, None])[:, 0], found.cost)
