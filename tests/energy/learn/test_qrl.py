"""QRL against its formulas, in the real loop, on a grid with a wall that lets through one way."""

from __future__ import annotations

import math
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from energy.learn.tiny import MaxSum, chain, grid, random_steps
from processes import run_processes
from torch import nn
from training.small import metrics, same, tensors

from jepatlas.core.distributed import rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.records import Steps
from jepatlas.core.stats import spearman
from jepatlas.data import StepStream
from jepatlas.energy.learn import QRL, EmbeddedEnergy, QRLConfig, calibrate
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
def test_the_loss_is_its_formula(unit: float):
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


def test_the_unit_of_cost_is_only_a_unit():
    """A run on costs in cents is the run on costs in euros, a hundred times as large."""
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


def test_the_multiplier_answers_to_the_constraint():
    batch = random_steps(dim=2)
    for cost, sign in ((0.0, 1), (100.0, -1)):
        objective = made()
        objective(Steps(batch.x, batch.x_next, torch.full((16,), cost), batch.goal), 0).total.backward()
        optimizer = torch.optim.AdamW(objective.parameters(), 1e-3)
        before = objective.multiplier().item()
        optimizer.step()
        assert sign * (objective.multiplier().item() - before) > 0


def test_it_learns_the_grid_and_that_there_is_no_way_back(tmp_path: Path):
    objective = made(offset=15.0, multiplier_rate=10.0)
    config = replace(TRAINING, steps=1200, batch_size=128, lr=3e-3, checkpoint_every=1200, log_every=400)
    batches = StepStream(chain(STATES, MOVES, 40, 25), 128, 0)
    assert train(objective, batches, config, tmp_path, recipe="mine").status == "finished"
    calibrate(objective.energy, chain(STATES, MOVES, 40, 25, seed=1))
    x = torch.tensor(STATES, dtype=torch.float32)
    learned = objective.energy.all_pairs(x, x).numpy()
    way = np.isfinite(TRUTH) & (TRUTH > 0)
    assert spearman(learned[way], TRUTH[way]).value > 0.9
    one_way = np.isinf(TRUTH)
    assert learned[one_way].min() > learned[way].max()
    assert np.median(learned[way] / TRUTH[way]) == pytest.approx(1, abs=0.15)


def test_a_resumed_run_ends_with_the_same_bits(tmp_path: Path):
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
def test_two_processes_train_as_one(tmp_path: Path):
    assert run_processes(two_processes, 2, tmp_path / "two") == ["finished", "finished"]
    train(made(), stream(), TRAINING, tmp_path / "one", recipe="mine")
    for ours, expected in zip(metrics(tmp_path / "two"), metrics(tmp_path / "one"), strict=True):
        assert ours == pytest.approx(expected, rel=1e-4, abs=1e-6)
    ours, expected = tensors(tmp_path / "two"), tensors(tmp_path / "one")
    torch.testing.assert_close(ours["model.multiplier.parameter"], expected["model.multiplier.parameter"])


@pytest.mark.parametrize("name", ["offset", "beta", "epsilon", "multiplier", "multiplier_rate"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_settings_are_positive(name: str, value: float):
    with pytest.raises(InputError, match=name):
        QRLConfig(**{name: value})


def test_a_unit_is_positive():
    with pytest.raises(InputError, match="unit of cost"):
        QRLConfig().build(EmbeddedEnergy(MaxSum()), unit=0.0)


def test_pairs_from_where_episodes_end_for_good_are_pushed_apart():
    """A hole that no step leaves: x never holds it, and yet its energy to elsewhere must grow."""
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
