"""The adapter for stable-worldmodel's solvers, which expand info over candidates and request costs (b, k)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import torch_generator
from jepatlas.planning import ActionBox, CostModel, LQRConfig, as_cost_model, as_objective
from jepatlas.testing.linear_problems import double_integrator

PROBLEM = double_integrator()
SAMPLES = 64


def expanded(info: dict[str, Any]) -> dict[str, Any]:
    """Expand info like the solvers: tensors to float32 views along candidates, repeat arrays, keep other values."""
    found = {}
    for name, value in info.items():
        if isinstance(value, Tensor):
            dtype = torch.float32 if value.is_floating_point() else value.dtype
            found[name] = value.to(dtype).unsqueeze(1).expand(len(value), SAMPLES, *value.shape[1:])
        else:
            found[name] = np.repeat(value[:, None], SAMPLES, axis=1) if isinstance(value, np.ndarray) else value
    return found


def solve(model: CostModel, info: dict[str, Any]) -> Tensor:
    """A cross-entropy solver that uses only the protocol."""
    given, mean, std = expanded(info), torch.zeros(3, 8, 2), torch.ones(3, 8, 2)
    generator = torch_generator(0, "solver")
    with torch.inference_mode():
        for _ in range(40):
            candidates = torch.randn(3, SAMPLES, 8, 2, generator=generator) * std[:, None] + mean[:, None]
            costs = model.get_cost(given.copy(), candidates)
            assert costs.shape == (3, SAMPLES) and costs.dtype == candidates.dtype
            elites = candidates[torch.arange(3)[:, None], costs.topk(16, dim=1, largest=False).indices]
            mean, std = elites.mean(1), elites.std(1)
    return mean.clone()


def test_external_solver_plans_with_our_cost():
    info = PROBLEM.info | {"id": np.arange(3), "names": ["a", "b", "c"]}
    actions = solve(as_cost_model(PROBLEM.cost), info)
    best = LQRConfig(8).build(ActionBox.symmetric(9.0, 2))(PROBLEM.cost, PROBLEM.info, torch.Generator()).cost
    assert (PROBLEM.cost(PROBLEM.info, actions.double()[:, None])[:, 0] < 1.1 * best).all()


def test_observations_are_encoded_once_for_each_start():
    seen = []

    def encode(info: dict[str, Any]) -> dict[str, Tensor]:
        seen.append({name: tuple(value.shape) for name, value in info.items()})
        return {name: info[key].double().flatten(1) for name, key in (("start", "pixels"), ("goal", "goal"))}

    info = {"pixels": PROBLEM.info["start"].view(3, 1, 2, 2), "goal": PROBLEM.info["goal"].view(3, 1, 2, 2).numpy()}
    candidates = torch.randn(3, SAMPLES, 8, 2, generator=torch_generator(0, "candidates"))
    model = as_cost_model(PROBLEM.cost, encode)
    expected = PROBLEM.cost(PROBLEM.info, candidates.double())
    torch.testing.assert_close(model.get_cost(expanded(info), candidates).double(), expected, rtol=1e-5, atol=1e-5)
    assert seen == [{"pixels": (3, 1, 2, 2), "goal": (3, 1, 2, 2)}]
    assert torch.equal(model.criterion(expanded(info), candidates), model.get_cost(expanded(info), candidates))


def test_costs_are_differentiable():
    candidates = torch.zeros(3, SAMPLES, 8, 2, requires_grad=True)
    costs = as_cost_model(PROBLEM.cost).get_cost(expanded(PROBLEM.info), candidates)
    assert costs.requires_grad
    costs.sum().backward()
    assert candidates.grad is not None and candidates.grad.abs().sum() > 0


def test_an_energy_scores_the_last_prediction_against_the_last_goal():
    generator = torch_generator(0, "latents")
    predicted = torch.randn(2, SAMPLES, 5, 4, 3, generator=generator)  # the last axes are patches and their width
    goal = torch.randn(2, 1, 4, 3, generator=generator)

    def energy(x: Tensor, y: Tensor) -> Tensor:
        return torch.where(x[..., 0] > 0, (2 * x - y).square().sum(-1), math.inf)

    found = as_objective(energy, ceiling=7e8)({"predicted_emb": predicted, "goal_emb": goal})
    for b in range(2):
        for k in range(SAMPLES):
            x, y = predicted[b, k, 4].flatten(), goal[b, 0].flatten()
            expected = float((2 * x - y).square().sum()) if x[0] > 0 else 7e8
            assert float(found[b, k]) == pytest.approx(expected, rel=1e-5)


def test_infinite_costs_become_the_ceiling():
    def unreachable(info: Any, actions: Tensor) -> Tensor:
        return torch.tensor([math.inf, math.nan, 1.0])[:, None].expand(actions.shape[:2])

    costs = as_cost_model(unreachable, ceiling=1e6).get_cost(expanded(PROBLEM.info), torch.zeros(3, SAMPLES, 8, 2))
    assert costs[:, 0].tolist() == [1e6, 1e6, 1.0]


def test_info_without_candidates_is_refused():
    with pytest.raises(InputError, match=r"info\['start'\] has shape \(3, 4\).*k = 64 candidates"):
        as_cost_model(PROBLEM.cost).get_cost(PROBLEM.info, torch.zeros(3, SAMPLES, 8, 2))
