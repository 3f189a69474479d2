"""Each schedule against its closed form, written out."""

from __future__ import annotations

import math

import pytest

from jepatlas.core.errors import InputError
from jepatlas.training import ConstantSchedule, CosineSchedule, OneCycleSchedule

STEPS = 100


def test_constant_rises_and_stays():
    factors = [ConstantSchedule(warmup=4).factor(step, STEPS) for step in range(STEPS)]
    assert factors[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert factors[4:] == [1.0] * 96
    assert [ConstantSchedule().factor(step, STEPS) for step in range(3)] == [1.0] * 3


def test_cosine_rises_holds_and_falls():
    schedule = CosineSchedule(warmup=9, hold=11, floor=0.1)
    factors = [schedule.factor(step, STEPS) for step in range(STEPS + 5)]
    assert factors[:9] == pytest.approx([(step + 1) / 10 for step in range(9)])
    assert factors[9:20] == [1.0] * 11
    for step in range(20, STEPS):
        assert factors[step] == pytest.approx(0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * (step - 20) / 80)))
    assert factors[60] == pytest.approx(0.55)  # half way
    assert factors[STEPS:] == pytest.approx([0.1] * 5)


def test_one_cycle_rises_to_its_peak_and_ends_at_its_last():
    schedule = OneCycleSchedule(peak=0.25, first=0.04, last=1e-3)
    factors = [schedule.factor(step, STEPS) for step in range(STEPS)]
    for step in range(25):
        assert factors[step] == pytest.approx(1 - 0.96 * 0.5 * (1 + math.cos(math.pi * step / 25)))
    for step in range(25, STEPS):
        assert factors[step] == pytest.approx(1e-3 + 0.999 * 0.5 * (1 + math.cos(math.pi * (step - 25) / 74)))
    assert (factors[0], factors[25], factors[-1]) == pytest.approx((0.04, 1.0, 1e-3))


@pytest.mark.parametrize("schedule", [ConstantSchedule(3), CosineSchedule(7), CosineSchedule(3), OneCycleSchedule()])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_shortest_runs_have_a_rate_too(schedule, steps: int):
    assert all(0 < schedule.factor(step, steps) <= 1 for step in range(steps))


@pytest.mark.parametrize(
    "build",
    [
        lambda: ConstantSchedule(warmup=-1),
        lambda: CosineSchedule(warmup=-1),
        lambda: CosineSchedule(hold=-1),
        lambda: CosineSchedule(floor=-0.1),
        lambda: OneCycleSchedule(peak=0.0),
        lambda: OneCycleSchedule(peak=1.0),
        lambda: OneCycleSchedule(first=-0.1),
        lambda: OneCycleSchedule(last=-0.1),
    ],
)
def test_a_rate_that_would_climb_the_loss_is_refused(build):
    with pytest.raises(InputError, match=" is "):
        build()
