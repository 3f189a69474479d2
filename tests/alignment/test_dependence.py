"""Dependence between rows: near copies, time series, and what is neither."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.alignment.dependence import find_dependence


def copies(seed: int, objects: int, views: int, dim: int, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    of = rng.permutation(np.repeat(np.arange(objects), views))
    a, b = (rng.standard_normal((objects, dim))[of] + noise * rng.standard_normal((len(of), dim)) for _ in range(2))
    return a, b, of


@pytest.mark.parametrize(
    ("objects", "views", "dim", "noise"), [(40, 20, 64, 0.3), (100, 2, 64, 0.1), (20, 5, 64, 0.2), (30, 10, 384, 0.3)]
)
def test_clusters_are_the_objects(objects: int, views: int, dim: int, noise: float):
    for seed in range(3):
        a, b, of = copies(seed, objects, views, dim, noise)
        found = find_dependence(a, b)
        assert found.kind == "near copies" and found.groups is not None
        assert len(np.unique(np.stack([found.groups, of]), axis=1).T) == objects == found.groups.max() + 1


def test_copies_on_one_side_only_are_harmless():
    a, _, of = copies(0, 40, 20, 16, 0.1)
    assert find_dependence(a, np.random.default_rng(1).standard_normal((len(of), 16))).kind == "none"


@pytest.mark.parametrize("dim", [1, 2, 16, 200])
@pytest.mark.parametrize("rows", [64, 400, 1500])
def test_independent_rows(rows: int, dim: int):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        z = rng.standard_normal((rows, dim))
        assert find_dependence(z, z @ rng.standard_normal((dim, dim))).kind == "none"


def test_degenerate_rows():
    rng = np.random.default_rng(0)
    assert find_dependence(np.ones((100, 3)), rng.standard_normal((100, 3))).kind == "none"
    assert find_dependence(*rng.standard_normal((2, 10, 3))).kind == "none"


@pytest.mark.parametrize("memory", [0.5, 0.9, 0.98])
def test_correlation_and_blocks_of_a_series(memory: float):
    """One slow direction among 15 independent ones; τ = (1 + r²)/(1 − r²) for series with correlation r."""
    rng = np.random.default_rng(0)
    sides = rng.standard_normal((2, 8000, 16))
    for side in sides:
        side[1:, 0] *= np.sqrt(1 - memory**2)
        for step in range(1, len(side)):
            side[step, 0] += memory * side[step - 1, 0]
    sides = sides @ rng.standard_normal((2, 16, 16))
    found = find_dependence(*sides)
    time = (1 + memory**2) / (1 - memory**2)
    assert found.kind == "time series" and found.correlation == pytest.approx(memory, abs=0.05)
    assert found.times == pytest.approx(8000 / time, rel=0.5)
    assert found.block is not None and 2 * time <= found.block + 1 <= max(10 * time, 12)
    shuffled = rng.permutation(8000)
    assert find_dependence(sides[0], sides[1][shuffled]).kind == "none"
