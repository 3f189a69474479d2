"""Evidence of alignment: held-out metrics, permutation nulls, and verdicts."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from workflows.align.models import Models, study

from jepatlas.alignment import METRICS, Evidence, Null, ProcrustesMap
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split
from jepatlas.core.records import Estimate
from jepatlas.workflows.align import BRIEF, Study, fit_map, gather
from jepatlas.workflows.align.refitted_nulls import HasMap

MODELS = Models.draw()
LEAST_SQUARES = partial(fit_map, "least-squares")


def held_out_r2(a: np.ndarray, b: np.ndarray, split: Split) -> float:
    """Held-out R² of least squares with an offset."""
    x = np.hstack([a, np.ones((len(a), 1))])
    weight = np.linalg.lstsq(x[split.fit], b[split.fit], rcond=None)[0]
    left, about = b - x @ weight, b - b[split.score].mean(0)
    return 1 - np.square(left[split.score]).sum() / np.square(about[split.score]).sum()


def test_values_are_measured_on_held_out_rows():
    one = study(160)
    found = gather(MODELS.a, MODELS.b, LEAST_SQUARES, one, ["r2"])["r2"]
    assert found.estimate.value == pytest.approx(held_out_r2(MODELS.a, MODELS.b, one.split), abs=1e-9)
    assert found.estimate.n == 80 and found.estimate.low < found.estimate.value < found.estimate.high
    assert found.null.value == pytest.approx(found.estimate.value) and found.null.n_permutations == 19
    assert found.null.mean < 0.05 and found.null.p == 0.05  # the best of twenty permutations
    assert found.verdict.passed and found.verdict.null == found.null.mean


def test_unrelated_latents_are_no_better_than_chance():
    unrelated = np.random.default_rng(3).standard_normal((160, 4))
    found = gather(unrelated, MODELS.b, LEAST_SQUARES, study(160, permutations=19), BRIEF)
    assert not any(one.verdict.passed for one in found.values())
    assert all("No better than chance (shuffled pairs" in one.verdict.advice for one in found.values())


def test_groups_are_kept_whole_and_widen_intervals():
    """Rows of a group are copies, so there are 20 independent rows instead of 160."""
    a, b = (np.repeat(h[::8], 8, axis=0) + 1e-6 * h for h in (MODELS.a, MODELS.b))
    by_group = study(160, MODELS.group)
    assert not set(MODELS.group[by_group.split.fit]) & set(MODELS.group[by_group.split.score])
    alone = replace(by_group, groups=None)
    wide, narrow = (gather(a, b, LEAST_SQUARES, one, ["r2"])["r2"].estimate for one in (by_group, alone))
    assert wide.value == narrow.value and wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_time_series_are_compared_with_shifted_pairs():
    """Shifts preserve autocorrelation, so the null of two unrelated random walks is wider than with permuted rows."""
    rng = np.random.default_rng(0)
    a, b = (np.cumsum(rng.standard_normal((400, 2)), axis=0) for _ in range(2))
    split = Split(np.arange(200), np.arange(200, 400))
    blocks = Study(split, np.arange(400) // 20, 20, permutations=19, replicates=5)
    by_time = gather(a, b, LEAST_SQUARES, blocks, ["cka_debiased"])["cka_debiased"]
    by_rows = gather(a, b, LEAST_SQUARES, replace(blocks, groups=None, block=None), ["cka_debiased"])["cka_debiased"]
    assert by_time.null.std > 3 * by_rows.null.std and by_time.null.p > by_rows.null.p


def test_progress_counts_every_round():
    rounds: list[int] = []
    one = replace(study(160), advance=lambda: rounds.append(1))
    gather(MODELS.a, MODELS.b, LEAST_SQUARES, one, ["r2"])
    assert len(rounds) == one.rounds


def test_scored_rows_are_limited_and_evenly_spaced():
    split = Split(np.arange(100), np.arange(100, 200))
    np.testing.assert_array_equal(Study(split, rows=12).scored, 100 + np.arange(0, 100, 9))
    assert len(Study(split).scored) == 100


def test_direction_of_the_metric_is_used():
    estimate, draws = Estimate(0.2, 0.1, 0.3, 50), np.linspace(0.4, 0.6, 99)
    null = Null.of(0.2, draws, "lower")
    lower = Evidence(METRICS["nos_10"], estimate, null)
    assert lower.verdict.passed and "lower is better" in lower.verdict.advice and lower.line[0] == "↓ nos_10"
    higher = Evidence(METRICS["svcca"], estimate, Null.of(0.2, draws, "higher"))
    assert not higher.verdict.passed and higher.line[0] == "↑ svcca"
    assert lower.cell == "0.200 [0.100, 0.300]; shuffled 0.500, p 0.01"


ESTIMATE = Estimate(0.9, 0.8, 1.0, 50)


def test_kind_of_null_is_named():
    null = Null.of(0.9, np.linspace(0, 0.1, 19), "higher")
    rows, groups, blocks = (
        Evidence(METRICS["r2"], ESTIMATE, null, shifted, units)
        for shifted, units in ((False, None), (False, 8), (True, 30))
    )
    assert [one.null_name for one in (rows, groups, blocks)] == ["shuffled pairs", "swapped groups", "shifted pairs"]
    assert "(swapped groups 0.050" in groups.verdict.advice and "; swapped groups 0.050, p" in groups.cell


@pytest.mark.parametrize(
    ("rivals", "p", "passed"),
    [(19, 0.05, True), (19, 0.1, False), (99, 0.06, False), (4, 0.2, None), (18, 1 / 19, None), (4, 1.0, None)],
)
def test_p_value_decides(rivals: int, p: float, passed: bool | None):
    """The interval and the limit of the null do not: the value is always far above both."""
    better = rivals - round(p * (1 + rivals)) + 1
    draws = np.r_[np.zeros(better), np.full(rivals - better, 0.95)]
    null = replace(Null.of(0.9, draws, "higher"), limit=0.12)
    verdict = Evidence(METRICS["r2"], ESTIMATE, null).verdict
    assert null.p == pytest.approx(p) and verdict.passed is passed
    start = {True: "Better than chance", False: "No better than chance", None: "Undecided: with"}[passed]
    assert start in verdict.advice and ("No better" in verdict.advice) == (passed is False)
    assert verdict.threshold == 0.12


def test_few_groups_or_shifts_are_undecided():
    null = replace(Null.of(0.9, np.full(99, 0.95), "higher"), p=0.2)
    by = {
        (True, 6): "6 time blocks.* 5 shifts.*at least 20",
        (False, 4): "4 groups.*at least 5",
    }
    for (shifted, units), message in by.items():
        verdict = Evidence(METRICS["r2"], ESTIMATE, null, shifted, units).verdict
        assert verdict.passed is None and re.search(f"Undecided: {message}", verdict.advice)
    for shifted, units in ((True, 20), (False, 5)):
        assert Evidence(METRICS["r2"], ESTIMATE, null, shifted, units).verdict.passed is False


@pytest.mark.parametrize("rows", [40, 60])
def test_neighbourhoods_too_large_for_the_rows_are_undecided(rows: int):
    found = gather(MODELS.a[:rows], MODELS.b[:rows], LEAST_SQUARES, study(rows), ["nos_5", "nos_20"])
    assert found["nos_5"].verdict.passed
    assert np.isnan(found["nos_20"].null.value) == (rows == 40)
    assert found["nos_20"].verdict.passed is None
    advice = found["nos_20"].verdict.advice
    assert f"{rows // 2} held-out rows" in advice and "at least 42 rows" in advice


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rows": 7}, "7 held-out rows.*--rows"),
        ({"rows": -1}, "0 held-out rows"),
        ({"groups": np.zeros(160)}, "80 held-out rows in 1 group"),
        ({"groups": np.zeros(160), "block": 160}, "80 held-out rows in 1 time block.*--blocks.* 160"),
        ({"permutations": 1}, "'permutations'.* 1 was given"),
    ],
)
def test_invalid_studies_are_rejected(given: dict, message: str):
    with pytest.raises(InputError, match=message):
        Study(Split(np.arange(80), np.arange(80, 160)), **given)


@pytest.mark.parametrize("groups", [None, MODELS.group])
def test_nulls_from_a_shared_factorisation_equal_those_of_refits(groups: np.ndarray | None):
    class Refitted:
        """Hides its kind, so that maps are fitted anew."""

        def __init__(self, fitted: HasMap) -> None:
            self.map_ = fitted.map_

    for kind in ("ridge", "least-squares"):
        fit = partial(fit_map, kind)
        one = study(160, groups, permutations=9, replicates=2)
        quick = gather(MODELS.a, MODELS.b, fit, one, ["r2", "mse_per_dim"])
        slow = gather(MODELS.a, MODELS.b, lambda a, b, g, fit=fit: Refitted(fit(a, b, g)), one, ["r2", "mse_per_dim"])
        for name, found in quick.items():
            assert found.estimate == slow[name].estimate
            assert found.null.mean == pytest.approx(slow[name].null.mean, abs=1e-4)
            assert found.null.std == pytest.approx(slow[name].null.std, rel=1e-3)


def test_geometry_metrics_keep_the_map_and_permute_held_out_groups():
    one = study(160, MODELS.group, permutations=19)
    found = gather(MODELS.a, MODELS.b, LEAST_SQUARES, one, ["r2", "dsc_target"])
    assert found["r2"].units == 20 and found["dsc_target"].units == 10
    assert found["dsc_target"].passed and abs(found["dsc_target"].null.mean) < 0.1


def test_fit_receives_the_groups_of_its_rows():
    received: list[np.ndarray | None] = []

    def fit(a: np.ndarray, b: np.ndarray, groups: np.ndarray | None) -> ProcrustesMap:
        received.append(groups)
        return ProcrustesMap().fit(a, b)

    one = study(160, MODELS.group, permutations=2, replicates=2)
    gather(MODELS.a, MODELS.b, fit, one, ["r2"])
    assert len(received) == 4  # the map, and the null with the true and two permuted orders
    assert all(groups is not None and np.array_equal(groups, MODELS.group[one.split.fit]) for groups in received)
