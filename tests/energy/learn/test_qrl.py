"""QRL against its formulas, on a grid with a one-way wall, and its multiplier against two optimisers."""

from __future__ import annotations

import math
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from energy.learn.tiny import MaxSum, chain, grid, random_steps
from processes import run_processes
from torch import Tensor, nn
from training.small import metrics, same, tensors

from jepatlas.core.distributed import rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.records import Steps
from jepatlas.core.stats import spearman
from jepatlas.data import StepStream
from jepatlas.energy.learn import QRL, EmbeddedEnergy, QRLConfig, calibrate
from jepatlas.energy.learn.qrl import Multiplier
from jepatlas.training import TrainingConfig, train

STATES, TRUTH, MOVES = grid()
TRAINING = TrainingConfig(steps=30, batch_size=32, lr=1e-3, collapse=0, log_every=10, checkpoint_every=10, clip=None)


def made(seed: int = 0, width: int = 32, **settings: Any) -> QRL:
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(2, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, width))
    return QRL(EmbeddedEnergy(MaxSum(4), network), QRLConfig(**settings))


def stream() -> StepStream:
    return StepStream(chain(STATES, MOVES, 20, 20), 32, 0, rank=rank(), world_size=world_size())


@pytest.mark.parametrize("unit", [1.0, 0.02])
def test_the_loss_matches_its_formula(unit: float):
    batch, config = random_steps(), QRLConfig(offset=3.0, beta=0.7, epsilon=0.2, multiplier=0.4)
    energy = EmbeddedEnergy(MaxSum(2))
    loss = config.build(energy, unit)(batch, 0)
    d_step = (batch.x_next - batch.x).relu().reshape(-1, 2, 2).sum(-1).amax(-1).double()
    state = torch.stack([(batch.x, batch.x_next)[row % 2][row] for row in range(len(batch.x))])
    d_goal = (batch.goal - state).relu().reshape(-1, 2, 2).sum(-1).amax(-1).double()
    push = torch.log1p(torch.exp(0.7 * (3.0 - d_goal))).mean() / 0.7
    excess = (d_step - batch.cost.double() / unit).clamp_min(0).square().mean()
    assert loss.total.item() == pytest.approx(float(push + 0.4 * (excess - 0.2**2)), rel=1e-5)
    assert float(loss.terms["push"]) == pytest.approx(float(push), rel=1e-5)
    assert float(loss.terms["excess"]) == pytest.approx(float(excess), rel=1e-5)
    torch.testing.assert_close(energy(state, batch.goal), unit * d_goal.float())


def test_the_loss_is_equivariant_to_the_unit_of_cost():
    """With costs in cents instead of euros, energies are a hundred times as large."""
    batch = random_steps(dim=2)
    cents = Steps(batch.x, batch.x_next, 100 * batch.cost, batch.goal)
    euro, cent = made(), made()
    cent = QRL(cent.energy, cent.config, unit=100.0)
    for _ in range(3):
        for objective, given in ((euro, batch), (cent, cents)):
            objective(given, 0).total.backward()
            for parameter in objective.parameters():
                assert parameter.grad is not None
                parameter.data -= 0.1 * parameter.grad
                parameter.grad = None
    torch.testing.assert_close(cent.energy(batch.x, batch.goal), 100 * euro.energy(batch.x, batch.goal))


def test_the_multiplier_responds_to_the_constraint():
    batch = random_steps(dim=2)
    for cost, sign in ((0.0, 1), (100.0, -1)):
        objective = made()
        objective(Steps(batch.x, batch.x_next, torch.full((16,), cost), batch.goal), 0).total.backward()
        optimizer = torch.optim.AdamW(objective.parameters(), 1e-3)
        before = objective.multiplier().item()
        optimizer.step()
        assert sign * (objective.multiplier().item() - before) > 0


def test_qrl_learns_the_grid_and_its_one_way_pairs(tmp_path: Path):
    objective = made(offset=15.0, multiplier_rate=10.0)
    config = replace(TRAINING, steps=1200, batch_size=128, lr=3e-3, checkpoint_every=1200, log_every=400)
    batches = StepStream(chain(STATES, MOVES, 40, 25), 128, 0)
    assert train(objective, batches, config, tmp_path, recipe="mine").status == "finished"
    calibrate(objective.energy, chain(STATES, MOVES, 40, 25, seed=1))
    x = torch.tensor(STATES, dtype=torch.float32)
    learned = objective.energy.all_pairs(x, x).numpy()
    reachable = np.isfinite(TRUTH) & (TRUTH > 0)
    assert spearman(learned[reachable], TRUTH[reachable]).value > 0.9
    one_way = np.isinf(TRUTH)
    assert learned[one_way].min() > learned[reachable].max()
    assert np.median(learned[reachable] / TRUTH[reachable]) == pytest.approx(1, abs=0.15)


def test_a_resumed_run_is_identical(tmp_path: Path):
    batches = stream()

    def interrupted(step: int) -> Steps:
        if step == 17:
            signal.raise_signal(signal.SIGTERM)
        return batches(step)

    train(made(), batches, TRAINING, tmp_path / "whole", recipe="mine")
    first = train(made(), interrupted, TRAINING, tmp_path / "parts", recipe="mine")
    assert (first.status, first.step) == ("interrupted", 18)
    train(made(), batches, TRAINING, tmp_path / "parts", recipe="mine")
    assert same(tmp_path / "whole", tmp_path / "parts")
    assert not torch.equal(tensors(tmp_path / "whole")["model.multiplier.parameter"], made().multiplier.parameter)


