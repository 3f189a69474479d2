"""Verdicts on atlases, measured on held-out states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gaussian_worlds import rotation
from workflows.align.models import write

from jepatlas.alignment import Atlas, CertificateSummary, ChartLatents
from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate, Verdict
from jepatlas.workflows.align import add_verdicts, build_verdicts, read_charts, translations_summary

STATES = np.random.default_rng(0).standard_normal((300, 3))
SAFE = CertificateSummary(Estimate(0.02, 0.01, 0.03, 300), identified=True)


def chart(name: str, seed: int, rows: int = 300, noise: float = 0.05, **given) -> ChartLatents:
    h = STATES[:rows] @ rotation(3, seed) + noise * np.random.default_rng(seed).standard_normal((rows, 3))
    return ChartLatents(name, h, np.arange(rows), **given)


def named(verdicts: list[Verdict]) -> dict[str, Verdict]:
    return {verdict.name: verdict for verdict in verdicts}


def test_charts_of_one_world_translate_and_unrelated_charts_do_not():
    unrelated = ChartLatents("eve", np.random.default_rng(9).standard_normal((300, 3)), np.arange(300))
    found = named(build_verdicts([chart("ada", 1), chart("ben", 2), unrelated], seed=0))
    translation = next(verdict for name, verdict in found.items() if "ada" in name and "ben" in name)
    assert translation.low > 0.95 and translation.n <= 90  # held-out states only
    assert all(verdict.high < 0.2 for name, verdict in found.items() if "eve" in name and verdict.direction == "higher")
    assert any("cycle" in name for name in found)


def translations(**passed: bool | None) -> list[Verdict]:
    """Verdicts on translations; `a_b=True` means that a translates into b."""
    plain = Verdict.judge("", Estimate(0.5, 0.4, 0.6, 9), direction="higher", good="")
    names = {f"translation.{name.replace('_', '.')}": one for name, one in passed.items()}
    return [replace(plain, name=name, passed=one) for name, one in names.items()]


def test_summary_lists_the_charts_that_translate():
    assert translations_summary("ab", translations(a_b=True, b_a=True)).startswith("All 2 charts")
    assert translations_summary("ab", translations(a_b=False, b_a=False)).startswith("No charts translate")
    assert "too few states were held out: a and b" in translations_summary("ab", [])
    mixed = translations(a_b=True, b_a=True, a_c=False, c_a=False, b_c=False, c_b=True)
    both, one_way, neither = translations_summary("abc", mixed).removesuffix(".").split(". ")
    assert both.endswith("each other: a and b") and one_way.endswith(": c into b") and neither.endswith(": a and c")


def test_limits_are_checked_for_identified_charts_only():
    found = named(build_verdicts([chart("ada", 1, certificate=SAFE), chart("ben", 2, certificate=SAFE)], seed=0))
    limits = {name: verdict for name, verdict in found.items() if name.startswith("certified")}
    assert all(name.endswith(".ada.ben") for name in limits)
    assert any(verdict.threshold is not None and verdict.passed for verdict in limits.values())
    unsure = CertificateSummary(SAFE.bound, identified=False)
    assert not limits.keys() & named(
        build_verdicts([chart("ada", 1, certificate=SAFE), chart("ben", 2, certificate=unsure)], seed=0)
    )


def test_intervals_of_certified_errors_resample_groups():
    """The error is constant within a group, so resampling single rows would underestimate the interval."""
    groups = np.arange(300) // 10
    shared = 0.1 * np.repeat(np.random.default_rng(3).standard_normal((30, 3)), 10, axis=0)

    def error(given: np.ndarray | None) -> Verdict:
        ada, ben = (chart(name, 1, noise=0.0, certificate=SAFE, groups=given) for name in ("ada", "ben"))
        found = named(build_verdicts([ada, replace(ben, latents=ben.latents + shared)], seed=0))
        return found["certified.error.ada.ben"]

    by_group, by_row = error(groups), error(None)
    assert by_group.high - by_group.low > 1.5 * (by_row.high - by_row.low)
    few = [chart(name, seed, certificate=SAFE, groups=groups // 5) for seed, name in enumerate(("ada", "ben"))]
    assert not any(
        name.startswith("certified") for name in named(build_verdicts(few, seed=0))
    )  # two groups are held out


def test_added_chart_is_scored_on_held_out_anchors():
    atlas = Atlas.build([chart("ada", 1), chart("ben", 2)])
    (good,) = add_verdicts(atlas, chart("cleo", 3), seed=0)
    assert good.name == "joins.cleo" and good.low > 0.95 and good.n == 90
    assert good.null is not None and good.null < 0.2
    blind = ChartLatents("eve", np.random.default_rng(9).standard_normal((300, 3)), np.arange(300))
    (bad,) = add_verdicts(atlas, blind, seed=0)
    assert bad.high < 0.1 and bad.passed is False and good.passed is True


def test_noisy_added_chart_is_distinguished_from_an_unrelated_one():
    """Its translation is better than chance but worse than the mean."""
    atlas = Atlas.build([chart("ada", 1), chart("ben", 2)])
    rng = np.random.default_rng(5)
    weak = 0.35 * STATES + rng.standard_normal((300, 3))
    (found,) = add_verdicts(atlas, ChartLatents("dim", weak, np.arange(300)), seed=0)
    assert found.high < 0 and found.passed is False
    assert "better than chance but not significantly better than the mean" in found.advice
    (lost,) = add_verdicts(atlas, ChartLatents("eve", rng.standard_normal((300, 3)), np.arange(300)), seed=0)
    assert "not significantly better than chance" in lost.advice


def test_null_of_an_added_chart_shuffles_groups():
    """For autocorrelated rows, shuffling single rows would make unrelated charts look better than chance."""
    groups = np.arange(300) // 30
    slow = np.repeat(np.random.default_rng(1).standard_normal((10, 3)), 30, axis=0)
    charts = [ChartLatents(n, slow @ rotation(3, k) + 0.01 * STATES, np.arange(300)) for k, n in enumerate("ab")]
    other = slow @ rotation(3, 5) + 0.01 * np.random.default_rng(2).standard_normal((300, 3))
    spread = []
    for given in (groups, None):
        newcomer = ChartLatents("c", other, np.arange(300), groups=given)
        (found,) = add_verdicts(Atlas.build(charts), newcomer, seed=0)
        assert found.threshold is not None and found.null is not None
        spread.append(found.threshold - found.null)
    assert spread[0] > 2 * spread[1]
    assert (
        add_verdicts(Atlas.build(charts), replace(newcomer, groups=groups // 5), seed=0) == []
    )  # one group is held out


def test_added_chart_with_few_anchors_is_not_scored():
    atlas = Atlas.build([chart("ada", 1), chart("ben", 2)])
    few = chart("cleo", 3)
    assert add_verdicts(atlas, few.take(np.arange(3)), seed=0) == []
    (one,) = add_verdicts(atlas, few.take(np.arange(9)), seed=0)
    assert one.n == 3


@pytest.mark.parametrize("rows", [2, 3, 4, 6])
def test_few_states_give_verdicts_without_errors(rows: int):
    found = build_verdicts([chart(name, seed, rows=rows) for seed, name in enumerate("abc")], seed=0)
    assert all(isinstance(verdict.value, float) for verdict in found)


def test_charts_with_different_states_use_their_shared_states():
    partly = [chart("ada", 1).take(np.arange(200)), chart("ben", 2).take(np.arange(100, 300)), chart("cleo", 3)]
    found = named(build_verdicts(partly, seed=0))
    assert found["translation.ada.ben"].low > 0.9 and found["translation.ada.ben"].n < found["translation.ada.cleo"].n


def test_charts_are_named_after_their_files(tmp_path: Path):
    h = np.ones((5, 2)) * np.arange(5)[:, None]
    paths = [write(tmp_path / f"{name}.npz", h=h, ids=np.arange(5)[::step]) for name, step in (("ada", 1), ("ben", -1))]
    ada, ben = read_charts(paths)
    assert (ada.name, ben.name) == ("ada", "ben")
    np.testing.assert_array_equal(ben.ids, [4, 3, 2, 1, 0])


def test_invalid_charts_are_rejected(tmp_path: Path):
    h = np.ones((5, 2))
    five, four = write(tmp_path / "five.npy", h=h), write(tmp_path / "four.npy", h=h[:4])
    with pytest.raises(InputError, match=r"five .*5.* four .*4"):
        read_charts([five, four])
    with pytest.raises(InputError, match=r"2 charts.* 1 certificate"):
        read_charts([five, five], [tmp_path / "c.json"])
    with pytest.raises(InputError, match="'no name'"):
        read_charts([write(tmp_path / "no name.npy", h=h), five])
    known = write(tmp_path / "known.npz", h=h, ids=np.arange(5)[::-1])
    for both in ([known, five], [five, known]):  # numbering the rows would match wrong states
        with pytest.raises(InputError, match=r"known .*ids.* five"):
            read_charts(both)
    with pytest.raises(InputError, match="more than once: 0"):
        read_charts([write(tmp_path / "twice.npz", h=h, ids=np.zeros(5, int)), known])


@pytest.mark.parametrize(("anchors", "decided"), [(32, False), (33, True), (200, True)])
def test_added_chart_is_undecided_with_no_more_anchors_than_directions(anchors: int, decided: bool):
    """In a whitened frame so few anchors are orthogonal, and even a copy of a member would score zero."""
    h = np.random.default_rng(0).standard_normal((anchors, 32))
    members = [ChartLatents(name, h @ rotation(32, seed), np.arange(anchors)) for seed, name in enumerate("ab")]
    (found,) = add_verdicts(Atlas.build(members), ChartLatents("copy", h, np.arange(anchors)), seed=0)
    assert (found.passed is not None) == decided
    assert ("32 anchors for 32 directions" in found.advice) != decided
