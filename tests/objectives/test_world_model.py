"""World-model loss against its definition, and which terms give the encoder gradients."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from jepatlas.core.errors import InputError
from jepatlas.core.records import Loss, Steps, Windows
from jepatlas.nn import ResidualDynamicsConfig
from jepatlas.nn.mlp import mlp
from jepatlas.objectives import VCRegShaping, WorldModel, WorldModelConfig, WorldModelParts

ALONE = WorldModelConfig(shaping=None)


class Lengths(nn.Module):
    """A minimal objective on steps that measures the steps passed by the world model."""

    def __init__(self) -> None:
        super().__init__()
        self.energy = nn.PairwiseDistance()
        self.seen: list[Steps] = []

    def forward(self, batch: Steps, step: int) -> Loss:
        self.seen.append(batch)
        return Loss(self.energy(batch.x, batch.x_next).mean())

    def after_step(self, step: int) -> None: ...

    def smallest_batch(self, dim: int) -> int:
        return 1


def windows() -> Windows:
    generator = torch.Generator().manual_seed(0)
    return Windows(torch.randn(6, 4, 5, generator=generator), torch.randn(6, 3, 2, generator=generator))


def model(config: WorldModelConfig, energy: nn.Module | None = None) -> Any:
    torch.manual_seed(1)
    parts = WorldModelParts(mlp(5, 3, 8, 1), ResidualDynamicsConfig(8, 1).build(3, 2), mlp(6, 2, 8, 1), energy)
    return WorldModel(parts, config)


def test_prediction_term_is_the_rollout_error():
    world, batch = model(ALONE), windows()
    total = 0.0
    for row in range(6):
        h = world.encoder(batch.frames[row, 0])
        for time in range(3):
            h = h + world.dynamics.change(torch.cat([h, batch.u[row, time]]))
            total += float((h - world.encoder(batch.frames[row, time + 1])).square().mean()) / 18
    loss = world(batch, 0)
    assert float(loss.total) == pytest.approx(total, rel=1e-5) and set(loss.terms) == {"prediction"}


def test_total_is_the_sum_of_its_terms():
    config = replace(ALONE, shaping=VCRegShaping(weight=0.5), inverse=2.0, energy_weight=3.0)
    loss = model(config, Lengths())(windows(), 4)
    assert set(loss.terms) == {"prediction", "shaping", "inverse", "energy"}
    assert float(loss.total) == pytest.approx(float(sum(loss.terms.values())), rel=1e-6)


def test_inverse_dynamics_predict_the_action_from_two_latents():
    world, batch = model(replace(ALONE, inverse=2.0)), windows()
    h = world.encoder(batch.frames)
    read = world.inverse(torch.cat([h[:, :-1], h[:, 1:]], -1))
    assert float(world(batch, 0).terms["inverse"]) == pytest.approx(2 * float((read - batch.u).square().mean()))


@pytest.mark.parametrize("prediction", ["joint", "separate"])
@pytest.mark.parametrize("energy", ["joint", "separate"])
def test_terms_that_give_the_encoder_gradients(prediction, energy):
    for objective, shapes in ((None, prediction), (Lengths(), energy)):
        world = model(replace(ALONE, prediction="separate" if objective else prediction, energy=energy), objective)
        world(windows(), 0).total.backward()
        touched = any(weight.grad is not None and weight.grad.any() for weight in world.encoder.parameters())
        assert touched == (shapes == "joint")
        assert all(weight.grad is not None for weight in world.dynamics.parameters())


def test_steps_cost_one_and_goals_come_from_the_batch():
    energy, batch = Lengths(), windows()
    world = model(ALONE, energy)
    world(batch, 0)
    world(batch, 1)
    h = world.encoder(batch.frames)
    first, second = energy.seen
    assert torch.equal(first.x, h[:, :-1].reshape(-1, 3)) and torch.equal(first.x_next, h[:, 1:].reshape(-1, 3))
    assert torch.equal(first.cost, torch.ones(18))
    assert all((row == h.reshape(-1, 3)).all(1).any() for row in first.goal)
    assert not torch.equal(first.goal, second.goal), "goals are resampled at every step"


def test_moving_average_follows_the_encoder():
    world, batch = model(replace(ALONE, average=0.9)), windows()
    before = [weight.clone() for weight in world.target.parameters()]
    with torch.no_grad():
        for weight in world.encoder.parameters():
            weight.add_(1)
    world.after_step(0)
    for slow, old in zip(world.target.parameters(), before, strict=True):
        assert torch.allclose(slow, old + 0.1, atol=1e-6)
    world(batch, 0).total.backward()
    assert all(weight.grad is None for weight in world.target.parameters())


def test_moving_average_is_the_prediction_target():
    world, batch = model(replace(ALONE, average=0.5)), windows()
    with torch.no_grad():
        for weight in world.target.parameters():
            weight.zero_()
    rolled = world.dynamics.rollout(world.encoder(batch.frames[:, 0]), batch.u)
    assert float(world(batch, 0).total) == pytest.approx(float(rolled.square().mean()), rel=1e-5)


def test_invalid_settings_are_rejected():
    with pytest.raises(InputError, match="average"):
        WorldModelConfig(average=1.0)
    with pytest.raises(InputError, match=r"inverse.*-1"):
        WorldModelConfig(inverse=-1)
    with pytest.raises(InputError, match="inverse"):
        WorldModel(WorldModelParts(nn.Identity(), nn.Identity()), replace(ALONE, inverse=1.0))
