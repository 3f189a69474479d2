"""What the planning experiments measure, where the answer is known."""

import numpy as np
import pytest
import torch

from jepatlas.core.seeding import torch_generator
from jepatlas.experiments.planning import optimal_planning
from jepatlas.experiments.planning.controlled_world import (
    HORIZON,
    Loop,
    sample_steps,
    step_system,
    true_system,
    world_encoder,
)
from jepatlas.experiments.planning.planning_cost import planning_costs
from jepatlas.experiments.planning.straight_plans import follow_lines
from jepatlas.planning import ActionBox, LQRConfig, Quadratic, QuadraticCost, detour
from jepatlas.worlds import LatentWorld, OrnsteinUhlenbeck, Spiral
from jepatlas.worlds.random_matrices import semi_orthogonal

WORLD = LatentWorld(OrnsteinUhlenbeck(dim=2, rho=0.9), Spiral())
TURN = semi_orthogonal(2, 2, np.random.default_rng(3))


def rotated(z: np.ndarray) -> np.ndarray:
    return z @ TURN.T


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_the_noise_of_the_law_is_what_is_done():
    rows = sample_steps(WORLD, rotated, 20_000, rng())
    assert np.allclose(rows.z_next, 0.9 * rows.z + np.sqrt(0.19) * rows.u)
    assert np.allclose(np.cov(rows.z.T, rows.z_next.T), np.kron([[1, 0.9], [0.9, 1]], np.eye(2)), atol=0.03)
    assert np.allclose(rows.system.a_dd, 0.9 * np.eye(2)) and np.allclose(rows.system.b_da, np.sqrt(0.19) * TURN)


def test_what_is_seen_is_the_mixing_of_the_state():
    z = rng().standard_normal((5, 2))
    assert np.allclose(world_encoder(WORLD, None)(z), Spiral()(torch.tensor(z)), atol=1e-5)


def test_the_closed_loop_of_the_optimum_costs_what_lqr_says():
    starts, goals = rng().standard_normal((2, 7, 2))
    weights = Quadratic(np.diag([1.0, 3.0]), 0.1 * np.eye(2), np.diag([2.0, 1.0]))
    true = true_system(WORLD)
    paid, largest = Loop(true, lambda z: z, true, weights)(starts, goals, weights)
    info = {"start": torch.tensor(starts), "goal": torch.tensor(goals)}
    lqr = LQRConfig(HORIZON).build(ActionBox.symmetric(1e3, 2))
    plan = lqr(QuadraticCost(true, weights), info, torch_generator(0, "unused"))
    assert np.allclose(paid, plan.cost) and largest == pytest.approx(float(plan.actions.abs().max()))
    idle, none = Loop(true, lambda z: z, None, weights)(starts, goals, weights)
    still = QuadraticCost(true, weights)(info, torch.zeros(7, 1, HORIZON, 2, dtype=torch.float64))[:, 0]
    assert np.allclose(idle, still) and none == 0
    assert Loop(true, lambda z: z, true, weights, limit=0.1)(starts, goals, weights)[1] == pytest.approx(0.1)


def test_in_a_rotated_latent_nothing_is_lost_and_in_a_longer_one_a_little():
    found = planning_costs(WORLD, rotated, sample_steps(WORLD, rotated, 500, rng()), 50, rng())
    for problem in ("regulate", "reach", "reach_conjugated"):
        assert found[problem].value == pytest.approx(1, abs=1e-9) and found[f"{problem}_idle"].value > 2
    assert found["slope_at_origin"].value == pytest.approx(0, abs=1e-9)
    assert found["reach_unconjugated"].value > 1.01
    twice = planning_costs(WORLD, lambda z: 2 * z, sample_steps(WORLD, lambda z: 2 * z, 500, rng()), 50, rng())
    assert 1.001 < twice["reach"].value < 1.3, "latents count four times as much against actions"
    assert twice["slope_at_origin"].value == pytest.approx(1)


def test_plans_of_one_small_world():
    settings = {"dim": 2, "seed": 1, "tasks": 3, "horizon": 5, "samples": 16}
    found = {v["name"]: v["value"] for v in optimal_planning.run(settings, "")["verdicts"]}
    for problem in ("lqr", "goal"):
        for case in ("invariant", "conjugated"):
            assert max(abs(found[f"{problem}_{case}_{what}"]) for what in ("actions", "value", "lost")) < 1e-9
        for case in ("unconjugated", "sheared"):
            assert found[f"{problem}_{case}_actions"] > 0.01
    assert found["lqr_unconjugated_lost"] > 0 and found["lqr_sheared_lost"] > 0, "the optimum is the optimum"


def test_lines_of_the_state_are_straight_and_looked_up_ones_on_the_library():
    ends = {"start": torch.tensor([[1.0, 0.0]]).double(), "goal": torch.tensor([[-0.5, 1.0]]).double()}
    rows = sample_steps(WORLD, rotated, 3000, rng())
    settings = {"libraries": [10, 3000], "recipe": {"seed": 0}}
    paths = follow_lines(WORLD, rotated, rows, ends, settings)
    assert detour(paths["dynamics"]).item() == pytest.approx(1, abs=0.01)
    assert torch.allclose(paths["dynamics"][:, -1], ends["goal"], atol=0.02)
    for way in ("neighbours_10", "neighbours_3000"):
        known = {tuple(row) for row in rows.z}
        assert all(tuple(point) in known for point in paths[way][0, 1:-1].numpy())
        assert torch.equal(paths[way][:, -1], ends["goal"])
    lengths = [detour(paths[f"neighbours_{size}"]).item() for size in (10, 3000)]
    assert lengths[0] > lengths[1] > 1
    taken = paths["actions_3000"][0].numpy()
    done = (taken[1:] - 0.9 * taken[:-1]) / np.sqrt(0.19)
    assert all(np.abs(rows.u - u).max(1).min() < 1e-9 for u in done), "what was done in some observed step"
    assert np.allclose(step_system(true_system(WORLD), taken[:-1], done), taken[1:])
