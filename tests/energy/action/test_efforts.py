"""Efforts: homogeneity, lower bound, closed forms, learning from steps, and rejected input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.energy.action import (
    Anisotropic,
    Conformal,
    Current,
    Effort,
    Euclidean,
    LearnedEffort,
    Pullback,
    Scale,
    effort_verdicts,
    learn_effort,
    minimal_paths,
)
from jepatlas.energy.action.effort_check import require_effort
from jepatlas.energy.action.paths import path_action

POINTS = np.random.default_rng(0).uniform(0.5, 2.0, (20, 2))


class Quadratic:
    floor = 1.0

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        return v.square().sum(-1)


class FloorTooHigh:
    floor = 2.0

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        return torch.linalg.vector_norm(v, dim=-1)


def untrained() -> LearnedEffort:
    torch.manual_seed(0)
    return LearnedEffort(2, 0.3)


EFFORTS = {
    "euclidean": Euclidean(3.0),
    "conformal": Conformal(lambda x: 1 / x[..., -1], 0.1),
    "anisotropic": Anisotropic.constant(np.array([[2.0, 0.5], [0.5, 1.0]])),
    "current": Current.constant(np.array([0.3, 0.4])),
    "fast current": Current.constant(np.array([1.2, 0.0])),
    "scale": Scale(2.0, 0.5, 10.0),
    "pullback": Pullback(Euclidean(), lambda h: torch.cat([h, h.square()], -1), 1.0),
    "learned": untrained(),
}


@pytest.mark.parametrize("name", EFFORTS)
def test_every_effort_is_homogeneous_and_bounded_below(name: str) -> None:
    assert all(verdict.passed for verdict in effort_verdicts(EFFORTS[name], POINTS))


@pytest.mark.parametrize("name", EFFORTS)
def test_the_effort_of_zero_velocity_is_zero_with_a_gradient_free_of_nan(name: str) -> None:
    x = torch.as_tensor(POINTS).requires_grad_()
    v = torch.zeros_like(x).requires_grad_()
    effort = EFFORTS[name](x, v)
    assert (effort == 0).all()
    for gradient in torch.autograd.grad(effort.sum(), (x, v), allow_unused=True):
        assert gradient is None or not gradient.isnan().any()


def test_a_quadratic_effort_is_rejected_because_its_infimum_is_zero() -> None:
    straight = [path_action(np.linspace([0.0, 0.0], [1.0, 0.0], steps + 1), Quadratic()) for steps in (1, 10, 1000)]
    assert straight == pytest.approx([1, 0.1, 0.001])
    homogeneity, _ = effort_verdicts(Quadratic(), POINTS)
    assert homogeneity.passed is False
    with pytest.raises(InputError, match="homogeneity"):
        minimal_paths(POINTS[:1], POINTS[1:2], Quadratic())


def test_a_floor_that_does_not_hold_is_rejected() -> None:
    _, floor = effort_verdicts(FloorTooHigh(), POINTS)
    assert floor.passed is False and floor.value == pytest.approx(0.5)
    with pytest.raises(InputError, match="effort_floor"):
        require_effort(FloorTooHigh(), POINTS)
    singular = Pullback(Euclidean(), lambda h: h[..., :1], 0.5)
    with pytest.raises(InputError, match="effort_floor"):
        require_effort(singular, POINTS)


def test_the_effort_of_a_current_is_the_travel_time_of_the_displacement() -> None:
    """By definition: drift plus motion at full speed over that time equal the displacement."""
    rng = np.random.default_rng(0)
    for current in ([0.3, 0.4], [1.0, 0.0], [0.0, -1.7]):
        v, drift = torch.as_tensor(rng.standard_normal((50, 2))), torch.tensor(current, dtype=torch.float64)
        time = Current.constant(np.array(current))(torch.zeros_like(v), v)
        possible = torch.isfinite(time)
        own = v - time[:, None] * drift
        assert torch.allclose(own[possible].norm(dim=-1), time[possible])
        for step in v[~possible]:  # unreachable at any time
            clocks = torch.linspace(1e-3, 50, 20_000, dtype=torch.float64)[:, None]
            assert ((step - clocks * drift).norm(dim=-1) > clocks[:, 0]).all()
        assert possible.all() == (np.linalg.norm(current) < 1)


def test_a_pullback_equals_the_effort_of_the_decoded_step() -> None:
    decoder = torch.tensor([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]], dtype=torch.float64)
    h, u = torch.as_tensor(POINTS), torch.as_tensor(POINTS[::-1].copy())
    found = Pullback(Euclidean(), lambda h: h @ decoder.T, 0.1)(h, u)
    assert torch.allclose(found, (u @ decoder.T).norm(dim=-1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Anisotropic.constant(np.ones((2, 2))),
        lambda: Anisotropic.constant(np.array([[1.0, 2.0], [0.0, 1.0]])),
        lambda: Current.constant(np.zeros(2), speed=0.0),
        lambda: Scale(1.0, 0.0, 1.0),
        lambda: LearnedEffort(2, 0.0),
    ],
)
def test_efforts_without_a_positive_floor_are_rejected(make) -> None:
    with pytest.raises(InputError):
        make()


def observed_steps(effort: Effort, count: int = 1500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (count, 2))
    x_next = x + rng.uniform(0.05, 0.2, (count, 1)) * rng.standard_normal((count, 2))
    cost = effort(torch.as_tensor((x + x_next) / 2), torch.as_tensor(x_next - x)).numpy()
    return x, x_next, cost


def test_an_effort_is_learned_from_steps_in_a_turning_current() -> None:
    current = Current(lambda x: 0.6 * torch.stack([torch.cos(x[..., 1]), torch.sin(x[..., 0])], -1) / 2**0.5, 0.6)
    fitted = learn_effort(*observed_steps(current), updates=400)
    assert fitted.error.passed and fitted.error.null is not None and fitted.error.value < fitted.error.null / 4
    assert all(verdict.passed for verdict in effort_verdicts(fitted.effort, POINTS))
    downstream, upstream = (
        fitted.effort(torch.zeros(2).double(), torch.tensor(v).double()) for v in ([1.0, 0], [-1.0, 0])
    )
    assert upstream > 1.5 * downstream


def test_invalid_steps_are_rejected() -> None:
    x, x_next, cost = observed_steps(Euclidean(), 30)
    with pytest.raises(InputError, match="cost"):
        learn_effort(x, x_next, -cost)
    with pytest.raises(InputError, match="20"):
        learn_effort(x, x, cost)
    with pytest.raises(InputError, match="x_next"):
        learn_effort(x, x_next[:, :1], cost)
    with pytest.raises(InputError, match="cost"):
        learn_effort(x, x_next, np.where(np.arange(30) == 3, np.nan, cost))
