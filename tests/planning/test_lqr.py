"""LQR against the stacked least-squares problem, and Theorem 4 with a negative control."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.linear_system import LinearSystem
from jepatlas.core.records import Plan
from jepatlas.core.seeding import torch_generator
from jepatlas.planning import (
    ActionBox,
    LQRConfig,
    Quadratic,
    QuadraticCost,
    finite_regulator,
    infinite_regulator,
)
from jepatlas.planning.lqr import equilibrium_near
from jepatlas.testing.linear_problems import Problem, double_integrator, rotation

BOX = ActionBox.symmetric(1e3, 2)
UNEVEN = Quadratic(np.diag([1.0, 0.1, 0.0, 0.0]), np.array([[0.2, 0.05], [0.05, 0.1]]), np.diag([5.0, 1.0, 0.5, 0.0]))


def plan(problem: Problem, horizon: int = 8, *, infinite: bool = False, box: ActionBox = BOX) -> Plan:
    planner = LQRConfig(horizon, infinite).build(box)
    return planner(problem.cost, problem.info, torch_generator(0, "unused"))


def drifting() -> Problem:
    """A problem with a constant drift and goals that are not equilibria."""
    problem = double_integrator(UNEVEN)
    goal = torch.randn(3, 4, generator=torch_generator(0, "goal"), dtype=torch.float64)
    system = LinearSystem(problem.system.a_dd, problem.system.b_da, np.array([0.1, -0.2, 0.05, 0.0]))
    return Problem(QuadraticCost(system, UNEVEN), problem.info | {"goal": goal})


def stacked(problem: Problem, horizon: int) -> np.ndarray:
    """The optimal actions (b, t, a): all errors are linear in all actions, a least-squares problem for each start."""
    system, weights = problem.system, problem.cost.weights
    d, a = system.b_da.shape
    powers = [np.linalg.matrix_power(system.a_dd, s) for s in range(horizon + 1)]
    by_actions = np.zeros((horizon, d, horizon, a))
    for s in range(horizon):
        for r in range(s + 1):
            by_actions[s, :, r] = powers[s - r] @ system.b_da
    roots = [np.linalg.cholesky(w + 1e-15 * np.eye(len(w))).T for w in (weights.state_dd, weights.final_dd)]
    effort = np.kron(np.eye(horizon), np.linalg.cholesky(weights.action_aa).T)
    found = []
    for start, goal in zip(*(problem.info[name].numpy() for name in ("start", "goal")), strict=True):
        free = [powers[s + 1] @ start + sum(powers[: s + 1]) @ system.c_d - goal for s in range(horizon)]
        each = [roots[s == horizon - 1] for s in range(horizon)]
        rows = [root @ by_actions[s].reshape(d, -1) for s, root in enumerate(each)]
        targets = [-root @ error for root, error in zip(each, free, strict=True)]
        matrix, target = np.concatenate([*rows, effort]), np.concatenate([*targets, np.zeros(horizon * a)])
        found.append(np.linalg.lstsq(matrix, target, rcond=None)[0].reshape(horizon, a))
    return np.stack(found)


@pytest.mark.parametrize("problem", [double_integrator(), double_integrator(UNEVEN), drifting()])
def test_riccati_recursion_against_stacked_least_squares(problem: Problem):
    np.testing.assert_allclose(plan(problem).actions.numpy(), stacked(problem, 8), atol=1e-6)


def test_value_is_the_optimal_cost():
    problem = double_integrator(UNEVEN)
    value = finite_regulator(problem.system, UNEVEN, 8).values[0]
    errors = (problem.info["start"] - problem.info["goal"]).numpy()
    np.testing.assert_allclose(plan(problem).cost.numpy(), np.einsum("bi,ij,bj->b", errors, value, errors), rtol=1e-9)


def test_infinite_horizon_is_the_limit_of_finite_ones():
    problem = double_integrator()
    long = finite_regulator(problem.system, problem.cost.weights, 300)
    for_ever = infinite_regulator(problem.system, problem.cost.weights, 8)
    np.testing.assert_allclose(for_ever.gains, np.stack([long.gains[0]] * 8), atol=1e-9)
    np.testing.assert_allclose(for_ever.values, np.stack([long.values[0]] * 9), rtol=1e-9)
    torch.testing.assert_close(plan(problem, 8, infinite=True).actions, plan(problem, 300).actions[:, :8])


def test_infinite_horizon_leads_to_the_nearest_equilibrium():
    """The equilibrium from the Karush–Kuhn–Tucker conditions."""
    problem = drifting()
    a, b, c = problem.system.a_dd, problem.system.b_da, problem.system.c_d
    still, goal = np.concatenate([a - np.eye(4), b], axis=1), problem.info["goal"].numpy()
    size = np.diag([1.0] * 4 + [1e-9] * 2)  # of all actions that hold the state, the smallest
    both = np.block([[size, still.T], [still, np.zeros((4, 4))]])
    right = np.concatenate([goal, np.zeros((3, 2)), np.tile(-c, (3, 1))], axis=1)
    target, hold, _ = np.split(np.linalg.lstsq(both, right.T, rcond=None)[0].T, [4, 6], axis=1)
    actions = plan(problem, 300, infinite=True).actions
    end = problem.system.rollout(problem.info["start"], actions)[:, -1]
    np.testing.assert_allclose(end.numpy(), target, atol=1e-6)
    np.testing.assert_allclose(actions[:, -1].numpy(), hold, atol=1e-6)
    assert np.abs(target - goal).max() > 0.1  # the test is not trivial


def test_a_system_without_equilibrium_has_no_infinite_horizon():
    falling = LinearSystem(np.eye(2), np.array([[1.0], [0.0]]), np.array([0.0, 1.0]))
    with pytest.raises(InputError, match="equilibrium"):
        equilibrium_near(falling, np.zeros((1, 2)))


@pytest.mark.parametrize("infinite", [False, True])
@pytest.mark.parametrize("weights", [None, UNEVEN])
def test_conjugated_costs_give_equivalent_plans(weights: Quadratic | None, infinite: bool):
    """Theorem 4: gains become KQᵀ and values QPQᵀ; actions and costs do not change."""
    problem, q = double_integrator(weights), rotation(4)
    rotated = problem.rotated(q)
    make = infinite_regulator if infinite else finite_regulator
    one, other = (make(each.system, each.cost.weights, 8) for each in (problem, rotated))
    np.testing.assert_allclose(other.gains, one.gains @ q.T, atol=1e-9)
    np.testing.assert_allclose(other.values, q @ one.values @ q.T, atol=1e-8)
    mine, theirs = plan(problem, infinite=infinite), plan(rotated, infinite=infinite)
    torch.testing.assert_close(mine.actions, theirs.actions, rtol=0, atol=1e-6)
    torch.testing.assert_close(mine.cost, theirs.cost)


def test_only_invariant_costs_need_no_conjugation():
    q = rotation(4)
    even, uneven = double_integrator(), double_integrator(UNEVEN)
    assert even.cost.weights.invariant and not UNEVEN.invariant
    same, other = even.rotated(q, weights=False), uneven.rotated(q, weights=False)
    torch.testing.assert_close(plan(same).actions, plan(even).actions, rtol=0, atol=1e-6)
    assert (plan(other).actions - plan(uneven).actions).abs().max() > 0.1  # the negative control
    lost = uneven.cost(uneven.info, plan(other).actions[:, None])[:, 0] / plan(uneven).cost
    assert (lost > 1.1).all()


def test_clamped_feedback_uses_the_resulting_state():
    problem = double_integrator()
    box = ActionBox.symmetric(0.6, 2)
    clamped = plan(problem, box=box)
    naive = box.clamp(plan(problem).actions)
    assert clamped.cost.sum() < 0.7 * problem.cost(problem.info, naive[:, None]).sum()


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (np.diag([1.2, 0.5]), [[0.0], [1.0]], r"\|λ\| = 1\.2 "),
        (np.eye(2), [[1.0], [1.0]], "stabilisable"),
    ],
)
def test_an_unstabilisable_pair_is_refused(a: np.ndarray, b: list, message: str):
    system = LinearSystem(a, np.array(b))
    weights = Quadratic.isotropic(2, 1, state=1.0, action=1.0, final=1.0)
    with pytest.raises(InputError, match=message):
        infinite_regulator(system, weights, 4)
    assert np.isfinite(finite_regulator(system, weights, 4).gains).all()


def test_invalid_systems_and_weights_are_refused():
    problem = double_integrator()
    with pytest.raises(InputError, match=r"LinearSystem.*function"):
        LQRConfig(4).build(BOX)(lambda info, actions: actions.sum((2, 3)), problem.info, torch_generator(0, "unused"))
    unseen = Quadratic(np.diag([0.0, 1.0, 1.0, 1.0]), np.eye(2), np.eye(4))
    with pytest.raises(InputError, match="state_dd"):
        infinite_regulator(problem.system, unseen, 4)
    with pytest.raises(InputError, match=r"4 latent and 2 action.*3 and 2"):
        finite_regulator(problem.system, Quadratic.isotropic(3, 2, state=1, action=1, final=1), 4)
    with pytest.raises(InputError, match="4 × 4"):
        problem.system.conjugate(2 * np.eye(4))
    with pytest.raises(InputError, match="action_aa"):
        Quadratic(np.eye(2), np.zeros((1, 1)), np.eye(2))
    with pytest.raises(InputError, match=r"state_dd.*eigenvalue"):
        Quadratic(np.diag([1.0, -1.0]), np.eye(1), np.eye(2))
    with pytest.raises(InputError, match=r"final_dd.*symmetric"):
        Quadratic(np.eye(2), np.eye(1), np.array([[0.0, 1.0], [0.0, 0.0]]))
    with pytest.raises(InputError, match="state_dd and final_dd"):
        Quadratic(np.eye(2), np.eye(1), np.eye(3))
    with pytest.raises(InputError, match=r"\(2, 2\).*\(3, 3\)"):
        LinearSystem(np.eye(2), np.eye(3))
    with pytest.raises(InputError, match=r"4 latent and 2 action.*3 and 2"):
        problem.system.rollout(torch.zeros(1, 3), torch.zeros(1, 2, 2))
