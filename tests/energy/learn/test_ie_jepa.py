"""IE-JEPA: gradients of each loss, and the prediction error as an energy."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from energy.learn.tiny import MaxSum, chain, grid, random_steps
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.records import Steps
from jepatlas.data import StepStream
from jepatlas.energy.learn import IEJEPA, QRL, EmbeddedEnergy, IEJEPAConfig, PredictionError
from jepatlas.objectives import ExactWhitening, LeJEPA
from jepatlas.training import TrainingConfig, train


def made(mode: str, weight: float = 0.5) -> IEJEPA:
    torch.manual_seed(0)
    jepa = LeJEPA(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)))
    objective = QRL(EmbeddedEnergy(MaxSum(2), nn.Linear(3, 8)))
    return IEJEPAConfig(mode, weight).build(jepa, objective)  # pyright: ignore[reportArgumentType]


def gradients(total: Tensor, module: nn.Module) -> list[Tensor]:
    parameters = list(module.parameters())
    return list(torch.autograd.grad(total, parameters, retain_graph=True, materialize_grads=True))


def latents(model: IEJEPA, batch: Steps) -> Steps:
    return Steps(model.encode(batch.x), model.encode(batch.x_next), batch.cost, model.encode(batch.goal))


def test_joint_is_the_weighted_sum_for_all_weights():
    model, batch = made("joint"), random_steps()
    expected = model.jepa(batch, 3).total + 0.5 * model.objective(latents(model, batch), 3).total
    found = model(batch, 3).total
    torch.testing.assert_close(found, expected)
    for ours, by_hand in zip(gradients(found, model), gradients(expected, model), strict=True):
        torch.testing.assert_close(ours, by_hand)


def test_separate_has_the_same_value_but_no_energy_gradient_in_the_encoder():
    joint, model, batch = made("joint"), made("separate"), random_steps()
    found = model(batch, 3).total
    torch.testing.assert_close(found, joint(batch, 3).total)
    alone = gradients(model.jepa(batch, 3).total, model.jepa)
    for ours, by_hand in zip(gradients(found, model.jepa), alone, strict=True):
        torch.testing.assert_close(ours, by_hand)
    energy = gradients(joint(batch, 3).total, joint.objective)
    for ours, by_hand in zip(gradients(found, model.objective), energy, strict=True):
        torch.testing.assert_close(ours, by_hand)
    assert not torch.allclose(gradients(joint(batch, 3).total, joint.jepa)[0], alone[0])


def test_terms_have_prefixes():
    loss = made("joint")(random_steps(), 0)
    assert {"jepa/loss", "jepa/sigreg", "energy/loss", "energy/push", "energy/multiplier"} <= set(loss.terms)
    assert loss.total.item() == pytest.approx((loss.terms["jepa/loss"] + 0.5 * loss.terms["energy/loss"]).item())


def test_the_energy_of_observations_is_that_of_their_latents():
    model, batch = made("separate"), random_steps()
    u, v = model.encode(batch.x), model.encode(batch.goal)
    torch.testing.assert_close(model.energy(batch.x, batch.goal), model.objective.energy(u, v))


def test_a_frozen_jepa_does_not_change(tmp_path: Path):
    states, _, moves = grid()
    torch.manual_seed(0)
    jepa = LeJEPA(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))).requires_grad_(False)
    before = {name: value.clone() for name, value in jepa.state_dict().items()}
    model = IEJEPA(jepa, QRL(EmbeddedEnergy(MaxSum(2), nn.Linear(3, 8))))
    first = model.objective.energy.embedding.weight.clone()
    config = TrainingConfig(steps=5, batch_size=16, collapse=0)
    assert train(model, StepStream(chain(states, moves, 5, 10), 16, 0), config, tmp_path, recipe="mine").step == 5
    assert all(torch.equal(value, before[name]) for name, value in jepa.state_dict().items())
    assert not torch.equal(first, model.objective.energy.embedding.weight)
    assert not any(name.startswith("jepa") for name in model(random_steps(dim=2), 0).terms)


def test_the_smallest_batch_depends_on_whether_the_jepa_is_frozen():
    jepa = ExactWhitening(nn.Linear(4, 9), 9)
    objective = QRL(EmbeddedEnergy(MaxSum()))
    assert IEJEPA(jepa, objective).smallest_batch(9) == jepa.smallest_batch(9) > 1
    assert IEJEPA(jepa.requires_grad_(False), objective).smallest_batch(9) == 1


@pytest.mark.parametrize(("options", "message"), [({"mode": "both"}, "both"), ({"weight": 0.0}, "weight")])
def test_invalid_settings_are_rejected(options: dict, message: str):
    with pytest.raises(InputError, match=message):
        IEJEPAConfig(**options)


def test_a_prediction_error_is_not_a_quasimetric():
    """Even for a perfect model of x → x + 1: E(x, x) = 1, and a detour over the midpoint is cheaper."""
    successor = nn.Linear(1, 1)
    nn.init.ones_(successor.weight)
    nn.init.ones_(successor.bias)
    error = PredictionError(nn.Identity(), successor)
    at = torch.tensor([[0.0], [5.0], [10.0]])
    d = error(at[:, None], at[None]).detach()
    torch.testing.assert_close(d, (at + 1 - at.T).square())
    assert d[0, 0] == 1 and d[0, 2] > d[0, 1] + d[1, 2]
    assert not error.guaranteed_quasimetric
    torch.testing.assert_close(PredictionError(nn.Identity())(at, at + 2), torch.full((3,), 4.0))
