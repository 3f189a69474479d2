"""LQR in latents: given or fitted matrices, and the quadratic cost."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from workflows.plan.small import recipe

from jepatlas.core.errors import InputError
from jepatlas.core.linear_system import LinearSystem
from jepatlas.core.records import Estimate
from jepatlas.nn import LinearDynamicsConfig, MLPConfig, ResidualDynamicsConfig
from jepatlas.planning import LatentCost, LatentCostConfig, LQRConfig
from jepatlas.recipes import Predictive, WalkedWorld
from jepatlas.workflows.plan import (
    DrivingConfig,
    LinearLatent,
    PlanningAgent,
    TrainedModel,
    agent_of,
    draw_tasks,
    drive,
    euclidean,
    latent_episodes,
    linear_latent,
    load_world_model,
    quadratic_cost,
)
from jepatlas.workflows.runs import start_run
from jepatlas.worlds import LinearQuadratic

WORLD = LinearQuadratic()
RNG = np.random.default_rng(0)


def known(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> LinearLatent:
    return LinearLatent(LinearSystem(a, b, np.zeros(1) if c is None else c), False, Estimate(1, 1, 1, 1), 0.0)


def trained(folder, dynamics, **changes) -> TrainedModel:
    source, encoder = WalkedWorld(WORLD, episodes=40, length=20), MLPConfig(width=16, depth=1)
    made = recipe(20, source=source, encoder=encoder, latent_dim=4, model=Predictive(dynamics=dynamics), **changes)
    assert start_run(made, folder).status == "finished"
    return load_world_model(folder)


def test_quadratic_cost_equals_squared_distances_up_to_a_constant():
    linear = known(*(RNG.standard_normal(shape) for shape in ((3, 3), (3, 2), (3,))))
    config = LatentCostConfig(stage=0.7, terminal=1.3, action_penalty=0.2)
    info = {"start": torch.from_numpy(RNG.standard_normal((2, 3))), "goal": torch.zeros(2, 3).double()}
    actions = torch.from_numpy(RNG.standard_normal((2, 5, 4, 2)))
    other = LatentCost(linear.system, lambda h, goal: (h - goal).square().sum(-1), config)(info, actions)
    constant = 0.7 * info["start"].square().sum(-1, keepdim=True)
    torch.testing.assert_close(quadratic_cost(linear, config)(info, actions), other + constant)


def test_linear_dynamics_give_their_own_matrices(tmp_path):
    model = trained(tmp_path / "run", LinearDynamicsConfig())
    found, dynamics = linear_latent(model), model.objective.dynamics
    h, u = torch.randn(6, 4), torch.randn(6, 3, 2)
    torch.testing.assert_close(found.system.rollout(h, u), dynamics.rollout(h, u).detach())
    assert not found.fitted and "linear dynamics" in found.summary
    held = latent_episodes(model)
    left = held.h_next - dynamics(*(torch.from_numpy(x).float() for x in (held.h, held.u))).detach().numpy()
    spread = held.h_next - held.h_next.mean(0)
    assert abs(found.score.value - (1 - np.square(left).sum() / np.square(spread).sum())) < 1e-5
    assert found.score.low < found.score.value < found.score.high


@pytest.mark.parametrize("stride", [1, 2])
def test_other_dynamics_give_fitted_matrices(tmp_path, stride):
    model = trained(tmp_path / "run", ResidualDynamicsConfig(16), stride=stride)
    found, learnt = linear_latent(model), latent_episodes(model, held=False)
    rows = np.concatenate([learnt.h, learnt.u, np.ones((len(learnt.h), 1))], axis=1)
    weight = np.linalg.lstsq(rows, learnt.h_next, rcond=None)[0].T
    system = found.system
    assert np.allclose(np.column_stack([system.a_dd, system.b_da, system.c_d]), weight, atol=1e-6)
    assert found.fitted and found.system.b_da.shape == (4, 2 * stride)
    held = latent_episodes(model)
    still = np.square(held.h_next - held.h).sum() / np.square(held.h_next - held.h_next.mean(0)).sum()
    assert abs(found.no_change - (1 - still)) < 1e-9


def test_lqr_reaches_goals_at_the_end_of_its_plan():
    """The world does not rest at these goals, so only the end of the plan is at the goal."""
    linear = known(WORLD.A, WORLD.B)
    agent = PlanningAgent(torch.from_numpy, linear.system, euclidean, 2, linear=linear)
    cost = LatentCostConfig(stage=0, terminal=1)
    driven = drive(WORLD, agent, draw_tasks(WORLD, 20, 0), DrivingConfig(LQRConfig(8), cost, steps=40, replan=8))
    assert driven.reached.all() and np.abs(driven.actions).max() == 1, "actions reach their bounds"


def test_lqr_refuses_missing_matrices_and_discounts(tmp_path):
    agent = PlanningAgent(torch.from_numpy, known(WORLD.A, WORLD.B).system, euclidean, 2)
    with pytest.raises(InputError, match="agent_of"):
        drive(WORLD, agent, draw_tasks(WORLD, 2, 0), DrivingConfig(LQRConfig()))
    with pytest.raises(InputError, match="discount"):
        quadratic_cost(known(WORLD.A, WORLD.B), LatentCostConfig(discount=0.9))


def test_agents_have_matrices_only_for_lqr(tmp_path):
    model = trained(tmp_path / "run", LinearDynamicsConfig())
    assert agent_of(model).linear is None
    agent = agent_of(model, LQRConfig())
    assert agent.linear is not None and replace(agent, encode=model.encode).linear is agent.linear
