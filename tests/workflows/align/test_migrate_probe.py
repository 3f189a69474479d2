"""Migration of probes: splits of rows, records, failures and rejected input."""

from __future__ import annotations

import re

import numpy as np
import pytest
from workflows.align.models import Models, matched

from jepatlas.alignment.probes import LinearProbe, distil, migrate
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Verdict
from jepatlas.workflows.align import Migration, fit_map, migrate_between
from jepatlas.workflows.align.probe_split import halve, probe_split

MODELS = Models.draw(rows=240)
BOTH = matched(MODELS.a, MODELS.b, labels=MODELS.label, groups=MODELS.group)


def verdicts_of(found: Migration) -> dict[str, Verdict]:
    return {verdict.name: verdict for verdict in found.record.verdicts}


def test_probe_and_map_are_fitted_on_different_halves():
    found = migrate_between(BOTH, "least-squares", limit=1e6, seed=3, through="inverse")
    probed, mapped, _ = probe_split(BOTH, MODELS.label, (), blocks=None, share=0.5, seed=3)
    assert not set(MODELS.group[mapped]) & set(MODELS.group[probed])
    probe = LinearProbe.fit(MODELS.a[probed], MODELS.label[probed])
    fitted = fit_map("least-squares", MODELS.a[mapped], MODELS.b[mapped]).map_
    np.testing.assert_allclose(found.map.weight, fitted.weight)
    expected = migrate(probe, fitted, limit=1e6, latents=MODELS.a[probed])
    np.testing.assert_array_equal(found.source.logits(MODELS.a), probe.logits(MODELS.a))
    np.testing.assert_allclose(found.probe.logits(MODELS.b), expected.logits(MODELS.b))


def test_record_contains_the_measured_accuracies():
    found = migrate_between(BOTH, "ridge", limit=1e6, seed=1)
    verdicts = verdicts_of(found)
    _, mapped, held = probe_split(BOTH, MODELS.label, (), blocks=None, share=0.5, seed=1)
    head = distil(found.source, MODELS.a[mapped], MODELS.b[mapped], MODELS.group[mapped])  # on the pairs of the map
    assert verdicts["probe_distilled"].value == np.mean(head.predict(MODELS.b[held]) == MODELS.label[held])
    assert verdicts["probe_migrated"].value == found.report.migrated.value > found.report.majority + 0.2
    price = verdicts["probe_price"]
    assert price.value == pytest.approx(found.report.target.value - found.report.migrated.value)
    assert f"accuracy {found.report.migrated.value:.1%} " in found.record.summary
    provenance = found.record.provenance
    assert (
        provenance["pairs fitted"] + provenance["rows the probe was trained on"] + provenance["pairs held out"] == 240
    )


CHANCE = "The migration fails: the map predicts ben from ada no better"


