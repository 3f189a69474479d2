"""Linear maps: composition, inverse and files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap

width = st.integers(1, 6)
seed = st.integers(0, 2**32 - 1)


def random_map(d_out: int, d_in: int, rng: np.random.Generator) -> LinearMap:
    return LinearMap(rng.normal(size=(d_out, d_in)), rng.normal(size=d_in), rng.normal(size=d_out))


@given(width, width, width, width, seed)
def test_compose_applies_maps_in_order(a, b, c, d, seed):
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
    # Moore–Penrose: the minimum-norm x among the least-squares solutions
    np.testing.assert_allclose(f.apply(g.apply(f.apply(x))), f.apply(x), atol=1e-10)
    np.testing.assert_allclose(g.invert().weight, f.weight, atol=1e-10)


def test_invert_of_deficient_rank():
    f = LinearMap(np.diag([2.0, 0.0]), np.zeros(2), np.ones(2))
    np.testing.assert_allclose(f.invert().apply(np.array([[5.0, 9.0]])), [[2.0, 0.0]])


@given(width, width, seed)
@settings(max_examples=25)
def test_save_and_load_are_bit_exact(tmp_path_factory: pytest.TempPathFactory, d_out, d_in, seed):
    rng = np.random.default_rng(seed)
    saved = replace(random_map(d_out, d_in, rng), weight=rng.normal(size=(d_in, d_out)).T)  # not contiguous
    path = tmp_path_factory.getbasetemp() / "map.safetensors"
    saved.save(path)
    loaded = LinearMap.load(str(path))
    for key in ("weight", "x_mean", "y_mean"):
        assert np.array_equal(getattr(saved, key), getattr(loaded, key))
        assert getattr(loaded, key).dtype == np.float64


def test_malformed_file_is_rejected(tmp_path: Path):
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
def test_file_with_other_arrays_is_rejected(tmp_path: Path, shapes):
    path = tmp_path / "map.safetensors"
    safetensors.numpy.save_file({key: np.zeros(shape) for key, shape in shapes.items()}, path)
    with pytest.raises(InputError, match="not a saved LinearMap"):
        LinearMap.load(path)