def two_processes(folder: Path) -> str:
    return train(made(), stream(), TRAINING, folder, recipe="mine").status


@pytest.mark.slow
def test_two_processes_match_one(tmp_path: Path):
    assert run_processes(two_processes, 2, tmp_path / "two") == ["finished", "finished"]
    train(made(), stream(), TRAINING, tmp_path / "one", recipe="mine")
    for ours, expected in zip(metrics(tmp_path / "two"), metrics(tmp_path / "one"), strict=True):
        assert ours == pytest.approx(expected, rel=1e-4, abs=1e-6)
    ours, expected = tensors(tmp_path / "two"), tensors(tmp_path / "one")
    torch.testing.assert_close(ours["model.multiplier.parameter"], expected["model.multiplier.parameter"])


@pytest.mark.parametrize("name", ["offset", "beta", "epsilon", "multiplier", "multiplier_rate"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_settings_must_be_positive(name: str, value: float):
    with pytest.raises(InputError, match=name):
        QRLConfig(**{name: value})


def test_the_unit_must_be_positive():
    with pytest.raises(InputError, match="unit"):
        QRLConfig().build(EmbeddedEnergy(MaxSum()), unit=0.0)


def test_pairs_from_terminal_states_are_pushed_apart():
    """No step starts from a terminal state, yet its energy to other states must grow."""
    torch.manual_seed(0)
    hole, floor = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    batch = Steps(floor.expand(8, 2), hole.expand(8, 2), torch.ones(8), floor.expand(8, 2))
    energy = EmbeddedEnergy(MaxSum(4), nn.Linear(2, 8))
    before = energy(hole, floor).item()
    objective = QRLConfig().build(energy)
    optimizer = torch.optim.Adam(objective.parameters(), 1e-2)
    for step in range(20):
        optimizer.zero_grad()
        objective(batch, step).total.backward()
        optimizer.step()
    assert energy(hole, floor).item() > before + 0.5


def push(theta: Tensor) -> Tensor:
    return -theta.sum()


def gap(theta: Tensor) -> Tensor:
    return (theta.square() - 1).mean()  # the constraint is gap ≤ 0


def two_optimisers(rate: float, steps: int, lr: float) -> tuple[Tensor, Tensor]:
    """One optimiser descends in θ, the other ascends in the raw multiplier at its own learning rate."""
    theta = nn.Parameter(torch.tensor([0.2, -0.4]))
    raw = nn.Parameter(torch.tensor(math.log(math.expm1(0.5))))
    down = torch.optim.AdamW([theta], lr, weight_decay=0.0)
    up = torch.optim.AdamW([raw], rate * lr, weight_decay=0.0, maximize=True)
    for _ in range(steps):
        loss = push(theta) + F.softplus(raw) * gap(theta)
        theta.grad, raw.grad = torch.autograd.grad(loss, [theta, raw])
        down.step()
        up.step()
    return theta.detach(), F.softplus(raw).detach()


def one_optimiser(rate: float, steps: int, lr: float) -> tuple[Tensor, Tensor]:
    theta, multiplier = nn.Parameter(torch.tensor([0.2, -0.4])), Multiplier(0.5, rate)
    both = torch.optim.AdamW([theta, *multiplier.parameters()], lr, weight_decay=0.0)
    for _ in range(steps):
        both.zero_grad()
        (push(theta) + multiplier() * gap(theta)).backward()
        both.step()
    return theta.detach(), multiplier().detach()


@pytest.mark.parametrize("rate", [1.0, 10.0])
def test_one_optimiser_matches_two(rate: float):
    for ours, expected in zip(one_optimiser(rate, 60, 0.01), two_optimisers(rate, 60, 0.01), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def test_the_multiplier_converges_to_the_constrained_optimum():
    theta, multiplier = one_optimiser(1.0, 1500, 0.01)
    torch.testing.assert_close(theta, torch.ones(2), atol=0.1, rtol=0)  # the largest sum with mean square 1
    assert float(multiplier) == pytest.approx(1.0, abs=0.1)  # −1 + λ·θ = 0


def raw_of(multiplier: Multiplier) -> float:
    return math.log(math.expm1(multiplier().item()))


def test_the_rate_changes_the_step_and_not_the_gradient():
    grads, steps = [], []
    for rate in (1.0, 50.0):
        multiplier = Multiplier(0.5, rate)
        before = raw_of(multiplier)
        optimizer = torch.optim.AdamW(multiplier.parameters(), 1e-3, weight_decay=0.0)
        (3.0 * multiplier()).backward()
        assert multiplier.parameter.grad is not None
        grads.append(multiplier.parameter.grad.item())
        optimizer.step()
        steps.append(raw_of(multiplier) - before)
    assert grads[0] == pytest.approx(grads[1], rel=1e-5) and grads[0] < 0
    assert steps == pytest.approx([1e-3, 50e-3], rel=1e-2)


@pytest.mark.parametrize(("violation", "sign"), [(0.3, 1), (-0.3, -1)])
def test_the_multiplier_rises_if_the_constraint_is_violated_and_falls_otherwise(violation: float, sign: int):
    multiplier = Multiplier(0.01, 10.0)
    assert multiplier().item() == pytest.approx(0.01, rel=1e-4)
    optimizer = torch.optim.AdamW(multiplier.parameters(), 1e-2)
    values = [multiplier().item()]
    for _ in range(20):
        optimizer.zero_grad()
        (multiplier() * violation).backward()
        optimizer.step()
        values.append(multiplier().item())
    assert (sign * torch.tensor(values).diff() > 0).all()
