"""Coloured noise by its spectrum and its variance."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from jepatlas.core.seeding import torch_generator
from jepatlas.planning.candidates import coloured_noise

LIKE = torch.zeros(1, 32, 2, dtype=torch.float64)


@pytest.mark.parametrize("horizon", [2, 5, 32, 33])
@pytest.mark.parametrize("colour", [0.0, 0.5, 2.0, 4.0])
def test_variance_is_one_at_each_time(horizon: int, colour: float):
    noise = coloured_noise(20_000, LIKE[:, :1].expand(1, horizon, 2), colour, torch_generator(0, "noise"))
    assert noise.shape == (20_000, horizon, 2)
    np.testing.assert_allclose(noise.var(0).numpy(), 1, atol=0.06)
    np.testing.assert_allclose(noise.mean(0).numpy(), 0, atol=0.04)
    assert abs(torch.corrcoef(noise[:, 0].T)[0, 1]) < 0.03  # action dimensions are independent


@pytest.mark.parametrize("colour", [0.5, 1.0, 2.0])
def test_power_spectrum(colour: float):
    noise = coloured_noise(20_000, LIKE, colour, torch_generator(0, "noise"))
    power = np.square(np.abs(np.fft.rfft(noise.numpy(), axis=1))).mean((0, 2))
    slope = np.polyfit(np.log(np.fft.rfftfreq(32)[1:16]), np.log(power[1:16]), 1)[0]
    assert slope == pytest.approx(-colour, abs=0.03)
    assert power[0] == pytest.approx(power[1], rel=0.05)


def test_a_single_time_step_is_white():
    assert coloured_noise(3, LIKE[:, :1], 2.0, torch_generator(0, "noise")).shape == (3, 1, 2)
