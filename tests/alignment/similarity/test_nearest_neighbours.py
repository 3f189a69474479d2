"""Nearest neighbours compared with loops and scikit-learn, and overlaps compared with sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from alignment.latents import SHAPES, gaussian, related, rotation
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from jepatlas.alignment.similarity.nearest_neighbours import mutual_knn, neighbour_overlap, neighbours, nos, overlap
from jepatlas.core.errors import InputError

WAYS = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])


def slow_neighbours(a: np.ndarray, k: int) -> list[list[int]]:
    def distance(i: int, j: int) -> float:
        return sum((x - y) ** 2 for x, y in zip(a[i].tolist(), a[j].tolist(), strict=True))

    rows = range(len(a))
    return [sorted((j for j in rows if j != i), key=lambda j, i=i: (distance(i, j), j))[:k] for i in rows]


def slow_overlap(a: np.ndarray, b: np.ndarray, k: int) -> list[float]:
    pairs = zip(slow_neighbours(a, k), slow_neighbours(b, k), strict=True)
    return [len(set(one) & set(other)) / k for one, other in pairs]


@WAYS
@settings(deadline=None, max_examples=40, derandomize=True)
@given(SHAPES, st.integers(1, 5))
def test_neighbours_match_definition(compiled: bool, shape: tuple[int, int, int, int], k: int):
    a, _ = related(*shape)
    assert neighbours(a, k, compiled=compiled).tolist() == slow_neighbours(a, k)


@WAYS
@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.integers(12, 80), st.integers(1, 3), st.integers(1, 4), st.integers(0, 1000))
def test_ties_are_ordered_by_row(compiled: bool, rows: int, dim: int, levels: int, seed: int):
    a = np.random.default_rng(seed).integers(levels, size=(rows, dim))
    expected = slow_neighbours(a, 7)
    for moved in (a, a.astype(np.float32) / 4 + 100, -3.0 * a):
        assert neighbours(moved, 7, compiled=compiled).tolist() == expected


@pytest.mark.parametrize("k", [1, 10, 60])
def test_several_tiles_match_scikit_learn(k: int):
    a = gaussian(2500, 12)
    brute = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(a).kneighbors(return_distance=False)
    np.testing.assert_array_equal(neighbours(a, k), brute)


@pytest.mark.parametrize("apart", [1e3, 1e7])
def test_distances_below_single_precision_are_resolved(apart: float):
    """Tight clusters far apart: distances within a cluster vanish in float32 products."""
    a = gaussian(600, 4) + apart * gaussian(3, 4, seed=1)[np.arange(600) % 3]
    np.testing.assert_array_equal(neighbours(a, 10), neighbours(a, 10, compiled=False))
    near = neighbours(a[1:], 10)
    a[0] = 1e14  # an outlier in the first row must not reduce the precision of the others
    np.testing.assert_array_equal(neighbours(a, 10)[1:] - 1, near)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(SHAPES)
def test_overlap_matches_sets_and_is_invariant(shape: tuple[int, int, int, int]):
    _, wide_a, _, seed = shape
    a, b = related(*shape)
    found = neighbour_overlap(a, b, [3, 1, 5])
    for k in (1, 3, 5):
        assert found[k].tolist() == pytest.approx(slow_overlap(a, b, k))
        assert nos(a, b, k) == pytest.approx(1 - np.mean(slow_overlap(a, b, k)))
        assert nos(7 * a @ rotation(wide_a, seed) - 4, b, k) == pytest.approx(nos(a, b, k))
    assert nos(a, 2 - 3 * a, 5) == 0


@settings(deadline=None, max_examples=30, derandomize=True)
@given(SHAPES)
def test_mutual_knn_uses_cosine_distance(shape: tuple[int, int, int, int]):
    rows, wide_a, wide_b, seed = shape
    a, b = related(rows, wide_a + 1, wide_b + 1, seed)

    def by_cosine(x: np.ndarray) -> list[set[int]]:
        cosines = x @ x.T / np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(x, axis=1)) - 9 * np.eye(rows)
        return [set(row[:4].tolist()) for row in np.argsort(-cosines, axis=1)]

    expected = np.mean([len(one & other) / 4 for one, other in zip(by_cosine(a), by_cosine(b), strict=True)])
    assert mutual_knn(a, b, 4) == pytest.approx(expected)
    stretched = a * np.linspace(1, 30, rows)[:, None]  # invariant under rescaling of rows and rotations
    assert mutual_knn(stretched @ rotation(wide_a + 1, seed), b, 4) == pytest.approx(expected)


def test_overlap_of_unrelated_latents():
    a, b = gaussian(1500, 10), gaussian(1500, 10, seed=1)
    assert 1 - nos(a, b, 50) == pytest.approx(50 / 1499, rel=0.1) == pytest.approx(mutual_knn(a, b, 50), rel=0.1)


def test_overlap_of_given_neighbours():
    one, other = np.array([[1, 2, 3], [0, 2, 3]]), np.array([[2, 1, 9], [3, 8, 0]])
    found = overlap(one, other, [1, 2, 3])
    assert {k: share.tolist() for k, share in found.items()} == {1: [0, 0], 2: [1, 0], 3: [2 / 3, 2 / 3]}


def test_extreme_scales():
    a = gaussian(60, 3)
    for scale in (1e-250, 1e250):
        np.testing.assert_array_equal(neighbours(scale * a, 5), neighbours(a, 5))
        assert mutual_knn(scale * a, a, 5) == 1


def test_constant_latents_are_undefined():
    a, constant = gaussian(30, 2), np.full((30, 2), 0.7)
    assert math.isnan(nos(a, constant, 5)) and math.isnan(mutual_knn(constant, a, 5))
    assert np.isnan(neighbour_overlap(constant, a, [2])[2]).all()


def test_progress_is_reported():
    reports: list[tuple[int, int]] = []
    neighbour_overlap(gaussian(1300, 2), gaussian(1300, 3), [2], progress=lambda *parts: reports.append(parts))
    assert [done for done, _ in reports] == list(range(1, len(reports) + 1)) and {total for _, total in reports} == {
        len(reports)
    }


@pytest.mark.parametrize("k", [0, 10])
def test_invalid_number_of_neighbours_is_rejected(k: int):
    with pytest.raises(InputError, match=f"'k' .* 9 .* {k} was given"):
        neighbours(gaussian(10, 2), k)


@pytest.mark.parametrize("measure", [nos, mutual_knn])
def test_metrics_report_progress(measure):
    a, b = related(700, 3, 3)
    reports: list[tuple[int, int]] = []
    assert measure(a, b, 5, progress=lambda *parts: reports.append(parts)) == measure(a, b, 5)
    assert reports == [(done, 4) for done in range(1, 5)]  # two tiles per side
