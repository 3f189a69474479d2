"""Latents whose plain held-out R² misleads: what an alignment must say about each, over several seeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from workflows.align.hard_pairs import (
    Pair,
    binary_factor,
    collapsed,
    independent_series,
    linear,
    mismatched,
    near_copies,
    one_outlier,
    shared_column,
    warped,
)
from workflows.align.models import write

import jepatlas as ja
from jepatlas.core.errors import InputError
from jepatlas.workflows.align import Alignment

SEEDS = range(3)
WARNINGS = ("Warning", "Hint", "independent=True")


def aligned(a: np.ndarray, b: np.ndarray, **options: object) -> Alignment:
    return ja.align(a, b, **{"permutations": 19} | options)


@pytest.mark.parametrize("seed", SEEDS)
def test_near_copies_are_held_out_in_whole_clusters(seed: int):
    a, b = near_copies(seed)
    assert aligned(a, b, independent=True)["r2"].value > 0.9  # what memorised clusters give
    found = aligned(a, b)
    assert found.passed is False and found["r2"].value < 0.1
    assert "40 clusters" in found.record.summary and found.evidence["r2"].units == 40
    assert aligned(a, a[:, ::-1] + b / 5).passed


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("memory", [0.95, 0.995])
def test_independent_series_are_not_aligned(seed: int, memory: float):
    a, b = independent_series(seed, memory=memory)
    found = aligned(a, b, permutations=39)
    assert not found.passed and found.evidence["r2"].shifted
    assert "time series" in found.record.summary


def test_series_of_one_state_are_aligned():
    for seed in SEEDS:
        a, _ = independent_series(seed)
        turn, noise = linear(seed, rows=16)[0], 0.1 * linear(seed, rows=1000)[0]
        assert aligned(a, a @ turn + noise, permutations=39).passed


@pytest.mark.parametrize("swapped", [False, True])
def test_one_outlier_is_named(swapped: bool):
    for seed in SEEDS:
        a, b = one_outlier(seed)
        row = int(np.abs(b).max(1).argmax())
        found = aligned(*((b, a) if swapped else (a, b)))
        if found["r2"].value > 0.8:  # an outlier of the source may do no harm
            assert swapped
            continue
        assert found.passed is None and found["r2_trusted"].low > 0.8
        assert f"1 of 600 pairs (0.2%) does not fit the others (rows {row})" in found.record.summary


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_mismatched_pairs_are_counted(share: float):
    for seed in SEEDS:
        found = aligned(*mismatched(seed, share))
        assert found.record.summary.startswith("Warning: ")
        count = int(found.record.summary.split()[1])
        assert count == pytest.approx(600 * share, abs=12)
        assert found["r2_trusted"].low > found["r2"].value + 0.1


@pytest.mark.parametrize("make", [binary_factor, collapsed])
def test_few_directions_are_in_the_headline(make: Callable[[int], Pair]):
    for seed in SEEDS:
        found = aligned(*make(seed))
        assert found["r2"].value > 0.9 and found["r2_unweighted"].value < 0.15
        assert found["predicted_directions"].value < 1.5 and found["predicted_directions"].passed is False
        assert found.record.summary.startswith("Warning: R²")


@pytest.mark.parametrize("swapped", [False, True])
def test_warped_coordinates_give_a_hint(swapped: bool):
    for seed in SEEDS:
        a, b = warped(seed)
        found = aligned(*((b, a) if swapped else (a, b)))
        assert found["r2"].value < 0.5 and found["r2_unwarped"].low > 0.95
        assert f"Hint: {'a' if swapped else 'b'} looks warped" in found.record.summary


@pytest.mark.parametrize(
    "make",
    [
        linear,
        lambda seed: linear(seed, tails=2.0),
        lambda seed: linear(seed, tails=3.0),
        lambda seed: linear(seed, 500, 4),
        lambda seed: linear(seed, 300, 64),
        lambda seed: (linear(seed)[0], linear(seed + 100)[0]),
    ],
    ids=["gaussian", "t2", "t3", "4 wide", "64 wide", "unrelated"],
)
def test_plain_latents_have_no_warnings(make: Callable[[int], Pair]):
    for seed in SEEDS:
        found = aligned(*make(seed))
        assert not any(word in found.record.summary for word in WARNINGS)
        assert found.passed is (found["r2"].low > 0 and found["r2"].value > 0.1)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_shared_column_is_partialled_out(seed: int, tmp_path: Path):
    a, b, light = shared_column(seed)
    assert aligned(a, b).passed
    found = aligned(a, b, within=light)
    assert found.passed is False and found["r2"].value < 0.05
    named = ("dim", "bright")
    texts = np.array(named)[(light > 0.5).astype(int)]
    steps = np.where(light > 0.5, 1.0, 0.0)[:, None] * np.ones(8)
    noise = np.random.default_rng(seed).standard_normal((2, *steps.shape))
    assert aligned(5 * steps + noise[0], 5 * steps + noise[1], within=texts).passed is False
    paths = [write(tmp_path / f"{name}.npz", h=h, light=light) for name, h in (("ada", a), ("ben", b))]
    by_name = ja.align(*paths, within="light", permutations=19)
    assert by_name["r2"].value == pytest.approx(found["r2"].value)


def test_shared_columns_that_cannot_be_used_are_refused():
    a, b = linear(0)
    for wrong in (np.ones(len(a)), np.arange(len(a)).astype(str), np.arange(7), "no-such-column"):
        with pytest.raises(InputError, match="within"):
            ja.align(a, b, within=wrong)
