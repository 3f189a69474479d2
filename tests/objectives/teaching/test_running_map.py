"""Running map against its definition, a weighted ridge fit of all rows so far."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives.teaching import RunningMap, RunningMapConfig

ROWS, IN, OUT = 12, 3, 5


def batch(step: int, rows: int = ROWS) -> tuple[Tensor, Tensor]:
    """y = A x + 4 with noise; x is far from the origin and drifts."""
    noise = torch.randn(rows, IN + OUT, generator=torch_generator(0, "rows", step), dtype=torch.float64)
    x = 5 + 0.1 * step + noise[:, :IN] * torch.tensor([1.0, 2.0, 0.5])
    a = torch.randn(OUT, IN, generator=torch_generator(0, "a"), dtype=torch.float64)
    return x, x @ a.T + 4 + 0.1 * noise[:, IN:]


def run(config: RunningMapConfig, steps: int) -> RunningMap:
    through = RunningMap(IN, OUT, config)
    for step in range(steps):
        through.observe(*batch(step))
        through.after_step(step)
    return through


def by_definition(config: RunningMapConfig, steps: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Ridge on all rows at once, each weighted by its age."""
    x, y = (np.concatenate([batch(step)[side].numpy() for step in range(steps)]) for side in range(2))
    w = np.repeat((1 - 1 / config.memory) ** np.arange(steps)[::-1], ROWS)
    x_mean, y_mean = np.average(x, axis=0, weights=w), np.average(y, axis=0, weights=w)
    xc, yc = x - x_mean, y - y_mean
    xx, yx = xc.T @ (w[:, None] * xc), yc.T @ (w[:, None] * xc)
    weight = yx @ np.linalg.inv(xx + config.ridge * np.trace(xx) / IN * np.eye(IN))
    return weight, y_mean - weight @ x_mean, float((w @ yc**2).sum() / w.sum())


@pytest.mark.parametrize("config", [RunningMapConfig(), RunningMapConfig(memory=3.0, ridge=0.1)])
@pytest.mark.parametrize("steps", [1, 2, 9])
def test_map_is_the_weighted_ridge_fit_of_all_rows(config: RunningMapConfig, steps: int):
    through = run(config, steps)
    weight, offset, variance = by_definition(config, steps)
    np.testing.assert_allclose(through.weight, weight, rtol=1e-9)
    np.testing.assert_allclose(through.offset, offset, rtol=1e-9)
    np.testing.assert_allclose(through.variance, variance, rtol=1e-9)


def test_memory_of_one_step_fits_only_its_rows():
    config = RunningMapConfig(memory=1.0, ridge=1e-12)
    x, y = (side.numpy() for side in batch(4))
    found = np.linalg.lstsq(np.column_stack([x, np.ones(ROWS)]), y, rcond=None)[0].T
    np.testing.assert_allclose(run(config, 5).weight, found[:, :IN], rtol=1e-6)


def test_loss_is_the_unexplained_share_of_variance():
    through = run(RunningMapConfig(), 9)
    x, y = batch(20, 400)
    predicted = np.array([through.weight.numpy() @ row + through.offset.numpy() for row in x.numpy()])
    expected = ((y.numpy() - predicted) ** 2).sum(1).mean() / through.variance.item()
    torch.testing.assert_close(through(x, y).item(), expected)
    assert expected < 0.05
    assert through(x, y[torch.randperm(400, generator=torch_generator(0, "other"))]) > 0.9


def test_gradient_treats_the_map_as_constant():
    through = run(RunningMapConfig(), 4)
    x, y = (side.requires_grad_() for side in batch(5))
    through(x, y).backward()
    off = (y - x @ through.weight.T - through.offset).detach()
    scale = 2 / (ROWS * through.variance)
    torch.testing.assert_close(y.grad, scale * off)
    torch.testing.assert_close(x.grad, -scale * off @ through.weight)
    assert not list(through.parameters())


def test_loss_is_zero_before_the_first_fit():
    through = RunningMap(IN, OUT)
    x, y = (side.requires_grad_() for side in batch(0))
    loss = through(x, y)
    loss.backward()
    assert loss == 0 and x.grad is not None and not x.grad.any()


def test_first_fit_waits_for_enough_pairs():
    through = RunningMap(IN, OUT)
    for step, ready in enumerate([False, False, False, True]):
        through.observe(*batch(step, 2))
        through.after_step(step)
        assert bool(through.variance.isfinite()) == ready
    forgetful = RunningMap(IN, OUT, RunningMapConfig(memory=1.0))  # the maximal number of effective pairs
    forgetful.observe(*batch(0, 2))
    forgetful.after_step(0)
    assert forgetful.variance.isfinite()


def test_map_is_refitted_at_the_given_interval():
    through, weights = RunningMap(IN, OUT, RunningMapConfig(every=3)), []
    for step in range(7):
        through.observe(*batch(step))
        through.after_step(step)
        weights.append(through.weight.clone())
    changed = [not torch.equal(a, b) for a, b in itertools.pairwise(weights)]
    assert changed == [False, True, False, False, True, False]  # after steps 2 and 5


def test_evaluation_changes_nothing_and_state_round_trips():
    through = run(RunningMapConfig(), 3)
    twin = RunningMap(IN, OUT)
    twin.load_state_dict(copy.deepcopy(through.state_dict()))
    with torch.no_grad():
        through.observe(*batch(7))  # an evaluation
    for one in (through, twin):
        one.observe(*batch(3))
        one.after_step(3)
        one.after_step(4)  # no rows were recorded
    for name, value in through.state_dict().items():
        assert torch.equal(value, twin.state_dict()[name]), name


def test_all_micro_batches_of_a_step_are_recorded():
    whole, parts = RunningMap(IN, OUT), RunningMap(IN, OUT)
    for step in range(4):
        x, y = batch(step, 12)
        whole.observe(x, y)
        for rows in (slice(0, 4), slice(4, 8), slice(8, 12)):
            parts.observe(x[rows], y[rows])
        for one in (whole, parts):
            one.after_step(step)
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(value, parts.state_dict()[name])
    assert whole.variance.isfinite()


def test_constant_latents_give_finite_results():
    through = RunningMap(IN, OUT)
    for step in range(3):
        through.observe(torch.ones(ROWS, IN), torch.ones(ROWS, OUT))
        through.after_step(step)
    assert through.weight.isfinite().all() and through(torch.ones(2, IN), torch.ones(2, OUT)).isfinite()


def test_operation_count_includes_moments_and_fit():
    through = RunningMap(IN, OUT, RunningMapConfig(every=2))
    assert through.flops(ROWS) == pytest.approx(2 * 12 * 8**2 + (2 / 3 * 27 + 2 * 9 * 5) / 2)


@pytest.mark.parametrize("wrong", [{"every": 0}, {"memory": 0.5}, {"memory": float("inf")}, {"ridge": 0.0}])
def test_errors_name_the_value(wrong: dict[str, float]):
    with pytest.raises(InputError, match=str(next(iter(wrong.values())))):
        RunningMapConfig(**wrong)  # pyright: ignore[reportArgumentType]
