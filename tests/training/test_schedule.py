"""Learning-rate schedules against their closed forms."""

from __future__ import annotations

import math

import pytest

from jepatlas.core.errors import InputError
from jepatlas.training import ConstantSchedule, CosineSchedule, OneCycleSchedule

STEPS = 100


def test_constant_schedule_warms_up_and_stays():
    factors = [ConstantSchedule(warmup=4).factor(step, STEPS) for step in range(STEPS)]
    assert factors[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert factors[4:] == [1.0] * 96
    assert [ConstantSchedule().factor(step, STEPS) for step in range(3)] == [1.0] * 3


def test_cosine_schedule_warms_up_holds_and_decays():
    schedule = CosineSchedule(warmup=9, hold=11, floor=0.1)
    factors = [schedule.factor(step, STEPS) for step in range(STEPS + 5)]
    assert factors[:9] == pytest.approx([(step + 1) / 10 for step in range(9)])
    assert factors[9:20] == [1.0] * 11
    for step in range(20, STEPS):
        assert factors[step] == pytest.approx(0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * (step - 20) / 80)))
    assert factors[60] == pytest.approx(0.55)  # halfway
    assert factors[STEPS:] == pytest.approx([0.1] * 5)


def test_one_cycle_schedule_reaches_its_peak_and_its_final_rate():
    schedule = OneCycleSchedule(peak=0.25, first=0.04, last=1e-3)
    factors = [schedule.factor(step, STEPS) for step in range(STEPS)]
    for step in range(25):
        assert factors[step] == pytest.approx(1 - 0.96 * 0.5 * (1 + math.cos(math.pi * step / 25)))
    for step in range(25, STEPS):
        assert factors[step] == pytest.approx(1e-3 + 0.999 * 0.5 * (1 + math.cos(math.pi * (step - 25) / 74)))
    assert (factors[0], factors[25], factors[-1]) == pytest.approx((0.04, 1.0, 1e-3))


@pytest.mark.parametrize("schedule", [ConstantSchedule(3), CosineSchedule(7), CosineSchedule(3), OneCycleSchedule()])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_shortest_runs_have_a_positive_rate(schedule, steps: int):
    assert all(0 < schedule.factor(step, steps) <= 1 for step in range(steps))


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: ConstantSchedule(warmup=-1), "warmup.*-1"),
        (lambda: CosineSchedule(warmup=-1), "warmup.*-1"),
        (lambda: CosineSchedule(hold=-1), "hold.*-1"),
        (lambda: CosineSchedule(floor=-0.1), "floor.*-0.1"),
        (lambda: OneCycleSchedule(peak=0.0), "peak.*0.0"),
        (lambda: OneCycleSchedule(peak=1.0), "peak.*1.0"),
        (lambda: OneCycleSchedule(first=-0.1), "first.*-0.1"),
        (lambda: OneCycleSchedule(last=-0.1), "last.*-0.1"),
    ],
)
def test_invalid_rates_are_rejected(build, name: str):
    with pytest.raises(InputError, match=name):
        build()
