"""Cycle and translation checks on charts whose disagreement is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gaussian_worlds import rotation

from jepatlas.alignment.atlas.atlas_checks import (
    cycle_error,
    cycle_verdicts,
    pairwise_maps,
    split_states,
    translation_verdicts,
)
from jepatlas.alignment.atlas.chart import ChartLatents
from jepatlas.alignment.atlas.chart_atlas import Atlas
from jepatlas.core.errors import InputError
from jepatlas.core.linear import procrustes, r2
from jepatlas.core.stats import bootstrap


def noisy(noise: float, rows: int = 1500, widths: tuple[int, ...] = (3, 3, 3)) -> list[ChartLatents]:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((rows, max(widths)))
    return [
        ChartLatents(name, z[:, :d] @ rotation(d, k) + noise * rng.standard_normal((rows, d)), np.arange(rows))
        for k, (name, d) in enumerate(zip("abc", widths, strict=True))
    ]


def test_atlas_cycles_close_and_pairwise_cycles_shrink_with_noise():
    """Each least-squares step keeps 1/(1+σ²) of the signal, so a cycle of three loses 1 − (1+σ²)⁻³."""
    fit, held = split_states(noisy(0.5), np.random.default_rng(1))
    atlas = Atlas.build(fit)
    through, direct = cycle_verdicts(atlas, fit, held[0], np.random.default_rng(2), replicates=100)
    assert through.name == "cycle.atlas" and through.value < 1e-20
    assert direct.value == pytest.approx((1 - 1.25**-3) ** 2, abs=0.03)
    assert direct.low < direct.value < direct.high and direct.n == len(held[0].ids)
    assert direct.null == pytest.approx(1, abs=0.05) and "a → b → c → a" in direct.advice
    _, turned = cycle_verdicts(atlas, fit, held[0], np.random.default_rng(2), fit=procrustes, replicates=100)
    assert turned.value < 0.01  # rotations do not shrink
    assert through.passed and direct.passed and turned.passed and turned.threshold == 1
    assert direct.threshold is not None and direct.threshold <= 1


def test_cycles_close_without_noise():
    fit, held = split_states(noisy(0.0), np.random.default_rng(1))
    for verdict in cycle_verdicts(Atlas.build(fit), fit, held[0], np.random.default_rng(0), replicates=20):
        assert verdict.value < 1e-20


def test_narrow_chart_in_a_cycle_loses_the_directions_it_lacks():
    fit, held = split_states(noisy(0.0, widths=(4, 4, 2)), np.random.default_rng(1))
    through, direct = cycle_verdicts(Atlas.build(fit), fit, held[0], np.random.default_rng(0), replicates=50)
    assert through.value == pytest.approx(0.5, abs=0.05) and direct.value == pytest.approx(0.5, abs=0.05)


def test_cycle_error_matches_its_definition():
    charts = noisy(0.3, rows=60)
    maps, h = pairwise_maps(charts), charts[0].latents
    back = maps[2].apply(maps[1].apply(maps[0].apply(h)))
    expected = np.sum((h - back) ** 2) / np.sum((h - h.mean(0)) ** 2)
    found = cycle_error(maps, charts[0], np.random.default_rng(0), replicates=30)
    assert found.value == pytest.approx(expected)
    lost = bootstrap(lambda w: {"e": 1 - r2(h, back, w)}, 60, np.random.default_rng(0), replicates=30, centred=True)
    assert (found.low, found.high) == pytest.approx((lost["e"].low, lost["e"].high))


def test_intervals_of_few_states_contain_their_value():
    """Bootstrap percentiles of biased draws need not contain the value."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        charts = [ChartLatents(name, rng.standard_normal((40, 6)), np.arange(40)) for name in "abc"]
        fit, held = split_states(charts, rng)
        for verdict in cycle_verdicts(Atlas.build(fit), fit, held[0], rng, replicates=50):
            assert 0 <= verdict.low <= verdict.value <= verdict.high


