"""A migration record says what the report measured."""

from __future__ import annotations

import numpy as np
import pytest
from alignments.models import Models, matched

from jepatlas.align import LinearProbe, migrate, split_rows
from jepatlas.alignments import fit_map, migrate_between
from jepatlas.base.errors import InputError
from jepatlas.base.records import LinearMap
from jepatlas.base.seeding import numpy_generator

MODELS = Models.draw(rows=240)
BOTH = matched(MODELS.a, MODELS.b, labels=MODELS.label, groups=MODELS.group)


def test_probe_and_map_come_from_rows_that_are_not_held_out():
    found = migrate_between(BOTH, "least-squares", limit=1e6, seed=3)
    rows = split_rows(240, numpy_generator(3, "migrate split"), groups=MODELS.group).fit
    probe, fitted = LinearProbe.fit(MODELS.a[rows], MODELS.label[rows]), fit_map(
        "least-squares", MODELS.a[rows], MODELS.b[rows]
    ).map_  # fmt: skip
    np.testing.assert_allclose(found.map.weight, fitted.weight)
    expected = migrate(probe, fitted, limit=1e6, latents=MODELS.a[rows])
    np.testing.assert_allclose(found.probe.logits(MODELS.b), expected.logits(MODELS.b))


def test_the_record_has_the_accuracies():
    found = migrate_between(BOTH, "ridge", limit=1e6, seed=0)
    verdicts = {verdict.name: verdict for verdict in found.record.verdicts}
    assert verdicts["probe_migrated"].value == found.report.migrated.value > found.report.majority + 0.2
    price = verdicts["probe_price"]
    assert price.value == pytest.approx(found.report.target.value - found.report.migrated.value)
    assert f"right on {found.report.migrated.value:.1%} of held-out rows of ben" in found.record.summary
    assert found.record.provenance["pairs fitted"] + found.record.provenance["pairs held out"] == 240


def test_a_probe_and_a_map_of_ones_own():
    probe = LinearProbe.fit(MODELS.a, MODELS.label)
    through = fit_map("least-squares", MODELS.a, MODELS.b).map_
    found = migrate_between(BOTH, "ridge", limit=1e6, seed=0, probe=probe, fitted=through)
    assert found.map is through
    assert found.report.migrated.n == found.report.source.n == 240 and found.report.target.n < 240
    right = np.mean(found.probe.predict(MODELS.b) == MODELS.label)
    assert found.report.migrated.value == pytest.approx(right) and "of all 240 rows of ben" in found.record.summary
    unknown = "The probe and the map were given: whether they have seen these rows is not known."
    assert found.record.summary.endswith(unknown) and found.record.provenance["not known"] == unknown
    assert found.record.provenance["pairs fitted"] == 0
    names = {verdict.name for verdict in found.record.verdicts}
    assert "condition" in names and "pairs_beyond_dimensions" not in names
    np.testing.assert_allclose(found.probe.logits(MODELS.b), probe.logits(through.invert(1e6).apply(MODELS.b)))


def test_what_was_fitted_here_is_scored_on_held_out_rows():
    probe = LinearProbe.fit(MODELS.a, MODELS.label)
    own_map = migrate_between(BOTH, "ridge", limit=1e6, seed=0, probe=probe)
    assert own_map.report.source.n == 240 and own_map.report.migrated.n == own_map.report.loss.n == 120
    assert "of held-out rows of ben" in own_map.record.summary and "of all 240 rows of ada" in own_map.record.summary
    through = fit_map("ridge", MODELS.a, MODELS.b).map_
    own_probe = migrate_between(BOTH, "ridge", limit=1e6, seed=0, fitted=through)
    assert own_probe.report.source.n == own_probe.report.migrated.n == 120
    assert "The map was given: whether it has seen" in own_probe.record.summary


def test_time_blocks_and_shares():
    series = matched(MODELS.a, MODELS.b, labels=MODELS.label)
    found = migrate_between(series, "ridge", limit=1e6, seed=0, blocks=24, share=0.2)
    assert found.record.provenance["pairs held out"] == 48 and found.record.provenance["pairs fitted"] == 192
    with pytest.raises(InputError, match="by groups or by time blocks"):
        migrate_between(BOTH, "ridge", limit=1e6, seed=0, blocks=24)
    few = matched(MODELS.a[:10], MODELS.b[:10], labels=np.arange(10) % 2)
    judged = {one.name: one for one in migrate_between(few, "ridge", limit=1e6, seed=0, share=0.6).record.verdicts}
    assert judged["pairs_beyond_dimensions"].value == 0 and judged["pairs_beyond_dimensions"].passed is False


def test_refusals():
    with pytest.raises(InputError, match=r"ada has no labels.*--labels"):
        migrate_between(matched(MODELS.a, MODELS.b), "ridge", limit=1e6, seed=0)
    same = matched(MODELS.a, MODELS.b, labels=np.ones(240, int))
    with pytest.raises(InputError, match="Only one class"):
        migrate_between(same, "ridge", limit=1e6, seed=0)
    lost = LinearMap(np.zeros((4, 4)), np.zeros(4), np.zeros(4))
    with pytest.raises(InputError, match="carries 0 of the 4 directions"):
        migrate_between(BOTH, "ridge", limit=1e6, seed=0, fitted=lost)
    rare = MODELS.label.astype("<U9")
    rare[split_rows(240, numpy_generator(0, "migrate split"), groups=MODELS.group).score[0]] = "up"
    with pytest.raises(InputError, match=r"does not know the labels \['up'\]"):
        migrate_between(matched(MODELS.a, MODELS.b, labels=rare, groups=MODELS.group), "ridge", limit=1e6, seed=0)
