"""Chunks: places do not depend on how rows were cut, groups stay together, and bad input is named."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.identifiability.spectral.pair_chunks import PairArrays, PairChunks


def rows(count: int = 1000, width: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, width))


def places(pairs: PairChunks) -> np.ndarray:
    return np.concatenate([chunk.place for chunk in pairs])


def test_places_do_not_depend_on_the_chunks():
    x = rows()
    whole, cut = (places(PairChunks(PairArrays(x, x, rows=size))) for size in (1000, 73))
    np.testing.assert_array_equal(whole, cut)


def test_places_are_uniform_and_differ_by_seed():
    x = rows(20_000)
    first, second = (places(PairChunks(PairArrays(x, x), seed)) for seed in (0, 1))
    np.testing.assert_allclose(np.histogram(first, 10, (0, 1))[0], 2000, atol=200)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.03


@pytest.mark.parametrize("kind", ["int", "text"])
def test_groups_stay_together_and_spread_evenly(kind: str):
    x, labels = rows(), np.arange(1000) // 50
    groups = labels if kind == "int" else np.array([f"episode {label}" for label in labels])
    pairs = PairChunks(PairArrays(x, x, groups, rows=333))
    given = places(pairs)
    each = [np.unique(given[labels == label]) for label in range(20)]
    assert all(len(place) == 1 for place in each)
    np.testing.assert_allclose(np.sort(np.concatenate(each)), (np.arange(20) + 0.5) / 20)


def test_below_leaves_nothing_to_score_on():
    x = rows()
    given = places(PairChunks(PairArrays(x, x), below=0.75))
    assert 0.7 < given.max() < 0.75


def test_a_sample_is_drawn_from_all_chunks():
    x = np.arange(20_000.0)[:, None]
    pairs = PairChunks(PairArrays(x, x, rows=500))
    drawn = pairs.sample(2000, 0.0, 0.5)
    assert drawn.place.max() < 0.5
    assert len(drawn.x) == pytest.approx(2000, rel=0.1)
    assert np.mean(drawn.x) == pytest.approx(10_000, rel=0.05)
    assert len(pairs.sample(10**6, 0.5, 1.0).x) == (places(pairs) >= 0.5).sum()


def bad_chunks() -> dict[str, tuple[object, str]]:
    x, hole = rows(), rows()
    hole[17, 1] = np.nan
    labels = np.arange(1000)
    return {
        "nan": ([(x, hole)], "'x_next' has 1 value that is NaN.*row 17"),
        "widths": ([(x, x[:, :1])], "same width"),
        "later width": ([(x, x), (x[:, :1], x[:, :1])], "2 were expected"),
        "rows": ([(x, x[:-1])], "same number of rows"),
        "one dimension": ([(x[:, 0], x[:, 0])], "rows and columns"),
        "groups": ([(x, x, labels[:-1])], "same number of rows"),
        "wide groups": ([(x, x, x)], "one label a row"),
        "some groups": ([(x, x, labels), (x, x)], "Label all of them"),
        "few groups": ([(x, x, labels % 7)], "At least 8 groups"),
        "few pairs": ([(x[:199], x[:199])], "at least 200 pairs, but 199"),
        "no chunks": ([], "at least 200 pairs, but 0"),
        "parts": ([(x,)], "one has 1 parts"),
        "one-shot": (iter([(x, x)]), "only once"),
        "text": ([(x.astype(str), x)], "must hold numbers"),
        "some weights": ([(x, x, None, np.ones(1000)), (x, x)], "Weigh all of them"),
        "few weights": ([(x, x, None, np.ones(999))], "one number a row.*999.*1000 rows"),
        "negative weights": ([(x, x, None, -np.ones(1000))], "must not be negative, but 1000"),
        "nan weights": ([(x, x, None, hole[:, 1])], "'weights' has 1 value that is NaN"),
        "one heavy row": ([(x, x, None, np.eye(1000)[0])], r"1000 pairs are worth 1, \(Σw\)²/Σw²"),
        "no weight": ([(x, x, None, np.zeros(1000))], "worth 0"),
    }


@pytest.mark.parametrize("case", bad_chunks())
def test_bad_input_is_named(case: str):
    chunks, message = bad_chunks()[case]
    with pytest.raises(InputError, match=message):
        PairChunks(chunks)  # pyright: ignore[reportArgumentType]


def test_arrays_of_different_length_are_refused_as_a_whole():
    with pytest.raises(InputError, match="same number of rows"):
        PairChunks(PairArrays(rows(5000), rows(4097)))


def test_weights_stay_with_their_rows():
    x, weights = np.arange(2000.0)[:, None], np.linspace(1, 2, 2000)
    pairs = PairChunks(PairArrays(x, x, weights=weights, rows=300))
    parts = [*pairs, *(rows.within(0.2, 0.6) for rows in pairs), pairs.sample(500, 0.0, 1.0)]
    parts += pairs.sample(10**6, 0.0, 1.0).cut()
    for part in parts:
        assert part.weights is not None
        np.testing.assert_allclose(part.weights, np.interp(part.x[:, 0], x[:, 0], weights))
    assert all(part.weights is None for part in PairChunks(PairArrays(x, x)))
