"""Migrated probes: equality with the source probe on translated latents, rejected maps, and migration reports."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.alignment.maps import RidgeMap
from jepatlas.alignment.probes.linear_probe import LinearProbe
from jepatlas.alignment.probes.probe_migration import distil, migrate, migrate_back, support
from jepatlas.alignment.probes.probe_report import MigrationReport, migration_report
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out, least_squares
from jepatlas.core.linear_map import CONDITION_LIMIT, LinearMap
from jepatlas.core.records import Estimate

seeds = st.integers(0, 2**32 - 1)


def random_probe(rng: np.random.Generator, classes: int, width: int) -> LinearProbe:
    weight, bias = rng.standard_normal((classes, width)), rng.standard_normal(classes)
    return LinearProbe(np.arange(classes), weight, bias, rng.standard_normal(width), rng.uniform(0.2, 5, width))


def random_map(rng: np.random.Generator, weight: np.ndarray) -> LinearMap:
    d_out, d_in = weight.shape
    means = rng.standard_normal(d_in), rng.standard_normal(d_out)
    return LinearMap(weight, *means, rng.uniform(0.2, 5, d_in), rng.uniform(0.2, 5, d_out))


@given(st.integers(2, 5), st.integers(1, 6), st.integers(0, 3), seeds)
def test_migrated_logits_match_the_source_probe_on_translated_latents(classes, width, wider, seed):
    rng = np.random.default_rng(seed)
    probe = random_probe(rng, classes, width)
    translation = random_map(rng, rng.standard_normal((width + wider, width)) + 3 * np.eye(width + wider, width))
    b = 5 * rng.standard_normal((20, width + wider))
    expected = probe.logits(translation.invert(CONDITION_LIMIT).apply(b))
    np.testing.assert_allclose(migrate(probe, translation).logits(b), expected, atol=1e-6, rtol=1e-6)
    a = rng.standard_normal((20, width))  # on exact translations they match the source probe
    np.testing.assert_allclose(migrate(probe, translation).logits(translation.apply(a)), probe.logits(a), atol=1e-6)


@given(st.integers(2, 5), st.integers(1, 6), st.integers(1, 6), seeds)
def test_migration_through_a_backward_map_matches_the_probe_on_mapped_latents(classes, width, target, seed):
    rng = np.random.default_rng(seed)
    probe, back = random_probe(rng, classes, width), random_map(rng, rng.standard_normal((width, target)))
    b = rng.standard_normal((20, target))
    np.testing.assert_allclose(migrate_back(probe, back).logits(b), probe.logits(back.apply(b)), atol=1e-9)
    with pytest.raises(InputError, match=f"{width + 1} dimensions.* {width}"):
        migrate_back(random_probe(rng, classes, width + 1), back)


def test_truncated_directions_are_replaced_by_their_mean():
    """σ = (1, 1, 1e-4): a limit of 1000 truncates the third direction of a."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    translation = random_map(rng, turn * np.array([1.0, 1.0, 1e-4]))
    probe, b = random_probe(rng, 4, 3), rng.standard_normal((50, 3))
    moved = migrate(probe, translation, limit=1000.0)
    np.testing.assert_allclose(moved.logits(b), probe.logits(translation.invert(1000.0).apply(b)), atol=1e-9)
    a = rng.standard_normal((50, 3))
    flat = a.copy()
    flat[:, 2] = translation.x_mean[2]
    np.testing.assert_allclose(moved.logits(translation.apply(a)), probe.logits(flat), atol=1e-9)
    found = support(probe, translation, limit=1000.0)
    assert (found.carried, found.truncated, found.width) == (2, 1, 3)
    assert found.condition == pytest.approx(1e4)


