"""Calibration recovers a known scale, with a valid interval."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from energy.learn.tiny import MaxSum

from jepatlas.core.errors import InputError
from jepatlas.core.records import Experience
from jepatlas.energy.learn import EmbeddedEnergy, calibrate, step_scale


def experience(factor: float, zeros: int = 0, floor: float = 0.0, count: int = 60) -> Experience:
    """Steps whose cost is `factor` times `MaxSum` plus the floor; the first `zeros` steps cost nothing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 3))
    x_next = x + rng.normal(size=(count, 3))
    x_next[:zeros] = x[:zeros] - np.array([1e-3, 0, 0])  # downwards, of length 0
    cost = factor * np.maximum(x_next - x, 0).sum(1) + floor * np.linalg.norm(x_next - x, axis=1)
    return Experience(x, x_next, cost, np.repeat(np.arange(count // 6), 6))


@pytest.mark.parametrize("factor", [0.4, 1.0, 250.0])
def test_a_known_scale_is_recovered(factor: float):
    energy = EmbeddedEnergy(MaxSum())
    energy.scale.fill_(7.0)  # the previous scale has no effect
    given = experience(factor)
    estimate = calibrate(energy, given)
    assert estimate.value == pytest.approx(factor, rel=1e-5) and estimate.n == 60
    learned = energy(torch.tensor(given.x).float(), torch.tensor(given.x_next).float())
    np.testing.assert_allclose(learned, given.cost, rtol=1e-4)


def test_steps_of_cost_zero_and_steps_that_stay_have_no_effect():
    given = experience(2.0, zeros=20)
    stay = Experience(given.x, given.x, np.full(60, 5.0), given.episode)
    both = Experience(
        *(
            np.concatenate([getattr(part, name) for part in (given, stay)])
            for name in ("x", "x_next", "cost", "episode")
        )
    )
    assert calibrate(EmbeddedEnergy(MaxSum()), both).value == pytest.approx(2.0, rel=1e-5)


def test_a_floor_is_not_counted_twice():
    energy = EmbeddedEnergy(MaxSum(), floor=0.2)
    given = experience(1.5, floor=0.2)
    assert calibrate(energy, given).value == pytest.approx(1.5, rel=1e-5)


def test_the_interval_has_its_nominal_coverage():
    """Errors within an episode are dependent, so intervals over rows would be too narrow."""
    rng, held = np.random.default_rng(0), 0
    for trial in range(60):
        error = np.repeat(np.exp(0.3 * rng.normal(size=25)) / np.exp(0.045), 20)
        estimate = step_scale(np.ones(500), 2.0 * error, np.repeat(np.arange(25), 20), seed=trial)
        held += estimate.low <= 2.0 <= estimate.high
    assert 50 <= held <= 60


def test_a_single_episode_has_an_interval():
    rng = np.random.default_rng(0)
    estimate = step_scale(np.ones(400), 1 + 0.1 * rng.normal(size=400), np.zeros(400))
    assert estimate.low < 1 < estimate.high and estimate.high - estimate.low < 0.05


def test_steps_without_length_are_rejected():
    given = experience(1.0)
    with pytest.raises(InputError, match="held_out"):
        calibrate(EmbeddedEnergy(MaxSum()), Experience(given.x, given.x, given.cost, given.episode))
    with pytest.raises(InputError, match="length 0"):
        step_scale(np.zeros(4), np.ones(4), np.arange(4))
    with pytest.raises(InputError, match="floor"):
        calibrate(EmbeddedEnergy(MaxSum(), floor=50.0), given)
