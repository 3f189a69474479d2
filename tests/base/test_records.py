"""Verdicts never let noise pass; maps compose, invert and survive a file."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.base.errors import InputError
from jepatlas.base.files import read_json, write_json
from jepatlas.base.records import Estimate, LinearMap, Verdict


def judge(estimate: Estimate, direction: Any, threshold: float | None) -> Verdict:
    return Verdict.judge(
        "r2", estimate, direction=direction, threshold=threshold, null=0.1, good="use it", bad="train longer"
    )


@pytest.mark.parametrize(
    ("direction", "threshold", "passed"),
    [
        ("higher", 0.7, True),
        ("higher", 0.8, True),  # the worse end itself
        ("higher", 0.85, False),  # the value passes, the worse end does not
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
def test_the_worse_end_decides(direction, threshold, passed):
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
def test_a_value_outside_its_own_interval_decides_too(direction):
    value = 0.4 if direction == "higher" else 0.6
    assert judge(Estimate(value, 0.5, 0.5, 10), direction, 0.5).passed is False


def test_numpy_numbers_are_judged_as_plain_ones():
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
    # `==` would call two NaN different
    assert repr(Verdict.from_json(read_json(path))) == repr(verdict)
    expected = ["name", "value", "low", "high", "n", "null", "threshold", "direction", "passed", "advice"]
    assert list(read_json(path)) == expected


@pytest.mark.parametrize("change", [{"value": "high"}, {"colour": 1}, {"value": [1]}])
def test_a_verdict_from_garbage(change):
    data = judge(Estimate(1, 1, 1, 1), "higher", None).to_json()
    with pytest.raises(InputError, match="not a saved verdict"):
        Verdict.from_json(data | change)
    with pytest.raises(InputError, match="missing"):
        Verdict.from_json({"name": "r2"})


width = st.integers(1, 6)
seed = st.integers(0, 2**32 - 1)


def random_map(d_out: int, d_in: int, rng: np.random.Generator) -> LinearMap:
    return LinearMap(rng.normal(size=(d_out, d_in)), rng.normal(size=d_in), rng.normal(size=d_out))


@given(width, width, width, width, seed)
def test_compose_is_one_map_after_the_other(a, b, c, d, seed):
    rng = np.random.default_rng(seed)
    f, g, h = random_map(b, a, rng), random_map(c, b, rng), random_map(d, c, rng)
    x = rng.normal(size=(5, a))
    by_hand = np.array([f.weight @ (row - f.x_mean) + f.y_mean for row in x])
    np.testing.assert_allclose(f.apply(x), by_hand, atol=1e-12)
    np.testing.assert_allclose(f.compose(g).apply(x), g.apply(f.apply(x)), atol=1e-10)
    left, right = f.compose(g).compose(h), f.compose(g.compose(h))
    np.testing.assert_allclose(left.apply(x), right.apply(x), atol=1e-10)
    assert f.compose(g).weight.shape == (c, a)


@given(width, width, seed)
def test_invert(d_out, d_in, seed):
    rng = np.random.default_rng(seed)
    u, _, vt = np.linalg.svd(rng.normal(size=(d_out, d_in)), full_matrices=False)
    f = LinearMap((u * rng.uniform(0.5, 2, len(vt))) @ vt, rng.normal(size=d_in), rng.normal(size=d_out))
    g = f.invert()
    x, y = rng.normal(size=(4, d_in)), rng.normal(size=(4, d_out))
    if d_out >= d_in:
        np.testing.assert_allclose(g.apply(f.apply(x)), x, atol=1e-10)
    if d_out <= d_in:
        np.testing.assert_allclose(f.apply(g.apply(y)), y, atol=1e-10)
    # Moore–Penrose: the shortest x among those that come nearest to y
    np.testing.assert_allclose(f.apply(g.apply(f.apply(x))), f.apply(x), atol=1e-10)
    np.testing.assert_allclose(g.invert().weight, f.weight, atol=1e-10)


def test_invert_where_the_rank_is_not_full():
    f = LinearMap(np.diag([2.0, 0.0]), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(f.invert().apply(np.array([[5.0, 9.0]])), [[2.0, 0.0]])


@given(width, width, seed)
@settings(max_examples=25)
def test_save_and_load_keep_the_bits(tmp_path_factory: pytest.TempPathFactory, d_out, d_in, seed):
    rng = np.random.default_rng(seed)
    saved = replace(random_map(d_out, d_in, rng), weight=rng.normal(size=(d_in, d_out)).T)  # not contiguous
    path = tmp_path_factory.getbasetemp() / "map.safetensors"
    saved.save(path)
    loaded = LinearMap.load(str(path))
    for key in ("weight", "x_mean", "y_mean"):
        assert np.array_equal(getattr(saved, key), getattr(loaded, key))
        assert getattr(loaded, key).dtype == np.float64


def test_loading_garbage(tmp_path: Path):
    path = tmp_path / "map.safetensors"
    with pytest.raises(InputError, match=r"map\.safetensors"):
        LinearMap.load(path)
    with pytest.raises(InputError, match="not a saved LinearMap"):
        LinearMap.load(tmp_path)
    random_map(2, 3, np.random.default_rng(0)).save(path)
    whole = path.read_bytes()
    for data in (b"", b"garbage", whole[:20], whole[:-1], b"\xff" * 100):
        path.write_bytes(data)
        with pytest.raises(InputError, match="not a saved LinearMap"):
            LinearMap.load(path)


@pytest.mark.parametrize(
    "shapes",
    [
        {"weight": (2, 3)},
        {"weight": (2, 3), "x_mean": (3,), "y_mean": (2,), "more": (1,)},
        {"weight": (2, 3), "x_mean": (2,), "y_mean": (3,)},
        {"weight": (6,), "x_mean": (6,), "y_mean": ()},
        {"weight": (2, 3), "x_mean": (1, 3), "y_mean": (2,)},
    ],
)
def test_loading_other_arrays(tmp_path: Path, shapes):
    path = tmp_path / "map.safetensors"
    safetensors.numpy.save_file({key: np.zeros(shape) for key, shape in shapes.items()}, path)
    with pytest.raises(InputError, match="not a saved LinearMap"):
        LinearMap.load(path)
