"""The linear–quadratic world against its equations, and its optimum against a long sum of costs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import solve_discrete_are

from jepatlas.core.errors import InputError
from jepatlas.worlds import Coupling, LinearQuadratic, Spiral


def test_step_is_linear_also_for_large_actions():
    world = LinearQuadratic(dim=2, actions=1, a=((0.9, 0.2), (0.0, 0.8)), b=((0.0,), (1.0,)))
    z, u = np.array([[1.0, -2.0]]), np.array([[3.0]])
    np.testing.assert_allclose(world.step(z, u), [[0.9 - 0.4, -1.6 + 3.0]])


@pytest.mark.parametrize("seed", range(3))
def test_random_matrices_have_the_spectral_radius_and_are_controllable(seed: int):
    world = LinearQuadratic(dim=5, actions=2, radius=0.8, seed=seed)
    assert np.abs(np.linalg.eigvals(world.A)).max() == pytest.approx(0.8)
    np.testing.assert_allclose(np.linalg.norm(world.B, axis=0), 1.0)
    reach = np.hstack([np.linalg.matrix_power(world.A, k) @ world.B for k in range(5)])
    assert np.linalg.matrix_rank(reach) == 5
    assert not np.allclose(world.A, LinearQuadratic(dim=5, radius=0.8, seed=seed + 1).A)


def test_riccati_solution_minimises_the_cost():
    world = LinearQuadratic(state_cost=2.0, action_cost=0.5)
    a, b, q, r = world.A, world.B, world.Q, world.R
    p = solve_discrete_are(a, b, q, r)
    gain = np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
    z = start = world.states(1, np.random.default_rng(0))
    total = 0.0
    for _ in range(400):
        u = -z @ gain.T
        total += (z @ q @ z.T + u @ r @ u.T).item()
        z = world.step(z, u)
    assert total == pytest.approx((start @ p @ start.T).item(), rel=1e-9)


def test_mixing_changes_only_the_observation():
    z = LinearQuadratic().states(6, np.random.default_rng(0))
    plain, mixed = LinearQuadratic(), LinearQuadratic(mixing=Coupling())
    np.testing.assert_array_equal(plain.observe(z), z)
    np.testing.assert_allclose(mixed.observe(z), Coupling()(torch.tensor(z)).numpy())
    np.testing.assert_array_equal(plain.step(z, z[:, :2]), mixed.step(z, z[:, :2]))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LinearQuadratic(a=((1.0, 0.0), (0.0, 1.0))), "^a .*2 rows"),
        (lambda: LinearQuadratic(dim=1, actions=1, a=((1.2,),)), "spectral radius 1.2"),
        (lambda: LinearQuadratic(dim=1, actions=1, b=((float("nan"),),)), "^b .*NaN"),
        (lambda: LinearQuadratic(radius=1.0), "radius is 1.0"),
        (lambda: LinearQuadratic(action_cost=0.0), "action_cost is 0.0"),
        (lambda: LinearQuadratic(mixing=Spiral()), "dim is 4"),
        (lambda: LinearQuadratic(b=((0.0, 0.0),) * 4, reach=50.0).make().reset(seed=0), "reach"),
    ],
)
def test_invalid_fields_are_refused(build, message: str):
    with pytest.raises(InputError, match=message):
        build()