@settings(max_examples=40)
@given(st.integers(2, 4), st.integers(2, 6), st.integers(1, 6), seeds)
def test_lost_share_is_the_logit_variance_between_latents_and_their_round_trip(classes, width, rank, seed):
    rng = np.random.default_rng(seed)
    rank = min(rank, width)
    weight = rng.standard_normal((width, rank)) @ rng.standard_normal((rank, width))
    translation, probe = random_map(rng, weight), random_probe(rng, classes, width)
    a = rng.standard_normal((200, width)) @ rng.standard_normal((width, width)) + 7
    returned = translation.invert(1e6).apply(translation.apply(a))

    def decisive(latents: np.ndarray) -> np.ndarray:
        logits = probe.logits(latents)
        return logits - logits.mean(1, keepdims=True)

    expected = np.var(decisive(a) - decisive(returned), axis=0).sum() / np.var(decisive(a), axis=0).sum()
    found = support(probe, translation, limit=1e6, latents=a)
    assert found.lost == pytest.approx(expected, abs=1e-8)
    assert found.carried == rank and found.truncated == width - rank
    white = translation.x_mean + translation.x_scale * rng.standard_normal((20_000, width))
    assert support(probe, translation).lost == pytest.approx(support(probe, translation, latents=white).lost, abs=0.05)


def test_map_without_the_directions_of_the_probe_is_rejected():
    kept = LinearMap(np.eye(2, 4), np.zeros(4), np.zeros(2))
    reads = np.array([[0.0, 0.1, 1.0, 1.0], [0.0, -0.1, -1.0, -1.0]])
    probe = LinearProbe(np.arange(2), reads, np.zeros(2), np.zeros(4), np.ones(4))
    with pytest.raises(InputError, match=r"2 of the 4 .*100% .*at most 50%"):
        migrate(probe, kept)
    a = np.random.default_rng(0).standard_normal((100, 4)) * np.array([1.0, 1.0, 1e-3, 1e-3])
    assert migrate(probe, kept, latents=a).weight.shape == (2, 2)  # the directions that are lost hardly vary
    with pytest.raises(InputError, match="at most 0%"):
        migrate(probe, kept, latents=a, most_lost=0.0)
    with pytest.raises(InputError, match="0 of the 4"):
        migrate(probe, LinearMap(np.zeros((4, 4)), np.zeros(4), np.zeros(4)))
    common = dataclasses.replace(probe, weight=np.array([[1.0, 0.0, 9.0, 0.0], [-1.0, 0.0, 9.0, 0.0]]))
    assert support(common, kept).lost == 0  # weights shared by all classes do not affect the prediction


def test_incompatible_maps_are_rejected():
    rng = np.random.default_rng(0)
    probe = random_probe(rng, 3, 4)
    with pytest.raises(InputError, match=r"4 dimensions.*3 to 4"):
        migrate(probe, random_map(rng, np.eye(4, 3)))
    with pytest.raises(InputError, match="weight of the map"):
        migrate(probe, random_map(rng, np.full((4, 4), np.nan)))
    with pytest.raises(InputError, match=r"above 1.* 1 was given"):
        migrate(probe, random_map(rng, np.eye(4)), limit=1)
    with pytest.raises(InputError, match=r"'latents'.*\(5, 3\)"):
        migrate(probe, random_map(rng, np.eye(4)), latents=np.zeros((5, 3)))


@dataclasses.dataclass(frozen=True)
class Trial:
    """Two models of one world with three classes and 90 groups of ten rows."""

    a: np.ndarray
    b: np.ndarray
    labels: np.ndarray
    groups: np.ndarray
    split: Split

    @classmethod
    def draw(cls, width_b: int = 4, noise: float = 0.1) -> Trial:
        rng = np.random.default_rng(0)
        groups = np.repeat(np.arange(90), 10)
        labels = np.repeat(rng.choice(3, size=90, p=[0.5, 0.3, 0.2]), 10)
        a = 2 * np.eye(3, 4)[labels] + np.repeat(0.9 * rng.standard_normal((90, 4)), 10, axis=0)
        a += 0.3 * rng.standard_normal(a.shape)
        b = a @ rng.standard_normal((4, width_b)) + noise * rng.standard_normal((900, width_b)) + 5
        return cls(a, b, np.array(["cup", "car", "dog"])[labels], groups, hold_out(900, rng, groups=groups))

    def report(self, translation: LinearMap | None = None, **changes) -> MigrationReport:
        fit = self.split.fit
        probe = LinearProbe.fit(self.a[fit], self.labels[fit])
        translation = translation or least_squares(self.a[fit], self.b[fit])
        given_ = {"a": self.a, "b": self.b, "labels": self.labels, "split": self.split, "groups": self.groups} | changes
        return migration_report(probe, translation, rng=np.random.default_rng(1), replicates=200, **given_)