def test_probes_migrate_between_related_models_only():
    """Fitted on the same rows, probe and map of independent models would reach 75% on held-out rows."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((1000, 60)), rng.standard_normal((1000, 40))
    labels = (b[:, 0] > 0).astype(int)
    found = migrate_between(matched(a, b, labels=labels), "least-squares", limit=1e6, seed=0)
    assert abs(found.report.migrated.value - 0.5) < 0.1 and verdicts_of(found)["map_r2"].passed is False
    assert found.record.summary.startswith(CHANCE) and found.failure.startswith(CHANCE)
    related = b @ rng.standard_normal((40, 60)) + 0.1 * a
    true = migrate_between(matched(related, b, labels=labels), "least-squares", limit=1e6, seed=0)
    assert true.report.migrated.value > 0.85 and verdicts_of(true)["map_r2"].passed
    assert verdicts_of(true)["map_r2"].value > 0.9 and verdicts_of(found)["map_r2"].value < 0.1
    assert not true.failure


def test_probes_migrate_to_a_narrower_related_target_only():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((1000, 100)), rng.standard_normal((1000, 16))
    labels = (b[:, 0] > 0).astype(int)
    with pytest.raises(InputError, match=rf"^{CHANCE} .*16 of the 100"):
        migrate_between(matched(a, b, labels=labels), "least-squares", limit=1e6, seed=0, through="inverse")
    found = migrate_between(matched(a, b, labels=labels), "least-squares", limit=1e6, seed=0)
    assert (
        found.failure.startswith(CHANCE) and found.report.inverse is None
    )  # the map carries too few directions to score its inverse
    related = b @ rng.standard_normal((16, 100)) + 0.1 * a
    true = migrate_between(matched(related, b, labels=labels), "least-squares", limit=1e6, seed=0)
    assert true.report.migrated.value > 0.85 and verdicts_of(true)["map_r2"].passed


def test_given_map_of_other_models_fails():
    rng = np.random.default_rng(1)
    a, b, other = (rng.standard_normal((200, 4)) for _ in range(3))
    through = fit_map("least-squares", a, other).map_
    both = matched(a, b, labels=(a[:, 0] > 0).astype(int))
    found = migrate_between(both, "ridge", limit=1e6, seed=0, fitted=through)
    assert verdicts_of(found)["map_r2"].passed is False and found.record.summary.startswith("The migration fails")


def test_given_probe_and_map_are_scored_on_all_rows():
    probe = LinearProbe.fit(MODELS.a, MODELS.label)
    through = fit_map("least-squares", MODELS.a, MODELS.b).map_
    found = migrate_between(BOTH, "ridge", limit=1e6, seed=0, probe=probe, fitted=through)
    assert found.map is through
    assert found.report.migrated.n == found.report.source.n == 240 and found.report.target.n < 240
    right = np.mean(found.probe.predict(MODELS.b) == MODELS.label)
    assert found.report.migrated.value == pytest.approx(right) and "on all 240 rows of ben" in found.record.summary
    unknown = found.record.provenance["not known"]
    assert "probe and the map were given" in unknown and found.record.summary.endswith(unknown)
    assert found.record.provenance["pairs fitted"] == 0
    names = {verdict.name for verdict in found.record.verdicts}
    assert "condition" in names and "pairs_beyond_dimensions" not in names
    np.testing.assert_allclose(found.probe.logits(MODELS.b), probe.logits(through.invert(1e6).apply(MODELS.b)))


def shrunk(noise: float = 0.3, width: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two noisy models of three strong and nine weak directions. The inverse of a ridge map amplifies the weak ones."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((900, width)) * np.where(np.arange(width) < 3, 1, 0.02)
    a, b = (
        z @ np.linalg.qr(rng.standard_normal((width, width)))[0] + noise * rng.standard_normal(z.shape)
        for _ in range(2)
    )
    return a, b, np.array(["left", "right"])[(z[:, 0] > 0).astype(int)]


def test_backward_map_outperforms_an_ill_conditioned_inverse():
    a, b, labels = shrunk()
    both = matched(a, b, labels=labels)
    found = migrate_between(both, "ridge", limit=1e6, seed=0)
    mapped = probe_split(both, labels, (), blocks=None, share=0.5, seed=0).map
    back = fit_map("ridge", b[mapped], a[mapped]).map_
    assert found.back is not None
    np.testing.assert_allclose(found.back.weight, back.weight)
    np.testing.assert_allclose(found.probe.logits(b), found.source.logits(back.apply(b)))
    inverse = migrate_between(both, "ridge", limit=1e6, seed=0, through="inverse")
    assert inverse.back is None and found.report.inverse is not None and inverse.report.inverse is None
    assert found.report.inverse.value == inverse.report.migrated.value
    assert found.report.migrated.value > inverse.report.migrated.value + 0.1
    assert f"{inverse.report.migrated.value:.1%} through the inverse map" in found.record.summary
    assert verdicts_of(found)["probe_inverse"].value == inverse.report.migrated.value
    assert "probe_inverse" not in verdicts_of(inverse)
    tight = (migrate_between(both, "ridge", limit=3, seed=0, through=way) for way in ("backwards", "inverse"))
    assert [verdicts_of(one)["condition"].passed for one in tight] == [
        None,
        False,
    ]  # the limit applies to the inverse only
    assert found.record.provenance["the probe went through"] == "a map fitted backwards"
    with pytest.raises(InputError, match="--through backwards"):
        migrate_between(both, "ridge", limit=1e6, seed=0, through="backwards", fitted=found.map)


def test_migrated_probe_below_the_majority_class_fails():
    """The classes differ along a weak direction of the map, where its inverse amplifies noise."""
    rng = np.random.default_rng(2)
    z = rng.standard_normal((900, 6))
    labels = np.where(z[:, 5] > 0.9, "up", np.where(z[:, 5] < -0.9, "down", "level"))  # the majority class is level
    b = np.hstack(
        [z[:, :5] + 0.05 * rng.standard_normal((900, 5)), 0.001 * z[:, 5:] + 0.1 * rng.standard_normal((900, 1))]
    )
    found = migrate_between(matched(z, b, labels=labels), "least-squares", limit=1e6, seed=0, through="inverse")
    assert verdicts_of(found)["map_r2"].passed and found.report.migrated.high < found.report.majority
    assert found.report.source.low > found.report.majority, "the source probe reads its own model well"
    assert found.failure.startswith("The migration fails: on ben the migrated probe is no better than")
    assert found.record.summary.startswith(found.failure)
    assert "fitted backwards" in found.remedy and "κ = " in found.remedy and "more pairs" not in found.remedy
    assert found.remedy in verdicts_of(found)["probe_migrated"].advice
    blind = migrate_between(matched(z, b, labels=labels), "least-squares", limit=1e6, seed=0)
    assert (
        blind.failure and "Fit the map on more pairs" in blind.remedy
    )  # through the backward map the probe predicts the majority class


def test_fitted_probes_and_maps_are_scored_on_held_out_rows():
    probe = LinearProbe.fit(MODELS.a, MODELS.label)
    own_map = migrate_between(BOTH, "ridge", limit=1e6, seed=0, probe=probe)
    assert own_map.report.source.n == 240 and own_map.report.migrated.n == own_map.report.loss.n == 120
    assert "on held-out rows of ben" in own_map.record.summary and "on all 240 rows of ada" in own_map.record.summary
    through = fit_map("ridge", MODELS.a, MODELS.b).map_
    own_probe = migrate_between(BOTH, "ridge", limit=1e6, seed=0, fitted=through)
    assert own_probe.report.source.n == own_probe.report.migrated.n == 120
    assert "The map was given; it may have" in own_probe.record.summary


def test_time_blocks_and_shares():
    series = matched(MODELS.a, MODELS.b, labels=MODELS.label)
    found = migrate_between(series, "ridge", limit=1e6, seed=0, blocks=24, share=0.2)
    assert found.record.provenance["pairs held out"] == 48
    assert found.record.provenance["pairs fitted"] == found.record.provenance["rows the probe was trained on"] == 96
    assert verdicts_of(found)["map_r2"].passed is None  # 10 blocks allow too few shifts
    with pytest.raises(InputError, match="by groups or by time blocks"):
        migrate_between(BOTH, "ridge", limit=1e6, seed=0, blocks=24)
    few = matched(MODELS.a[:16], MODELS.b[:16], labels=np.arange(16) % 2)
    short = verdicts_of(migrate_between(few, "ridge", limit=1e6, seed=0))["pairs_beyond_dimensions"]
    assert short.value == 0 and short.passed is False


def test_rows_without_groups_are_halved_by_class():
    """An unstratified split would often leave one of the four rare classes out of the probe's half."""
    labels = np.concatenate([np.repeat([1, 2, 3, 4], [2, 3, 4, 5]), np.zeros(226, int)])
    rows = np.arange(0, 240)
    for seed in range(5):
        mapped, probed = halve(rows, labels, None, seed)
        np.testing.assert_array_equal(np.sort(np.concatenate([mapped, probed])), rows)
        counts = np.bincount(labels)
        np.testing.assert_array_equal(np.bincount(labels[probed]), (counts + 1) // 2)
    mapped, probed = halve(rows, rows, None, 0)
    assert len(mapped) == len(probed) == 120  # with a label per row, the map still gets half of the pairs


def test_probe_and_map_of_other_widths_are_rejected():
    rng = np.random.default_rng(0)
    both = matched(*rng.standard_normal((2, 80, 6)), labels=np.arange(80) % 2)
    wide = rng.standard_normal((80, 8))
    map8, map6 = (fit_map("least-squares", h, h).map_ for h in (wide, wide[:, :6]))
    probe8, probe6 = (LinearProbe.fit(h, np.arange(80) % 2) for h in (wide, wide[:, :6]))
    of_map = "^The map .*8 to 8 .*ada .*6 .*ben .*6"
    of_probe = "^The probe .*8 .*ada .*6"
    for probe, fitted, message in (
        (None, map8, of_map),
        (probe6, map8, of_map),
        (probe8, map6, of_probe),
        (probe8, None, of_probe),
        (probe8, map8, of_probe),
    ):
        with pytest.raises(InputError, match=message):
            migrate_between(both, "ridge", limit=1e6, seed=0, probe=probe, fitted=fitted)


def test_invalid_input_is_rejected():
    with pytest.raises(InputError, match=r"ada has no labels.*--labels"):
        migrate_between(matched(MODELS.a, MODELS.b), "ridge", limit=1e6, seed=0)
    same = matched(MODELS.a, MODELS.b, labels=np.ones(240, int))
    with pytest.raises(InputError, match="only one class"):
        migrate_between(same, "ridge", limit=1e6, seed=0)
    lost = LinearMap(np.zeros((4, 4)), np.zeros(4), np.zeros(4))
    with pytest.raises(InputError, match="0 of the 4"):
        migrate_between(BOTH, "ridge", limit=1e6, seed=0, fitted=lost)
    with pytest.raises(InputError, match="only 1 group"):
        two = matched(MODELS.a, MODELS.b, labels=MODELS.label, groups=np.arange(240) // 120)
        migrate_between(two, "ridge", limit=1e6, seed=0)
    rare = MODELS.label.astype("<U9")
    rare[MODELS.group == 3] = "up"  # time blocks are not stratified by class
    with pytest.raises(InputError, match=r"labels \['up'\].*--seed"):
        migrate_between(matched(MODELS.a, MODELS.b, labels=rare), "ridge", limit=1e6, seed=1, blocks=8)
    own = matched(MODELS.a, MODELS.b, labels=MODELS.group, groups=MODELS.group)
    with pytest.raises(InputError, match=r"at least 2 classes.* 8 held-out rows"):
        migrate_between(own, "ridge", limit=1e6, seed=0)
    holes = np.where(MODELS.group == 3, np.nan, MODELS.label == "left")
    with pytest.raises(InputError, match="8 labels of the rows are NaN"):
        migrate_between(matched(MODELS.a, MODELS.b, labels=holes, groups=MODELS.group), "ridge", limit=1e6, seed=0)


def objects(counts: dict[str, int], rows: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Labels and groups of the given number of objects per class, with several shuffled rows each."""
    names = [(kind, f"{kind}{number}") for kind, count in counts.items() for number in range(count)]
    shuffled = np.random.default_rng(5).permutation(np.repeat(np.array(names), rows, axis=0))
    return shuffled[:, 0], shuffled[:, 1]


@pytest.mark.parametrize(("given", "needed"), [((), 3), (("map",), 2), (("probe",), 2)])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_groups_are_split_by_class(given: tuple[str, ...], needed: int, share: float):
    counts = {"car": 9, "animal": 7, "plane": 3, "mug": 2, "chair": 1}
    labels, groups = objects(counts)
    both = matched(np.zeros((132, 2)), np.zeros((132, 2)), labels=labels, groups=groups)
    drawn = set()
    for seed in range(4):
        found = probe_split(both, labels, given, blocks=None, share=share, seed=seed)
        again = probe_split(both, labels, given, blocks=None, share=share, seed=seed)
        assert all(np.array_equal(one, other) for one, other in zip(found, again, strict=True))
        split = found if not given else found[1:]
        np.testing.assert_array_equal(np.sort(np.concatenate(split)), np.arange(132))
        owners = [set(groups[rows]) for rows in split]
        assert sum(map(len, owners)) == sum(counts.values())  # each object is in exactly one part
        for kind, count in counts.items():
            inside = [kind in labels[rows] for rows in split]
            assert sum(inside) == min(count, needed)  # every class is in as many parts as possible
            assert "probe" in given or inside[0]  # and first of all in the probe's part
        assert abs(len(owners[-1]) - share * sum(counts.values())) < len(counts)
        drawn.add(frozenset(owners[-1]))
    assert len(drawn) > 1


def test_groups_are_stratified_by_their_majority_label():
    """Four groups of each class, each with one row of the other class; half of each class is held out."""
    groups = np.arange(64) // 8
    most = np.array(["left", "right"])[groups % 2]
    labels = np.where(np.arange(64) % 8 == groups, np.array(["right", "left"])[groups % 2], most)
    both = matched(np.zeros((64, 2)), np.zeros((64, 2)), labels=labels, groups=groups)
    for seed in range(4):
        sizes = [
            np.unique(most[rows], return_counts=True)[1].tolist()
            for rows in probe_split(both, labels, (), blocks=None, share=0.5, seed=seed)
        ]
        assert sizes == [[8, 8], [8, 8], [16, 16]]


def test_held_out_rows_with_unknown_labels_are_not_scored():
    held = probe_split(BOTH, MODELS.label, (), blocks=None, share=0.5, seed=0).score
    rare = MODELS.label.astype("<U9")
    rare[held[0]] = "up"  # one row of a group, whose majority label is unchanged
    found = migrate_between(matched(MODELS.a, MODELS.b, labels=rare, groups=MODELS.group), "ridge", limit=1e6, seed=0)
    right = found.probe.predict(MODELS.b[held[1:]]) == MODELS.label[held[1:]]
    assert found.report.migrated.value == pytest.approx(right.mean()) and found.report.migrated.n == len(held) - 1
    assert re.search(r"1 of 120 held-out rows are not scored.*\['up'\]", found.record.summary)
    assert found.record.provenance["held-out rows not scored"] == 1
    assert "not scored" not in migrate_between(BOTH, "ridge", limit=1e6, seed=0).record.summary
