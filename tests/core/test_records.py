"""Verdicts: decision by the interval, NaN, and JSON round trips."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json, write_json
from jepatlas.core.records import Estimate, Verdict


def judge(estimate: Estimate, direction: Any, threshold: float | None) -> Verdict:
    return Verdict.judge(
        "r2", estimate, direction=direction, threshold=threshold, null=0.1, good="use it", bad="train longer"
    )


@pytest.mark.parametrize(
    ("direction", "threshold", "passed"),
    [
        ("higher", 0.7, True),
        ("higher", 0.8, True),  # equal to the worse end
        ("higher", 0.85, False),  # the value passes, but the worse end does not
        ("higher", 1.0, False),
        ("lower", 1.0, True),
        ("lower", 0.95, True),
        ("lower", 0.92, False),
        ("lower", 0.1, False),
        ("higher", -math.inf, True),
        ("lower", math.nan, False),
        ("higher", None, None),
    ],
)
def test_worse_end_of_the_interval_decides(direction, threshold, passed):
    verdict = judge(Estimate(0.9, 0.8, 0.95, 100), direction, threshold)
    assert verdict.passed is passed
    assert verdict.advice == ("train longer" if passed is False else "use it")
    assert (verdict.value, verdict.low, verdict.high, verdict.n) == (0.9, 0.8, 0.95, 100)
    assert (verdict.null, verdict.threshold, verdict.direction) == (0.1, threshold, direction)


@pytest.mark.parametrize("direction", ["higher", "lower"])
@pytest.mark.parametrize("field", ["value", "low", "high"])
def test_nan_never_passes(direction, field):
    estimate = replace(Estimate(0.5, 0.5, 0.5, 10), **{field: math.nan})
    verdict = judge(estimate, direction, math.inf if direction == "lower" else -math.inf)
    assert verdict.passed is False and verdict.advice == "train longer"


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_value_outside_its_interval_fails(direction):
    value = 0.4 if direction == "higher" else 0.6
    assert judge(Estimate(value, 0.5, 0.5, 10), direction, 0.5).passed is False


def test_numpy_numbers_are_accepted():
    verdict = judge(Estimate(np.float64(0.9), np.float64(0.8), np.float64(0.95), 5), "higher", 0.85)
    assert verdict.passed is False and verdict.advice == "train longer"


number = st.floats(allow_nan=True, allow_infinity=True)


@given(st.tuples(number, number, number), st.none() | number, st.none() | number, st.sampled_from(["higher", "lower"]))
@settings(max_examples=50)
def test_json_round_trip(tmp_path_factory: pytest.TempPathFactory, numbers, null, threshold, direction):
    value, low, high = numbers
    estimate = Estimate(value, low, high, 7)
    verdict = Verdict.judge("x", estimate, direction=direction, threshold=threshold, null=null, good="ρ", bad="no")
    path = tmp_path_factory.getbasetemp() / "verdict.json"
    write_json(path, verdict.to_json())
    # NaN != NaN
    assert repr(Verdict.from_json(read_json(path))) == repr(verdict)
    expected = ["name", "value", "low", "high", "n", "null", "threshold", "direction", "passed", "advice"]
    assert list(read_json(path)) == expected


@pytest.mark.parametrize("change", [{"value": "high"}, {"colour": 1}, {"value": [1]}])
def test_invalid_json_is_rejected(change):
    data = judge(Estimate(1, 1, 1, 1), "higher", None).to_json()
    with pytest.raises(InputError, match="not a saved verdict"):
        Verdict.from_json(data | change)
    with pytest.raises(InputError, match="missing"):
        Verdict.from_json({"name": "r2"})