def test_report_matches_its_definitions():
    trial = Trial.draw()
    report, (fit, score) = trial.report(), trial.split
    probe, translation = LinearProbe.fit(trial.a[fit], trial.labels[fit]), least_squares(trial.a[fit], trial.b[fit])
    truth = trial.labels[score]

    def accuracy(head: LinearProbe, latents: np.ndarray) -> float:
        return float(np.mean(head.predict(latents[score]) == truth))

    assert report.source.value == accuracy(probe, trial.a)
    assert report.migrated.value == accuracy(probe, translation.invert().apply(trial.b))
    assert report.target.value == accuracy(LinearProbe.fit(trial.b[fit], trial.labels[fit]), trial.b)
    assert report.untranslated is not None and report.untranslated.value == accuracy(probe, trial.b)
    assert report.loss.value == pytest.approx(report.source.value - report.migrated.value)
    assert report.price.value == pytest.approx(report.target.value - report.migrated.value)
    assert report.majority == max(np.mean(truth == name) for name in ("cup", "car", "dog"))
    assert report.support.condition == pytest.approx(np.linalg.cond(translation.weight))
    assert report.support.truncated == 0 and report.support.lost < 1e-12
    for estimate in (report.source, report.migrated, report.target, report.loss, report.price):
        assert estimate.low <= estimate.value <= estimate.high and estimate.n == len(score)


def test_distilled_probe_matches_its_definition():
    """It is a ridge map to the probe's logits. Without rows for it, the rest of the report is unchanged."""
    trial = Trial.draw()
    fit, score = trial.split
    probe = LinearProbe.fit(trial.a[fit], trial.labels[fit])
    fitted = RidgeMap().fit(trial.b[fit], probe.logits(trial.a[fit]), groups=trial.groups[fit])
    head = distil(probe, trial.a[fit], trial.b[fit], trial.groups[fit])
    np.testing.assert_allclose(head.logits(trial.b), fitted.transform(trial.b), atol=1e-9)
    assert np.corrcoef(head.logits(trial.b).ravel(), probe.logits(trial.a).ravel())[0, 1] > 0.95
    report = trial.report(distilled=fit)
    assert report.distilled is not None
    assert report.distilled.value == np.mean(head.predict(trial.b[score]) == trial.labels[score]) > 0.8
    assert "probe_distilled" in {verdict.name for verdict in report.verdicts()}
    without = trial.report()
    assert without.distilled is None and without.migrated == report.migrated
    assert "probe_distilled" not in {verdict.name for verdict in without.verdicts()}


def test_fitted_map_migrates_the_probe_and_random_map_does_not():
    trial = Trial.draw()
    verdicts = {verdict.name: verdict for verdict in trial.report().verdicts()}
    assert verdicts["probe_source"].passed and verdicts["probe_migrated"].passed and verdicts["probe_target"].passed
    assert verdicts["probe_migrated"].value > verdicts["probe_untranslated"].value + 0.2
    assert all(verdict.advice for verdict in verdicts.values())
    assert "4 of 4 directions; 0 were truncated" in verdicts["probe_unread"].advice
    rng = np.random.default_rng(3)
    unrelated = LinearMap(rng.standard_normal((4, 4)), trial.a.mean(0), trial.b.mean(0))
    failed = {verdict.name: verdict for verdict in trial.report(unrelated).verdicts()}
    assert failed["probe_migrated"].passed is False and "more pairs" in failed["probe_migrated"].advice
    assert failed["probe_price"].low > 0.1 > verdicts["probe_price"].high  # the gain of training on the target
    assert failed["probe_migrated"].null == failed["probe_migrated"].threshold == trial.report().majority


