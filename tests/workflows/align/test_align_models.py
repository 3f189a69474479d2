"""Alignments: summaries and verdicts of related, unrelated and degenerate models, and of controls."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from workflows.align.models import Models, matched, study

from jepatlas.alignment import Latents, PairedLatents, RidgeMap, RobustMap, pca_control, split_rows, time_blocks
from jepatlas.core.files import finite
from jepatlas.core.linear import r2
from jepatlas.workflows.align import Alignment, MapKind, Study, align, fit_map
from jepatlas.workflows.align.align_study import MAIN

MODELS = Models.draw()


def verdicts(found: Alignment) -> dict[str, bool | None]:
    return {verdict.name: verdict.passed for verdict in found.record.verdicts}


@pytest.mark.parametrize("kind", get_args(MapKind))
def test_every_kind_of_map_recovers_a_rotation(kind: MapKind):
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    b = MODELS.a @ turn + 3
    fitted = fit_map(kind, MODELS.a[:80], b[:80])
    assert r2(b[80:], fitted.map_.apply(MODELS.a[80:])) > 0.999


def test_penalty_is_chosen_without_splitting_groups():
    """With copies of a row in both parts, the chosen penalty would be too small."""
    rng = np.random.default_rng(0)
    a, b = (np.repeat(rng.standard_normal((12, 8)), 10, axis=0) for _ in range(2))
    groups = np.repeat(np.arange(12), 10)
    norms = [np.linalg.norm(fit_map("ridge", a, b, given).map_.weight) for given in (groups, None)]
    assert norms[0] < 0.5 * norms[1]


def test_related_models_are_aligned():
    found = align(matched(MODELS.a, MODELS.b, labels=MODELS.label), "ridge", study(160))
    assert found.record.title == "ada → ben"
    assert found.record.summary.startswith("A linear map predicts ben from ada")
    assert "--raw-a and --raw-b" in found.record.summary
    passed = verdicts(found)
    assert passed["r2"] and passed["cka_debiased"] and passed["pairs_beyond_dimensions"]
    assert not {"r2_beyond_pca", "distrusted"} & passed.keys()
    assert found.record.provenance["pairs fitted"] == found.record.provenance["pairs held out"] == 80
    np.testing.assert_allclose(found.map.apply(MODELS.a[:1]), MODELS.b[:1], atol=0.6)


def test_independent_gaussians_are_not_aligned():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((500, 384)) for _ in range(2))
    found = align(matched(a, b), "ridge", study(500, replicates=4))
    assert found.record.summary.startswith("Nothing is aligned")
    assert not any(found.evidence[n].verdict.passed for n in ("r2", "cka_debiased", "dsc", "nos_10", "mutual_knn"))
    assert verdicts(found)["pairs_beyond_dimensions"] is False


def test_models_equal_to_a_control_do_not_exceed_it():
    """The models are the PCA of their raw input."""
    one, noise = study(160), np.random.default_rng(1).standard_normal(MODELS.raw.shape)
    raws = MODELS.raw, MODELS.raw + 0.5 * noise
    a, b = (pca_control(raw, 2, one.split.fit) for raw in raws)
    both = PairedLatents(Latents("ada", a, raw=raws[0]), Latents("ben", b, raw=raws[1]))
    found = align(both, "ridge", one)
    assert list(found.controls) == ["PCA of the raw input", "a random network on the raw input"]
    control = found.controls["PCA of the raw input"]
    assert control["r2"].estimate.value == pytest.approx(found.evidence["r2"].estimate.value, abs=1e-6)
    assert verdicts(found)["r2_beyond_pca"] is False
    assert "R² of PCA of the raw input is not significantly different: " in found.record.summary
    beyond = next(verdict for verdict in found.record.verdicts if verdict.name == "r2_beyond_pca")
    assert "PCA of the raw input" in beyond.advice
    rows = found.record.tables[1].rows
    assert [row[0] for row in rows] == ["the models", *found.controls] and all("shuffled" in row[1] for row in rows)


def test_models_of_unrelated_raw_input_exceed_the_controls():
    noise = np.random.default_rng(1).standard_normal((2, 160, 30))  # unrelated raw inputs
    both = PairedLatents(Latents("ada", MODELS.a, raw=noise[0]), Latents("ben", MODELS.b, raw=noise[1]))
    found = align(both, "ridge", study(160))
    assert verdicts(found)["r2_beyond_pca"] and verdicts(found)["r2_beyond_untrained"]
    assert "R² of a random network on the raw input is lower" in found.record.summary


def test_control_with_higher_r2_is_reported():
    """The models have lost most of their shared input."""
    rng = np.random.default_rng(3)
    raw = rng.standard_normal((160, 4))
    a, b = (raw @ rng.standard_normal((4, 4)) + 2 * rng.standard_normal((160, 4)) for _ in range(2))
    both = PairedLatents(Latents("ada", a, raw=raw), Latents("ben", b, raw=raw))
    found = align(both, "ridge", study(160))
    assert found.evidence["r2"].estimate.high < found.controls["PCA of the raw input"]["r2"].estimate.low
    assert "R² of PCA of the raw input is higher: " in found.record.summary
    beyond = next(verdict for verdict in found.record.verdicts if verdict.name == "r2_beyond_pca")
    assert "worse than PCA of the raw input" in beyond.advice


def test_untrained_latents_replace_the_random_network_control():
    """The models equal their untrained versions, so they do not exceed this control."""
    noise = np.random.default_rng(1).standard_normal((2, 160, 30))
    a, b = (
        Latents(name, h, raw=raw, untrained=h + 1e-9)
        for name, h, raw in (("ada", MODELS.a, noise[0]), ("ben", MODELS.b, noise[1]))
    )
    found = align(PairedLatents(a, b), "ridge", study(160))
    assert list(found.controls) == ["PCA of the raw input", "the same networks, untrained"]
    judged = {one.name: one for one in found.record.verdicts}
    assert judged["r2_beyond_pca"].passed and judged["r2_beyond_untrained"].passed is False
    assert "not from training" in judged["r2_beyond_untrained"].advice
    assert "R² of the same networks, untrained is not significantly different: " in found.record.summary
    one_sided = align(PairedLatents(a, replace(b, untrained=None)), "ridge", study(160, replicates=2))
    beyond = next(one for one in one_sided.record.verdicts if one.name == "r2_beyond_untrained")
    assert list(one_sided.controls)[1] == "a random network on the raw input"
    assert beyond.passed and "'untrained'" in beyond.advice
    alone = align(PairedLatents(replace(a, raw=None), replace(b, raw=None)), "ridge", study(160, replicates=2))
    assert list(alone.controls) == ["the same networks, untrained"]


def test_shape_of_the_map_is_reported_without_threshold():
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    turn[0] *= -np.sign(np.linalg.det(turn))
    white = np.linalg.solve(np.linalg.cholesky(np.cov(MODELS.a.T)), MODELS.a.T).T
    found = align(matched(white, white @ turn.T), "procrustes", study(160, replicates=2))
    shape = {
        one.name: one
        for one in found.record.verdicts
        if one.name in ("orthogonality", "effective_rank", "determinant_sign")
    }
    assert shape["determinant_sign"].value == -1 and "a reflection" in shape["determinant_sign"].advice
    assert shape["effective_rank"].value == pytest.approx(4) and shape["orthogonality"].value < 1e-6
    assert all(one.passed is None for one in shape.values())
    narrow = align(matched(white, white[:, :2]), "ridge", study(160, replicates=2))
    assert "determinant_sign" not in verdicts(narrow) and "orthogonality" in verdicts(narrow)


def test_only_selected_metrics_are_measured():
    found = align(matched(MODELS.a, MODELS.b), "ridge", study(160, replicates=2), metrics=("nos_1",))
    assert set(found.evidence) == {*MAIN, "nos_1"} and len(found.record.tables[0].rows) == len(MAIN) + 1


def test_robust_map_is_also_scored_on_trusted_pairs():
    b = MODELS.b.copy()
    wrong = np.random.default_rng(1).permutation(160)[:48]  # in both parts
    b[wrong] = np.roll(b[wrong], 1, axis=0)
    found = align(matched(MODELS.a, b), "robust", study(160, replicates=4))
    trusted = next(verdict for verdict in found.record.verdicts if verdict.name == "r2_trusted")
    assert found.evidence["r2"].estimate.value < 0.7 and trusted.low > 0.9
    assert trusted.null == found.evidence["r2"].null.mean
    assert "of 80 held-out pairs" in trusted.advice and 45 < trusted.n < 70
    unrelated = np.random.default_rng(3).standard_normal((160, 4))
    alone = align(matched(unrelated, MODELS.b), "robust", study(160, replicates=4))
    none = next(verdict for verdict in alone.record.verdicts if verdict.name == "r2_trusted")
    assert none.n == 80 and none.value < 0.1  # no pair is excluded for unrelated models


def test_mismatched_pairs_are_distrusted_and_listed():
    b = MODELS.b.copy()
    one = study(160)
    wrong = one.split.fit[:20]
    b[wrong] = np.roll(b[wrong], 1, axis=0)
    found = align(matched(MODELS.a, b), "robust", one)
    share = len(found.record.arrays["distrusted"]) / 80
    assert f"{share:.0%} of the fitted pairs" in found.record.summary
    distrusted = next(verdict for verdict in found.record.verdicts if verdict.name == "distrusted")
    assert distrusted.passed is False and distrusted.value == pytest.approx(0.25, abs=0.05)
    assert f"Check {', '.join(map(str, np.sort(wrong)[:3]))}" in distrusted.advice and "…" in distrusted.advice
    assert (
        len(set(wrong) & set(found.record.arrays["distrusted"].tolist())) >= 18
    )  # a mismatched pair may fit by chance
    ids = np.array([f"s{row}" for row in range(160)])
    by_id = align(matched(MODELS.a, b, ids=ids), "robust", replace(one, replicates=2))
    np.testing.assert_array_equal(by_id.record.arrays["distrusted"], ids[found.record.arrays["distrusted"]])


def test_degenerate_latents_fail_verdicts_without_errors():
    """Constant dimensions, rank deficiency, and fewer pairs than dimensions."""
    constant = MODELS.a.copy()
    constant[:, 1] = 7
    assert verdicts(found := align(matched(constant, MODELS.b), "ridge", study(160)))["constant_source"] is False
    assert found.record.summary.startswith("A linear map predicts")
    flat = MODELS.a[:, :1] @ np.ones((1, 3))
    assert verdicts(align(matched(flat, MODELS.b), "ridge", study(160)))["source_rank"] is False
    wide = np.hstack([MODELS.a, np.random.default_rng(0).standard_normal((160, 90))])
    assert verdicts(align(matched(wide, MODELS.b), "ridge", study(160)))["pairs_beyond_dimensions"] is False


@pytest.mark.parametrize("kind", ["ridge", "procrustes", "robust"])
def test_constant_latents_are_not_aligned(kind: MapKind):
    one = study(160, replicates=2)
    found = align(matched(MODELS.a, np.ones((160, 3))), kind, one)
    assert found.record.summary.startswith("Nothing is aligned: ben")
    assert verdicts(found)["constant_target"] is False
    blind = align(matched(np.ones((160, 3)), MODELS.b), kind, one)
    assert blind.record.summary.startswith("Nothing is aligned") and verdicts(blind)["constant_source"] is False


def test_too_few_permutations_or_shifts_are_undecided():
    few = align(matched(MODELS.a, MODELS.b), "ridge", study(160, permutations=4, replicates=4))
    assert few.record.summary.startswith("Undecided")
    assert "p cannot be below 0.2" in few.record.summary and "--permutations 19" in few.record.summary
    rng = np.random.default_rng(0)
    a, b = (np.cumsum(rng.standard_normal((600, 3)), axis=0) for _ in range(2))
    blocks = Study(split_rows(600, rng, blocks=100), time_blocks(600, 100), 100, replicates=4)
    walks = align(matched(a, b), "ridge", blocks)
    assert "5 shifts" in walks.record.summary and verdicts(walks)["r2"] is None
    assert "shifted pairs" in walks.record.tables[0].columns


def test_robust_fit_uses_the_groups():
    """With copies of a row in both parts, the chosen penalty would be too small."""
    rng = np.random.default_rng(0)
    a, b = (np.repeat(rng.standard_normal((12, 8)), 10, axis=0) for _ in range(2))
    groups = np.repeat(np.arange(12), 10)
    expected = RobustMap(RidgeMap(standardise=True)).fit(a, b, groups).map_.weight
    np.testing.assert_array_equal(fit_map("robust", a, b, groups).map_.weight, expected)


def test_map_better_than_chance_can_be_worse_than_the_mean():
    """A rotation cannot shrink. For a target scaled by 0.45 its error is 1.5 times the variance."""
    found = align(matched(MODELS.a, 0.45 * MODELS.a[:, ::-1]), "procrustes", study(160))
    assert found.evidence["r2"].verdict.passed and found.evidence["r2"].estimate.value < 0
    assert "belong together" in found.record.summary


def test_same_seed_gives_same_results():
    first, second = (align(matched(MODELS.a, MODELS.b), "ridge", study(160)) for _ in range(2))
    assert finite(first.record.to_json()["verdicts"]) == finite(second.record.to_json()["verdicts"])


def test_controls_of_the_same_raw_input_predict_the_second_model():
    """Principal components of the input of both models agree with themselves, whatever the models are."""
    rng = np.random.default_rng(0)
    raw = rng.standard_normal((160, 6))
    a, b = np.tanh(2 * raw[:, :3]), np.tanh(2 * raw[:, :3][:, ::-1]) + 0.1 * rng.standard_normal((160, 3))
    pairs = matched(a, b)
    pairs = replace(pairs, a=replace(pairs.a, raw=raw), b=replace(pairs.b, raw=raw))
    found = align(pairs, "ridge", study(160))
    control = next(one for one in found.controls["PCA of the raw input"].values()).estimate
    assert control.value < 0.9 < found.evidence["r2"].estimate.value