def test_unrelated_charts_fail():
    passed = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        charts = [ChartLatents(name, rng.standard_normal((200, 3)), np.arange(200)) for name in "abc"]
        fit, held = split_states(charts, rng)
        atlas = Atlas.build(fit)
        _, direct = cycle_verdicts(atlas, fit, held[0], rng, replicates=50)
        translations = translation_verdicts(atlas, held, rng, replicates=50)
        passed += [verdict.passed for verdict in (direct, *translations)]
        assert "disagree" in direct.advice or direct.passed
        assert all("same states" in verdict.advice for verdict in translations if not verdict.passed)
    assert np.mean(passed) <= 0.05


def test_grouped_states_are_shuffled_by_groups():
    """Four episodes: shuffling single states would underestimate the variance of the null."""
    groups = np.repeat(np.arange(4), 50)
    rng = np.random.default_rng(0)
    z = np.repeat(rng.standard_normal((4, 2)), 50, axis=0) + 0.1 * rng.standard_normal((200, 2))
    charts = [ChartLatents(name, z @ rotation(2, k), np.arange(200), groups=groups) for k, name in enumerate("ab")]
    plain = [replace(chart, groups=None) for chart in charts]
    by_groups, by_states = (
        translation_verdicts(Atlas.build(plain), held, np.random.default_rng(1), replicates=20)[0]
        for held in (charts, plain)
    )
    assert by_groups.null != pytest.approx(by_states.null, abs=0.05) and by_states.passed
    assert (
        by_groups.threshold is not None and by_groups.threshold > 0 == by_states.threshold
    )  # one permutation in 24 is the identity, with R² = 1


def test_translation_verdicts_match_the_expected_r2():
    fit, held = split_states(noisy(0.2), np.random.default_rng(1))
    verdicts = translation_verdicts(Atlas.build(fit), held, np.random.default_rng(2), replicates=100)
    assert len(verdicts) == 6
    for verdict in verdicts:
        # a rotation does not shrink the errors of both sides, each 0.04 of 1.04
        assert (
            verdict.value == pytest.approx(1 - 2 * 0.04 / 1.04, abs=0.02) and verdict.low < verdict.value < verdict.high
        )
        assert verdict.null is not None and verdict.null < -0.5 and verdict.direction == "higher"
        assert (
            verdict.threshold == 0 and verdict.passed
        )  # the null is below 0, the R² of the mean, which is the threshold


def test_charts_without_shared_held_out_states_are_not_compared():
    first, second, third = noisy(0.1)
    charts = [first.take(np.arange(500)), second, third.take(np.arange(1000, 1500))]
    fit, held = split_states(charts, np.random.default_rng(1))
    names = [v.name for v in translation_verdicts(Atlas.build(fit), held, np.random.default_rng(2), replicates=5)]
    assert names == ["translation.a.b", "translation.b.a", "translation.b.c", "translation.c.b"]
    with pytest.raises(InputError, match="between 'c' and 'a': they share 0 states"):
        pairwise_maps(fit)


def test_splits_never_share_states_or_groups():
    charts = [ChartLatents(c.name, c.latents, c.ids, groups=c.ids // 10) for c in noisy(0.1, rows=200)]
    charts[1] = charts[1].take(np.arange(200)[::-1][:150])
    fit, held = split_states(charts, np.random.default_rng(0), share=0.4)
    fitted = np.concatenate([chart.ids // 10 for chart in fit])
    for before, chart, other in zip(charts, held, fit, strict=True):
        assert not np.isin(chart.ids // 10, fitted).any()
        assert sorted([*chart.ids, *other.ids]) == sorted(before.ids)
        assert chart.groups is not None
        np.testing.assert_array_equal(chart.groups, chart.ids // 10)
    assert len(held[0].ids) == 80


def test_invalid_cycles_are_rejected():
    fit, held = split_states(noisy(0.1), np.random.default_rng(1))
    atlas, rng = Atlas.build(fit), np.random.default_rng(0)
    with pytest.raises(InputError, match="states are those of b"):
        cycle_verdicts(atlas, fit, held[1], rng)
    with pytest.raises(InputError, match="1050 of the 1050 held-out states"):
        cycle_verdicts(atlas, fit, fit[0], rng)
