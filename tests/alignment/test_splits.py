"""Matching of ids and splits of rows, compared with their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepatlas.alignment.atlas.chart import ChartLatents
from jepatlas.alignment.splits import group_labels, match_ids, split_rows, time_blocks
from jepatlas.core.errors import InputError

seeds = st.integers(0, 2**32 - 1)


@given(st.integers(0, 30), st.booleans(), seeds)
def test_rows_are_paired_by_id_in_the_order_of_a(n, text, seed):
    rng = np.random.default_rng(seed)
    ids = rng.permutation(1000)[:n]
    ids = ids.astype(str) if text else ids
    shuffled = rng.permutation(ids)
    rows_a, rows_b = match_ids(ids, shuffled)
    assert rows_a.tolist() == list(range(n))
    assert rows_b.tolist() == [shuffled.tolist().index(i) for i in ids.tolist()]


def test_whole_float_ids_match_integers():
    """pandas stores a column of integers with a missing value as floats."""
    assert [rows.tolist() for rows in match_ids(np.array([2.0, 1.0, 7.0]), np.array([7, 2, 1]))] == [
        [0, 1, 2],
        [1, 2, 0],
    ]
    chart = ChartLatents("a", np.eye(3), np.array([2.0, 1.0, 7.0]))
    assert chart.ids.dtype == np.int64 and chart.ids.tolist() == [2, 1, 7]


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (["x", "y", "y"], ["x", "y", "z"], "1 id .*more than once in a: y"),
        (["x", "y", "z"], ["x", "z", "z"], "1 id .*more than once in b: z"),
        (["x", "y", "z"], ["x", "z"], "1 id of a .*b: y"),
        (["x", "z"], ["x", "y", "z"], "1 id of b .*a: y"),
        (list(range(20)), list(range(10, 30)), "10 ids of a .*b: 0, 1, 2, 3, 4 and 5 more"),
        (["1", "2"], [1, 2], "<U1 .*int64"),
        ([1.0, 2.5], [1.0, 2.0], r"ids of a .*row 1 .*2\.5"),
        ([1.0, 2.0**60], [1, 2], "ids of a .*row 1 "),
        ([1.0, np.nan], [1.0, 2.0], "ids of a .*NaN.* 1 rows.* row 1"),
        ([[1, 2]], [1, 2], "each row"),
        ([None, "x"], ["y", "x"], "each row"),
    ],
)
def test_mismatched_ids_are_named(a, b, message: str):
    with pytest.raises(InputError, match=message):
        match_ids(np.array(a), np.array(b))


@given(st.lists(st.integers(0, 30), unique=True), st.lists(st.integers(0, 30), unique=True))
def test_intersect_keeps_shared_ids_in_the_order_of_a(a: list[int], b: list[int]):
    rows_a, rows_b = match_ids(np.array(a, int), np.array(b, int), intersect=True)
    assert [a[row] for row in rows_a] == [b[row] for row in rows_b] == [one for one in a if one in b]


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40).filter(lambda g: len(set(g)) > 1), seeds)
def test_splits_keep_groups_whole(groups, seed):
    names = np.array(groups).astype(str)
    fit, score = split_rows(len(names), np.random.default_rng(seed), groups=names)
    assert sorted([*fit, *score]) == list(range(len(names)))
    assert not set(names[fit]) & set(names[score]) and len(fit) and len(score)


@given(st.integers(2, 60), st.integers(1, 20), st.integers(0, 8), seeds)
def test_fit_rows_are_further_than_the_gap_from_scored_rows(n, length, gap, seed):
    rng = np.random.default_rng(seed)
    try:
        fit, score = split_rows(n, rng, blocks=length, gap=gap)
    except InputError as error:
        assert n < 2 * length or "leaves no rows to fit on" in str(error)
        return
    labels = time_blocks(n, length)
    whole = [block for block in np.unique(labels) if block in labels[score]]
    assert set(score) == set(np.flatnonzero(np.isin(labels, whole)))
    expected = [row for row in range(n) if min(abs(row - s) for s in score) > gap]
    assert fit.tolist() == expected


@given(st.integers(1, 60), st.integers(1, 20))
def test_time_blocks_are_contiguous_and_at_least_the_given_length(n, length):
    labels = time_blocks(n, length)
    assert labels[0] == 0 and set(np.diff(labels)) <= {0, 1}
    assert np.bincount(labels).min() >= min(length, n) and np.bincount(labels).max() < 2 * length


def test_share_counts_groups():
    fit, score = split_rows(1000, np.random.default_rng(0), groups=np.repeat(np.arange(100), 10), share=0.2)
    assert (len(fit), len(score)) == (800, 200)
    assert len(split_rows(1000, np.random.default_rng(0), share=0.1).score) == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 1.0}, "'share'"),
        ({"gap": 3}, "'gap' needs 'blocks'"),
        ({"blocks": 2, "groups": np.arange(10)}, "not by both"),
        ({"blocks": 0}, "at least 1 row"),
        ({"blocks": 9}, "at least 2 groups"),
        ({"blocks": 5, "gap": 5}, "leaves no rows to fit on"),
        ({"groups": np.arange(9)}, "'groups' .* 10 rows.* 9"),
        ({"groups": np.array([1.0] * 9 + [np.nan])}, "first of them row 9"),
        ({"groups": np.zeros((10, 1))}, "for each row"),
        ({"groups": np.zeros(10)}, "at least 2 groups"),
    ],
)
def test_invalid_split_arguments_are_rejected(options, message: str):
    with pytest.raises(InputError, match=message):
        split_rows(10, np.random.default_rng(0), **options)


def test_each_row_is_its_own_group_by_default():
    assert group_labels(None, 4).tolist() == [0, 1, 2, 3]