@pytest.mark.parametrize(("low", "high", "passed"), [(0.6, 0.7, True), (0.45, 0.55, None), (0.3, 0.4, False)])
def test_an_accuracy_whose_interval_contains_the_majority_is_undecided(low: float, high: float, passed: bool | None):
    report = dataclasses.replace(
        Trial.draw().report(), majority=0.5, migrated=Estimate((low + high) / 2, low, high, 99)
    )
    (verdict,) = [verdict for verdict in report.verdicts() if verdict.name == "probe_migrated"]
    assert verdict.passed is passed


def test_migrated_probe_better_than_its_source_fails():
    trial = Trial.draw()
    rng = np.random.default_rng(5)
    noisy = trial.a + 3 * rng.standard_normal(trial.a.shape)
    fit = trial.split.fit
    probe, through = LinearProbe.fit(noisy[fit], trial.labels[fit]), least_squares(noisy[fit], trial.a[fit])
    report = migration_report(probe, through, noisy, trial.a, trial.labels, split=trial.split, rng=rng)
    loss = next(one for one in report.verdicts() if one.name == "probe_loss")
    assert loss.high < 0 and loss.passed is False and "better than its source" in loss.advice
    usual = next(one for one in trial.report().verdicts() if one.name == "probe_loss")
    assert usual.high >= 0 and usual.passed is None


def test_intervals_resample_groups():
    trial = Trial.draw()
    by_groups, by_rows = trial.report(), trial.report(groups=None)
    widths = [report.migrated.high - report.migrated.low for report in (by_groups, by_rows)]
    assert widths[0] > 1.5 * widths[1]


def test_backward_map_and_inverse_are_both_scored():
    trial = Trial.draw()
    back = least_squares(trial.b[trial.split.fit], trial.a[trial.split.fit])
    report, plain = trial.report(back=back), trial.report()
    probe, score = LinearProbe.fit(trial.a[trial.split.fit], trial.labels[trial.split.fit]), trial.split.score
    truth = trial.labels[score]
    right = probe.predict(back.apply(trial.b[score])) == truth
    assert report.backwards and report.migrated.value == right.mean()
    assert report.inverse is not None and report.inverse.value == plain.migrated.value
    assert not plain.backwards and plain.inverse is None and not report.below_majority
    assert report.beyond.value == pytest.approx(right.mean() - report.majority)


def test_models_of_different_width_have_no_untranslated_probe():
    report = Trial.draw(width_b=6).report()
    assert report.untranslated is None and report.migrated.value > 0.8
    assert "probe_untranslated" not in {verdict.name for verdict in report.verdicts()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"b": np.zeros((800, 4))}, "same number of rows"),
        ({"b": np.full((900, 4), np.nan)}, "NaN or infinite"),
        ({"b": np.zeros((900, 5))}, "4 dimensions.* 5"),
        ({"labels": np.full(900, "cup")}, r"held-out rows .*\(cup\)"),
        ({"labels": np.full(900, "cat")}, r"labels \['cat'\]"),
        ({"labels": np.arange(900) % 3}, r"labels \[0, 1, 2\]"),
        ({"labels": np.full(800, "cup")}, "'labels'.* 900 rows"),
        ({"groups": np.arange(800)}, r"'groups' .* 900 rows.* 800"),
    ],
)
def test_invalid_report_arguments_are_rejected(changes, message: str):
    with pytest.raises(InputError, match=message):
        Trial.draw().report(**changes)


def test_one_class_in_the_fit_rows_is_rejected():
    trial = Trial.draw()
    labels = trial.labels.copy()
    labels[trial.split.fit] = "cup"
    with pytest.raises(InputError, match="rows to train a probe on"):
        trial.report(labels=labels, translation=least_squares(trial.a, trial.b))
