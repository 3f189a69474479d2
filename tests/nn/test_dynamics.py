"""Latent dynamics: rollouts equal repeated steps, and linear dynamics recover a linear world."""

import pytest
import torch

from jepatlas.core.errors import InputError
from jepatlas.nn import GRUDynamicsConfig, LinearDynamicsConfig, ResidualDynamicsConfig

EVERY = [ResidualDynamicsConfig(width=16), LinearDynamicsConfig(), GRUDynamicsConfig(width=16)]


def latents_and_actions(rows: int = 5, times: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(rows, 3, generator=generator), torch.randn(rows, times, 2, generator=generator)


@pytest.mark.parametrize("config", EVERY, ids=lambda config: config.kind)
def test_rollout_is_causal_in_actions(config):
    dynamics, (h, u) = config.build(3, 2), latents_and_actions()
    whole = dynamics.rollout(h, u)
    assert whole.shape == (5, 4, 3)
    changed = u.clone()
    changed[:, 2] += 1
    other = dynamics.rollout(h, changed)
    assert torch.equal(whole[:, :2], other[:, :2]) and (whole[:, 2:] != other[:, 2:]).any(-1).all()
    assert torch.allclose(dynamics(h, u[:, 0]), whole[:, 0], atol=1e-6)


@pytest.mark.parametrize("config", EVERY[:2], ids=lambda config: config.kind)
def test_rollout_equals_repeated_steps(config):
    dynamics, (h, u) = config.build(3, 2), latents_and_actions()
    whole = dynamics.rollout(h, u)
    for time in range(4):
        h = dynamics(h, u[:, time])
        assert torch.equal(h, whole[:, time])


def test_gru_state_depends_on_earlier_actions():
    """The same latent and action lead to different predictions after different histories."""
    dynamics, (h, u) = GRUDynamicsConfig(width=16).build(3, 2), latents_and_actions()
    changed = u.clone()
    changed[:, 0] += 1
    steps = [dynamics.rollout(h, actions).diff(dim=1)[:, -1] for actions in (u, changed)]
    assert (steps[0] - steps[1]).abs().max() > 1e-4


def test_linear_dynamics_recover_a_linear_world():
    generator = torch.Generator().manual_seed(0)
    a, b = 0.9 * torch.eye(3) + 0.1 * torch.randn(3, 3, generator=generator), torch.randn(3, 2, generator=generator)
    dynamics = LinearDynamicsConfig().build(3, 2)
    h, u = torch.randn(256, 3, generator=generator), torch.randn(256, 2, generator=generator)
    optimizer = torch.optim.LBFGS(dynamics.parameters(), max_iter=200)

    def loss():
        optimizer.zero_grad()
        error = (dynamics(h, u) - (h @ a.T + u @ b.T)).square().mean()
        error.backward()
        return error

    optimizer.step(loss)
    assert torch.allclose(dynamics.state.weight, a, atol=1e-3) and torch.allclose(dynamics.action.weight, b, atol=1e-3)


def test_invalid_settings_are_rejected():
    with pytest.raises(InputError, match=r"width|depth"):
        ResidualDynamicsConfig(depth=0)
    with pytest.raises(InputError, match="width"):
        GRUDynamicsConfig(width=0)
