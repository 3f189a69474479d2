"""Stress curves compared with closed forms on linear Gaussian worlds and with one trial computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from alignment.latents import gaussian, invertible, rotation
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.alignment.maps.map_estimators import LeastSquaresMap, ProcrustesMap, RobustMap
from jepatlas.alignment.probes.linear_probe import LinearProbe
from jepatlas.alignment.stress import (
    UNSHIFTED,
    Protocol,
    Score,
    StressCurve,
    capacity,
    distribution_shift,
    pair_budget,
    pair_noise,
)
from jepatlas.alignment.stress.pair_stress import mismatched_partners
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out, least_squares
from jepatlas.reporting import draw

PLAIN = {"plain": LeastSquaresMap()}
BOTH = {"plain": LeastSquaresMap(), "robust": RobustMap()}
FEW, ONE = Protocol(rows=60), Protocol(seeds=1)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def linear_world(rows: int, dim: int, best: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """White Gaussian a and b = Wa + noise; the best map predicts a share `best` of the variance in every direction."""
    a = gaussian(rows, dim, seed) + 3
    b = np.sqrt(best) * a @ rotation(dim, seed + 1) + np.sqrt(1 - best) * gaussian(rows, dim, seed + 2)
    return a, b


def values(curve: StressCurve, fit: str = "plain", measure: str = "r2") -> np.ndarray:
    return np.array([score.estimate.value for _, score in curve.course(fit, measure)])


def nulls(curve: StressCurve, fit: str = "plain", measure: str = "r2") -> np.ndarray:
    return np.array([score.null for _, score in curve.course(fit, measure)])


# --- mismatched pairs ---


def test_mismatched_pairs_shrink_the_plain_map_by_their_share():
    """W = (1 − s)W*, so R² = R²₀(1 − s²), minus the estimation error of n pairs."""
    best, dim, shares, pairs = 0.9, 4, np.array([0.0, 0.1, 0.3, 0.6]), 10_000
    a, b = linear_world(2 * pairs, dim, best)
    curve = pair_noise(a, b, rng(), shares=shares.tolist(), fits=PLAIN, protocol=FEW)
    unexplained = 1 - (1 - shares) ** 2 * best
    spread = 2 * shares * np.sqrt(best * unexplained / (pairs * dim))  # standard error of R²
    expected = best * (1 - shares**2) - dim / pairs * unexplained
    assert np.all(np.abs(values(curve) - expected) < 4 * spread + 0.003)
    np.testing.assert_allclose(nulls(curve), -dim / pairs, atol=0.001)
    np.testing.assert_allclose(nulls(curve, measure="nos_10_common"), 1 - 10 / 59, atol=0.03)


def test_robust_fit_tolerates_mismatched_pairs():
    z = gaussian(1600, 5)
    a, b = z @ invertible(5, 1), z @ invertible(5, 3) + 0.5 * gaussian(1600, 5, 7)
    curve = pair_noise(a, b, rng(), shares=(0.0, 0.3), fits=BOTH, protocol=Protocol(rows=300))
    clean = values(curve)[0]
    assert abs(values(curve, "robust")[1] - clean) < 0.01 and clean - values(curve)[1] > 0.05
    assert values(curve, "robust", "nos_10_common")[1] < values(curve, measure="nos_10_common")[1]
    recall, precision = (values(curve, "robust", name) for name in ("recall", "precision"))
    assert (
        len(recall) == len(precision) == 1 and recall[0] > 0.9 and precision[0] > 0.9
    )  # undefined without mismatched pairs
    assert nulls(curve, "robust", "precision")[0] == pytest.approx(0.3)
    distrusted = values(curve, "robust", "distrusted")
    assert nulls(curve, "robust", "recall")[0] == distrusted[1] and distrusted[0] < 0.02
    assert recall[0] * 0.3 == pytest.approx(precision[0] * distrusted[1], rel=0.01)  # both count the same pairs
    assert curve.course("plain", "recall") == []


def test_one_trial_computed_by_hand():
    a, b = linear_world(90, 3, 0.8)
    labels = np.where(a[:, 0] > 3, "right", "left")
    split = Split(np.arange(50), np.arange(50, 90))
    point = pair_noise(a, b, rng(), shares=(0.0,), fits=PLAIN, labels=labels, split=split, protocol=ONE).points[0]
    mapped, probed = hold_out(50, np.random.default_rng(ONE.draw(rng())[0]))
    fitted, probe = least_squares(a[mapped], b[mapped]), LinearProbe.fit(a[probed], labels[probed])
    back = fitted.invert().apply(b[50:])
    missed = np.square(b[50:] - fitted.apply(a[50:])).sum() / np.square(b[50:] - b[50:].mean(0)).sum()
    near = [[set(np.argsort(np.linalg.norm(x - row, axis=1))[1:11]) for row in x] for x in (a[50:], back)]
    common = np.mean([len(one & other) / 10 for one, other in zip(*near, strict=True)])
    commonest = max(np.mean(labels[50:] == name) for name in ("left", "right"))
    expected = {
        "r2": 1 - missed,
        "nos_10_common": 1 - common,
        "condition": np.linalg.cond(fitted.weight),
        "source": np.mean(probe.predict(a[50:]) == labels[50:]),
        "migrated": np.mean(probe.predict(back) == labels[50:]),
    }
    found = point.scores["plain"]
    assert {name: score.estimate.value for name, score in found.items()} == pytest.approx(expected)
    assert found["source"].null == found["migrated"].null == commonest
    assert point.pairs == 25 and point.label == "0"


@given(st.lists(st.integers(0, 4), min_size=2, max_size=30), st.integers(0, 1000))
def test_mismatched_partners_belong_to_other_groups(groups: list[int], seed: int):
    labels, rows = np.array([5, *groups]), 7 + 2 * np.arange(len(groups) + 1)
    chosen = np.arange(len(rows))
    partners = mismatched_partners(rows, labels, chosen, np.random.default_rng(seed))
    group = dict(zip(rows.tolist(), labels.tolist(), strict=True))
    assert all(group[partner] != label for partner, label in zip(partners.tolist(), labels.tolist(), strict=True))


def test_partners_are_drawn_uniformly_from_other_groups():
    rows, labels = np.arange(5), np.array([0, 1, 0, 2, 1])
    partners = mismatched_partners(rows, labels, np.full(6000, 2), rng())
    counts = np.bincount(partners, minlength=5)
    assert counts[[0, 2]].sum() == 0
    assert scipy.stats.chisquare(counts[[1, 3, 4]]).pvalue > 1e-3


# --- few pairs ---


def test_pair_budget_matches_the_risk_of_least_squares():
    """E(1 − R²) = (1 − R²₀)(1 + 1/n)(n − 2)/(n − d − 2) for Gaussian rows; the null has R²₀ = 0."""
    best, dim, budgets = 0.75, 5, np.array([16, 40, 200])
    a, b = linear_world(1500, dim, best)
    protocol = Protocol(seeds=25, rows=20)
    curve = pair_budget(a, b, rng(), budgets=[*budgets, 10_000], fits=PLAIN, protocol=protocol)
    assert [point.label for point in curve.points] == ["16", "40", "200"]
    risk = (1 + 1 / budgets) * (budgets - 2) / (budgets - dim - 2)
    for row, point in enumerate(curve.points):
        found = point.scores["plain"]["r2"]
        off = max(2 * (found.estimate.high - found.estimate.value), 0.01)  # about four standard errors
        assert found.estimate.value == pytest.approx(1 - (1 - best) * risk[row], abs=off)
        assert found.null == pytest.approx(1 - risk[row], rel=0.2, abs=0.02)
    assert np.all(np.diff(values(curve)) > 0) and np.all(np.diff(nulls(curve)) > 0)


def test_procrustes_prior_needs_as_many_pairs_as_dimensions():
    dim = 12
    a, b = linear_world(600, dim, 0.95)
    fits = PLAIN | {"prior": ProcrustesMap(scaled=True)}
    curve = pair_budget(a, b, rng(), budgets=(6, dim + 3, 200), fits=fits, protocol=FEW)
    prior, plain = values(curve, "prior"), values(curve)
    assert prior[1] > 0.8 and prior[1] > plain[1] + 0.1
    assert prior[2] == pytest.approx(0.95, abs=0.02) and plain[2] == pytest.approx(0.95, abs=0.02)
    singular = curve.points[0].scores["plain"]["condition"]  # 6 pairs leave 7 directions undetermined
    assert singular.estimate.value == np.inf and np.isnan(singular.estimate.low)
    assert "inf" in curve.table(["condition"]).rows[0][-1]


def test_probes_use_half_of_the_rows_for_every_budget():
    a, b = linear_world(400, 3, 0.9)
    labels = (a[:, 0] > 3).astype(int)
    split = Split(np.arange(300), np.arange(300, 400))
    curve = pair_budget(a, b, rng(), budgets=(8, 150, 300), fits=PLAIN, labels=labels, split=split, protocol=ONE)
    probed = hold_out(300, np.random.default_rng(ONE.draw(rng())[0])).score
    source = values(curve, measure="source")
    right = np.mean(LinearProbe.fit(a[probed], labels[probed]).predict(a[300:]) == labels[300:])
    assert source.tolist() == [right, right]  # no map has 300 pairs, because half of the rows train the probe
    assert values(curve, measure="migrated")[1] > 0.85


def test_probes_do_not_migrate_between_unrelated_models():
    """The migrated probe is at chance. Trained on the rows of the map, it would reach about 75%."""
    a, b = gaussian(1000, 60, 1), gaussian(1000, 40, 2)
    given_ = {"fits": PLAIN, "labels": (b[:, 0] > 0).astype(int), "protocol": ONE}
    for curve in (
        pair_noise(a, b, rng(), shares=(0.0,), **given_),
        pair_budget(a, b, rng(), budgets=(250,), **given_),
        capacity(a, b, rng(), widths=(40,), **given_),
        distribution_shift(a, b, rng(), strengths=(0.0,), **given_),
    ):
        assert np.all(np.abs(values(curve, measure="migrated") - 0.5) < 0.1)


# --- shifts ---


def test_shift_size_matches_truncated_normals():
    """At strength 1, the fitted quarter lies below all scored rows; at 0 both have the same distribution."""
    a, b = linear_world(4000, 1, 0.9)
    curve = distribution_shift(a, b, rng(), strengths=(1.0, 0.0, 0.5), fits=PLAIN, protocol=FEW)
    edge = scipy.stats.norm.ppf(0.25)
    below, above = scipy.stats.truncnorm(-np.inf, edge), scipy.stats.truncnorm(edge, np.inf)
    assert [point.label for point in curve.points] == ["0", "0.5", "1"]
    assert curve.points[0].x < 0.1 < curve.points[1].x < curve.points[2].x
    assert curve.points[2].x == pytest.approx((above.mean() - below.mean()) / below.std(), rel=0.05)
    assert {point.pairs for point in curve.points} == {1000}


def test_shift_affects_nonlinear_maps_only():
    a = gaussian(2000, 3) * np.array([2.0, 1.0, 1.0])
    labels = np.digitize(a[:, 1], [-0.5, 0.5])
    straight = a @ rotation(3, 1) + 0.1 * gaussian(2000, 3, 2)
    bent = np.column_stack([a[:, 0], a[:, 1] + 0.4 * np.square(a[:, 0]), a[:, 2]])
    prices = {}
    for name, b in (("straight", straight), ("bent", bent)):
        curve = distribution_shift(a, b, rng(), strengths=(0, 1), fits=PLAIN, labels=labels, protocol=FEW)
        prices[name] = {
            measure: values(curve, f"plain{UNSHIFTED}", measure) - values(curve, "plain", measure)
            for measure in ("r2", "migrated")
        }
    np.testing.assert_allclose(prices["straight"]["r2"], 0, atol=0.01)
    np.testing.assert_allclose(prices["straight"]["migrated"], 0, atol=0.05)
    for price in prices["bent"].values():
        assert abs(price[0]) < 0.05 and price[1] > 0.15


def test_a_shift_along_a_variable_by_groups():
    a, b = linear_world(800, 2, 0.9)
    groups = np.arange(800) // 10
    along = np.repeat(gaussian(80, 1, 5)[:, 0], 10)
    labels = (along > np.quantile(along, 0.3)).astype(int)
    protocol = Protocol(seeds=2, rows=60)
    options = {"fits": PLAIN, "labels": labels, "groups": groups, "protocol": protocol}
    curve = distribution_shift(a, b, rng(), along=along, strengths=(0, 1), **options)
    by_strength = {point.label: point.scores["plain"]["migrated"] for point in curve.points}
    assert by_strength["0"].estimate.n == 2
    assert by_strength["1"].estimate.n == 0  # the fitted rows have one class, so there is no probe
    assert "–" in curve.table().rows[[row[0] for row in curve.table().rows].index("1")]


# --- widths ---


def test_narrow_source_predicts_its_share_of_the_variance():
    spread = np.array([4.0, 2.0, 1.0, 0.5])
    a = gaussian(4000, 4) * spread @ rotation(4, 1)
    b = a @ rotation(4, 2)
    curve = capacity(a, b, rng(), widths=(1, 2, 4, 9), side="a", fits=PLAIN, protocol=FEW)
    np.testing.assert_allclose(values(curve), np.cumsum(spread**2)[[0, 1, 3]] / np.sum(spread**2), atol=0.01)
    assert [point.x for point in curve.points] == [1, 2, 4]
    chosen = capacity(a, b, rng(), widths=(1, 2), side="a", by="random", fits=PLAIN, protocol=FEW)
    assert np.all(values(chosen) < values(curve)[:2])


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 5), st.sampled_from(["principal", "random"]), st.integers(0, 100))
def test_target_width_does_not_affect_r2(width: int, by, seed: int):
    a, b = linear_world(600, 5, 0.8, seed)
    curve = capacity(a, b, rng(), widths=(width,), side="b", by=by, fits=PLAIN, protocol=Protocol(seeds=2, rows=30))
    assert values(curve)[0] == pytest.approx(0.8, abs=0.06)


# --- curves ---


def test_score_is_the_mean_of_defined_values():
    values = [0.5, 0.7, 0.9]
    low, high = scipy.stats.t.interval(0.95, 2, loc=0.7, scale=scipy.stats.sem(values))
    found = Score.of([*values, np.nan], [0.1, 0.1, 0.4, np.nan])
    assert (found.estimate.value, found.estimate.low, found.estimate.high) == pytest.approx((0.7, low, high))
    assert found.estimate.n == 3 and found.null == pytest.approx(0.2)
    geometric = Score.of(np.log([2.0, 8.0]).tolist(), [0.0, 0.0], log=True)
    assert geometric.estimate.value == pytest.approx(4) and geometric.estimate.low < 4 < geometric.estimate.high
    near = Score.of([0.99, 1.0, 0.9], [0.5] * 3, limits=(0.0, 1.0)).estimate
    assert near.high == 1 and 0 < near.low < near.value
    lone = Score.of([0.5], [0.0]).estimate
    assert (lone.low, lone.high) == (-np.inf, np.inf)
    assert Score.of([np.nan], [np.nan]).estimate.n == 0


@pytest.fixture(scope="module")
def noise() -> StressCurve:
    a, b = linear_world(200, 3, 0.9)
    return pair_noise(a, b, rng(), shares=(0.0, 0.2), fits=BOTH, labels=(a[:, 0] > 3).astype(int))


def test_figures_show_every_fit_and_chance_level(noise: StressCurve):
    assert noise.measures == [
        "r2",
        "nos_10_common",
        "condition",
        "distrusted",
        "recall",
        "precision",
        "source",
        "migrated",
    ]
    for measure in noise.measures:
        figure = noise.figure(measure)
        drawing = draw(figure)
        assert drawing.title == "Mismatched pairs" and "is better" in drawing.note
    series = noise.figure().series
    # robust fits distrust no shuffled pair, so both fits have the same chance level
    assert [one.name for one in series] == ["plain", "robust", "shuffled"]
    assert all(one.low and not one.dash for one in series[:2]) and all(one.dash for one in series[2:])
    assert series[0].x == [0.0, 0.2] and series[0].y == values(noise).tolist()
    assert [one.name for one in noise.figure("migrated").series] == ["plain", "robust", "majority class"]
    assert [one.name for one in noise.figure("recall").series] == ["robust", "random choice"]


def test_every_cell_of_the_table_names_its_chance_level(noise: StressCurve):
    table = noise.table()
    assert table.columns[:4] == ["share of mismatched pairs", "pairs fitted", "fit", "R² (higher is better)"]
    assert len(table.rows) == 4 and all(len(row) == len(table.columns) for row in table.rows)
    for cell in [cell for row in table.rows for cell in row[3:]]:
        assert cell == "–" or any(word in cell for word in ("shuffled", "random choice", "majority class"))
    assert noise.table(["r2"]).columns[3:] == ["R² (higher is better)"]


def test_results_depend_on_the_seed_only_and_inputs_are_not_modified():
    a, b = linear_world(120, 2, 0.9)
    before, reports = (a.copy(), b.copy()), []
    protocol = Protocol(seeds=2, rows=60, progress=lambda done, total: reports.append((done, total)))
    runs = [pair_noise(a, b, rng(), shares=(0.1, 0.2), protocol=protocol) for _ in range(2)]
    assert runs[0].table() == runs[1].table()
    assert reports[:4] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    np.testing.assert_array_equal(np.stack(before), np.stack([a, b]))
    other = pair_noise(a, b, np.random.default_rng(1), shares=(0.1, 0.2), protocol=protocol)
    assert other.table() != runs[0].table()


A, B = linear_world(40, 2, 0.9)


@pytest.mark.parametrize(
    ("stress", "message"),
    [
        (lambda: pair_noise(A, B[:30], rng()), "same number of rows"),
        (lambda: pair_noise(A, B, rng(), shares=(1.2,)), "'shares'.*1.2"),
        (lambda: pair_noise(A, B, rng(), fits={}), "'fits'"),
        (lambda: pair_noise(A, B, rng(), labels=np.zeros(40, int)), "only one class"),
        (lambda: pair_noise(A, B, rng(), labels=np.zeros(30, int)), "'labels' .* 40 rows"),
        (lambda: pair_noise(A, B, rng(), groups=np.zeros(40, int)), "at least 2 groups"),
        (lambda: pair_noise(A, B, rng(), groups=np.arange(40) // 20), "belong to one group"),
        (lambda: pair_noise(A, B, rng(), split=Split(np.arange(30), np.arange(20, 40))), "'split'"),
        (lambda: pair_noise(A, B, rng(), split=Split(np.arange(30), np.arange(30, 50))), "'split' .*39"),
        (lambda: pair_budget(A, B, rng(), budgets=(50, 100)), "'budgets'"),
        (lambda: distribution_shift(A, B, rng(), along=np.zeros(40)), "'along'"),
        (lambda: distribution_shift(A, B, rng(), along=np.zeros((40, 2))), "shape"),
        (lambda: distribution_shift(A, B, rng(), strengths=(2,)), "'strengths'.* 2 was given"),
        (lambda: distribution_shift(A, B, rng(), groups=np.arange(40) // 10), "4 groups are too few"),
        (lambda: capacity(A, B, rng(), widths=(3,)), "'widths'"),
        (lambda: capacity(A, B, rng(), widths=(1,), side="c"), "'side'.*'c'"),  # pyright: ignore[reportArgumentType]
        (lambda: Protocol(seeds=0), "'seeds'"),
        (lambda: Protocol(held=1.0), "'held'"),
        (lambda: pair_noise(A, B, rng(), shares=(0,), fits=PLAIN).figure("migrated"), "has no measure 'migrated'"),
    ],
)
def test_invalid_arguments_are_rejected(stress, message: str):
    with pytest.raises(InputError, match=message):
        stress()
