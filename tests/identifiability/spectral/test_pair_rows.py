"""Chunked pair rows: groups and weights stay with their rows, and sampling is uniform."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.identifiability.spectral.pair_rows import SplitPairs


def rows(count: int = 1000, width: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, width))


def places(pairs: SplitPairs) -> np.ndarray:
    return np.concatenate([batch.place for batch in pairs])


def test_batches_hold_all_rows_in_order():
    x = rows(10_000)
    pairs = SplitPairs(x, 2 * x)
    batches = list(pairs)
    assert len(batches) > 1 and (pairs.count, pairs.width) == (10_000, 2)
    np.testing.assert_array_equal(np.concatenate([batch.x for batch in batches]), x)
    np.testing.assert_array_equal(np.concatenate([batch.x_next for batch in batches]), 2 * x)
    np.testing.assert_array_equal(places(pairs)[:1000], places(SplitPairs(x[:1000], x[:1000])))


def test_positions_are_uniform_and_depend_on_the_seed():
    x = rows(20_000)
    first, second = (places(SplitPairs(x, x, seed=seed)) for seed in (0, 1))
    np.testing.assert_allclose(np.histogram(first, 10, (0, 1))[0], 2000, atol=200)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.03


@pytest.mark.parametrize("kind", ["int", "text"])
def test_groups_are_kept_whole_and_assigned_evenly(kind: str):
    x = rows()
    labels = np.arange(1000) // 50
    groups = labels if kind == "int" else np.array([f"episode {label}" for label in labels])
    given = places(SplitPairs(x, x, groups=groups))
    each = [np.unique(given[labels == label]) for label in range(20)]
    assert all(len(place) == 1 for place in each)
    np.testing.assert_allclose(np.sort(np.concatenate(each)), (np.arange(20) + 0.5) / 20)


def test_below_limits_the_positions_of_rows():
    x = rows()
    assert 0.7 < places(SplitPairs(x, x, below=0.75)).max() < 0.75


def test_sample_is_uniform_over_rows():
    x = np.arange(20_000.0)[:, None]
    pairs = SplitPairs(x, x)
    drawn = pairs.sample(2000, 0.0, 0.5)
    assert drawn.place.max() < 0.5
    assert len(drawn.x) == pytest.approx(2000, rel=0.1)
    assert np.mean(drawn.x) == pytest.approx(10_000, rel=0.05)
    assert len(pairs.sample(10**6, 0.5, 1.0).x) == (places(pairs) >= 0.5).sum()


def bad_arrays() -> dict[str, tuple[dict[str, object], str]]:
    x = rows()
    hole = rows()
    hole[17, 1] = np.nan
    labels = np.arange(1000)
    return {
        "nan": ({"x_next": hole}, "'x_next'.*row 17"),
        "widths": ({"x_next": x[:, :1]}, "'x' and 'x_next'"),
        "rows": ({"x_next": x[:-1]}, "'x_next' has 999"),
        "one dimension": ({"x": x[:, 0], "x_next": x[:, 0]}, "'x'"),
        "groups": ({"groups": labels[:-1]}, "'groups' has 999"),
        "wide groups": ({"groups": x}, "'groups'"),
        "few groups": ({"groups": labels % 7}, "8 groups.*7"),
        "few pairs": ({"x": x[:199], "x_next": x[:199]}, "200 pairs.*199"),
        "text": ({"x": x.astype(str)}, "'x'"),
        "few weights": ({"weights": np.ones(999)}, "'weights'.*999"),
        "negative weights": ({"weights": -np.ones(1000)}, "'weights'.*1000"),
        "nan weights": ({"weights": hole[:, 1]}, "'weights'.*NaN"),
        "one heavy row": ({"weights": np.eye(1000)[0]}, "200 pairs.* 1000"),
        "no weight": ({"weights": np.zeros(1000)}, "200 pairs.* 0"),
    }


@pytest.mark.parametrize("case", bad_arrays())
def test_errors_name_the_array(case: str):
    given, message = bad_arrays()[case]
    with pytest.raises(InputError, match=message):
        SplitPairs(**({"x": rows(), "x_next": rows()} | given))  # pyright: ignore[reportArgumentType]


def test_weights_follow_their_rows():
    x = np.arange(20_000.0)[:, None]
    weights = np.linspace(1, 2, 20_000)
    pairs = SplitPairs(x, x, weights=weights)
    parts = [*pairs, *(batch.within(0.2, 0.6) for batch in pairs), pairs.sample(5000, 0.0, 1.0)]
    parts += pairs.sample(10**6, 0.0, 1.0).batches()
    for part in parts:
        assert part.weights is not None
        np.testing.assert_allclose(part.weights, np.interp(part.x[:, 0], x[:, 0], weights))
    assert all(part.weights is None for part in SplitPairs(x, x))
