"""DSC compared with scipy's rank correlation of all distances; compiled and numpy kernels; sampled DSC."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from alignment.latents import SHAPES, gaussian, related, rotation
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from jepatlas.alignment.similarity import distance_structure
from jepatlas.alignment.similarity.distance_structure import RankBuckets, dsc, dsc_in_tiles, ranked_product
from jepatlas.core.errors import InputError

WAYS = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])


def slow_dsc(a: np.ndarray, b: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy warns of constant input and returns NaN
        return float(np.asarray(spearmanr(pdist(a), pdist(b)))[0])


@settings(deadline=None, max_examples=40, derandomize=True)
@given(SHAPES)
def test_matches_definition_and_is_invariant(shape: tuple[int, int, int, int]):
    _, wide_a, _, seed = shape
    a, b = related(*shape)
    assert dsc(a, b) == pytest.approx(slow_dsc(a, b), abs=1e-9)
    assert dsc(b, a) == pytest.approx(dsc(a, b), abs=1e-12)
    assert dsc(2 * a @ rotation(wide_a, seed) + 1, b) == pytest.approx(dsc(a, b), abs=1e-9)
    assert dsc(a, 3 - a @ rotation(wide_a, seed)) == pytest.approx(1, abs=1e-9)


def clusters(rows: int, dim: int, apart: float) -> np.ndarray:
    return gaussian(rows, dim) + apart * gaussian(4, dim, seed=9)[np.arange(rows) % 4]


def heavy(rows: int, dim: int) -> np.ndarray:
    return np.random.default_rng(3).standard_cauchy((rows, dim))


def nearly_a_simplex(rows: int) -> np.ndarray:
    """All distances are equal up to a relative 1e-5."""
    return np.eye(rows) * (1 + 1e-5 * gaussian(rows, 1))


@WAYS
@pytest.mark.parametrize(
    "a",
    [
        gaussian(800, 30),
        gaussian(800, 1),
        clusters(800, 8, 1e4),
        heavy(800, 5),
        nearly_a_simplex(800),
        np.r_[np.full((1, 5), 1e6), gaussian(799, 5)],
    ],
    ids=["gaussian", "line", "clusters", "heavy", "simplex", "outlier"],
)
def test_tiled_dsc_is_accurate_to_1e_6(a: np.ndarray, compiled: bool):
    """Distances may be concentrated, clustered, or spread over many orders of magnitude."""
    b = np.tanh(a[:, : min(8, a.shape[1])]) + 0.3 * gaussian(800, min(8, a.shape[1]), seed=1)
    assert dsc_in_tiles(a, b, compiled=compiled) == pytest.approx(slow_dsc(a, b), abs=1e-6)


@WAYS
@settings(deadline=None, max_examples=12, derandomize=True)
@given(st.integers(300, 600), st.integers(1, 6), st.integers(2, 5), st.integers(0, 1000))
def test_tied_distances_share_their_rank(compiled: bool, rows: int, dim: int, levels: int, seed: int):
    """Latents on a lattice with many equal rows: rounding must not break ties."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(levels, size=(rows, dim)), rng.integers(3, size=(rows, 2)) + rng.integers(2, size=(rows, 1))
    expected = slow_dsc(a, b)
    moved = 0.5 * a + 3 if seed % 2 else a
    assert dsc_in_tiles(moved, b, compiled=compiled) == pytest.approx(expected, abs=1e-6, nan_ok=True)
    assert dsc(moved, b) == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_several_tiles_match_definition_and_report_progress(monkeypatch: pytest.MonkeyPatch):
    """More rows than the columns of a tile; the method depends on the number of pairs."""
    for name, size in {"SMALL": 1000, "ROWS": 128, "COLUMNS": 300, "CHUNK": 100}.items():
        monkeypatch.setattr(distance_structure, name, size)
    a, b = related(700, 3, 5)
    seen: list[tuple[int, int]] = []
    found = dsc(a.astype(np.float32), b, progress=lambda done, total: seen.append((done, total)))
    assert found == pytest.approx(slow_dsc(a, b), abs=1e-6)
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1)) and {total for _, total in seen} == {len(seen)}
    assert dsc_in_tiles(a, b, compiled=False) == pytest.approx(found, abs=1e-7)
    assert dsc_in_tiles(1e-150 * a, 1e150 * b) == pytest.approx(found, abs=1e-7)
    few: list[tuple[int, int]] = []
    dsc(a[:9], b[:9], progress=lambda *parts: few.append(parts))
    assert few == [(1, 1)]


@settings(deadline=None, max_examples=30, derandomize=True)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(-40, 40), st.integers(0, 1000))
def test_compiled_and_numpy_counts_agree(rows: int, columns: int, diagonal: int, seed: int):
    rng = np.random.default_rng(seed)
    tiles = np.exp(rng.standard_normal((rows, columns))), rng.random((rows, columns)).round(1) + 0.01
    sums, counts = [], []
    for compiled in (True, False):
        buckets = []
        for tile in tiles:
            cells = RankBuckets.cells(1e-3, 1e3, compiled=compiled)
            cells.add(tile, diagonal)
            fine = cells.finer()
            fine.add(tile, diagonal)
            buckets.append(fine)
        ranks = buckets[0].ranks(), buckets[1].ranks()
        sums.append(ranked_product(buckets[0], buckets[1], ranks, tiles, diagonal))
        counts.append([bucket.counts for bucket in buckets])
    for compiled, plain in zip(*counts, strict=True):
        np.testing.assert_array_equal(compiled, plain)
        assert plain.sum() == sum(max(0, columns - max(0, row + diagonal)) for row in range(rows))
    assert sums[0] == pytest.approx(sums[1], abs=1e-9)


def test_constant_latents_are_undefined():
    a = gaussian(400, 3)
    for constant in (np.zeros((400, 2)), np.full((400, 2), 0.1)):
        assert math.isnan(dsc(a, constant)) and math.isnan(dsc_in_tiles(constant, a))
    assert math.isnan(dsc(a, np.eye(400)))


def test_invalid_input_is_rejected():
    a = gaussian(10, 2)
    with pytest.raises(InputError, match=r"3 pairs of rows.* 2"):
        dsc(a[:2], a[:2])
    with pytest.raises(InputError, match="'a' has 10, 'b' has 8"):
        dsc(a, a[:8])
