"""Atlases of charts of one known state: translations, added charts, attached probes and rejected input."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from gaussian_worlds import rotation
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.alignment.atlas.atlas_folder import load_atlas, save_atlas
from jepatlas.alignment.atlas.chart import Attachment, CertificateSummary, Chart, ChartLatents, standardiser
from jepatlas.alignment.atlas.chart_atlas import Atlas, attach_probe, probe_for, probe_of
from jepatlas.alignment.probes.linear_probe import LinearProbe
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate

EXACT = CertificateSummary(Estimate(0.01, 0.005, 0.02, 1000), identified=True)


def gaussian(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, dim))


def stretched(dim: int, seed: int) -> np.ndarray:
    """An invertible matrix far from orthogonal."""
    return rotation(dim, seed) @ np.diag(np.linspace(0.2, 5, dim)) @ rotation(dim, seed + 50)


def three_charts(z: np.ndarray) -> list[ChartLatents]:
    """Two uncertified linear images of the state and one certified rotation of it."""
    states = np.arange(len(z))
    return [
        ChartLatents("ada", z @ stretched(z.shape[1], 1) + 4, states),
        ChartLatents("ben", z @ stretched(z.shape[1], 2) - 1, states),
        ChartLatents("cem", z @ rotation(z.shape[1], 3), states, EXACT),
    ]


def white_states(rows: int, dim: int) -> np.ndarray:
    """States with identity covariance, so that certified and whitened charts are exact rotations of each other."""
    z = gaussian(rows, dim)
    z = z - z.mean(0)
    return z @ np.linalg.inv(np.atleast_2d(np.real(scipy.linalg.sqrtm(np.cov(z.T)))))


def test_every_pair_of_charts_translates_exactly():
    charts = three_charts(white_states(200, 4))
    atlas = Atlas.build(charts)
    for a, b in itertools.permutations(charts, 2):
        np.testing.assert_allclose(atlas.translate(a.latents, a.name, b.name), b.latents, atol=1e-8)
        np.testing.assert_allclose(atlas.map(a.name, b.name).apply(a.latents), b.latents, atol=1e-8)
    assert all(verdict.value == 4 and verdict.passed is None for verdict in atlas.verdicts())
    assert atlas.width == 4 and len(atlas.anchors.ids) == 200


def test_frame_maps_are_orthogonal_and_certified_charts_are_only_centred():
    charts = three_charts(white_states(200, 3))
    atlas = Atlas.build(charts)
    for chart in atlas.charts:
        np.testing.assert_allclose(chart.to_frame.weight.T @ chart.to_frame.weight, np.eye(3), atol=1e-12)
    np.testing.assert_array_equal(atlas.chart("cem").standardiser.weight, np.eye(3))
    np.testing.assert_allclose(atlas.chart("cem").standardiser.x_mean, charts[2].latents.mean(0))
    np.testing.assert_allclose(np.cov(atlas.chart("ada").standardiser.apply(charts[0].latents).T), np.eye(3), atol=1e-9)


@pytest.mark.parametrize(
    ("identified", "whitened", "white"), [(True, False, False), (True, True, True), (False, False, True)]
)
def test_charts_are_whitened_unless_identified_in_raw_coordinates(identified: bool, whitened: bool, white: bool):
    summary = CertificateSummary(EXACT.bound, identified, whitened)
    h = gaussian(100, 2) * [1, 3]
    found = np.cov(standardiser(ChartLatents("a", h, np.arange(100), summary)).apply(h).T)
    np.testing.assert_allclose(found, np.eye(2) if white else np.cov(h.T), atol=1e-9)


@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), st.floats(1e-3, 1e3), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_charts_of_any_width_and_scale_translate(widths: list[int], scale: float, seed: int):
    """Each chart holds the first coordinates of the state. Translation to the same or a smaller width is exact."""
    z = white_states(120, max(widths))
    charts = [
        ChartLatents(f"c{k}", scale * z[:, :d] @ stretched(d, seed + k), np.arange(120)) for k, d in enumerate(widths)
    ]
    atlas = Atlas.build(charts)
    for a, b in itertools.permutations(charts, 2):
        if a.latents.shape[1] >= b.latents.shape[1]:
            translated = atlas.translate(a.latents, a.name, b.name)
            np.testing.assert_allclose(translated, b.latents, atol=1e-5 * scale)
        round_trip = atlas.map(a.name, a.name).apply(a.latents)
        np.testing.assert_allclose(round_trip, a.latents, atol=1e-8 * scale)


def test_added_chart_leaves_the_others_unchanged_and_translates_to_all():
    z = white_states(400, 3)
    old = three_charts(z)
    atlas = Atlas.build(old, anchors=50)
    rows = np.r_[atlas.anchors.ids[:20], 500 + np.arange(2000)]
    seen = np.concatenate([z[atlas.anchors.ids[:20]], gaussian(2000, 3, seed=7)])
    dan = ChartLatents("dan", seen @ stretched(3, 9), rows, provenance={"seed": 4})
    grown = atlas.add(dan)
    assert grown.charts[:3] == atlas.charts and grown.anchors is atlas.anchors  # the same objects
    assert atlas.names == ["ada", "ben", "cem"] and grown.names == ["ada", "ben", "cem", "dan"]
    assert grown.chart("dan").states == 20 and grown.chart("dan").provenance == {"seed": 4}
    for chart in old:
        translated = grown.translate(chart.latents, chart.name, "dan")
        error = np.mean((translated - z @ stretched(3, 9)) ** 2) / np.var(z @ stretched(3, 9))
        assert error < 0.01  # the whitening is estimated from other states than the atlas': √(1/2000)


def test_adding_a_certified_chart_needs_more_anchors_than_dimensions():
    z = white_states(400, 8)
    charts = [ChartLatents(name, z @ rotation(8, k), np.arange(400), EXACT) for k, name in enumerate(["ada", "ben"])]
    atlas = Atlas.build(charts, anchors=9)
    grown = atlas.add(ChartLatents("cem", z[atlas.anchors.ids] @ rotation(8, 5), atlas.anchors.ids, EXACT))
    np.testing.assert_allclose(grown.translate(charts[0].latents, "ada", "cem"), z @ rotation(8, 5), atol=1e-8)
    few = Atlas.build(charts, anchors=8)
    loose = few.add(ChartLatents("cem", z[few.anchors.ids] @ rotation(8, 5), few.anchors.ids, EXACT))
    verdict = loose.verdicts()[-1]
    assert verdict.name == "cem.tied" and verdict.value == 7 and verdict.passed is False
    assert "more than 8" in verdict.advice


def test_added_chart_wider_than_the_frame_fails_its_verdict():
    z = white_states(300, 4)
    atlas = Atlas.build([ChartLatents(n, z[:, :2] @ rotation(2, k), np.arange(300)) for k, n in enumerate("ab")])
    grown = atlas.add(ChartLatents("wide", z @ stretched(4, 1), np.arange(300)))
    translated = grown.translate(z @ stretched(4, 1), "wide", "a")
    np.testing.assert_allclose(translated, z[:, :2] @ rotation(2, 0), atol=1e-5)
    verdict = grown.verdicts()[-1]
    assert verdict.passed is False and "the frame has 2 dimensions" in verdict.advice


def test_charts_without_shared_states_translate_through_a_third_chart():
    z = gaussian(3000, 3)
    ids = [np.arange(1000), np.arange(500, 2500), np.arange(2000, 3000)]
    turns = [rotation(3, k) for k in range(3)]
    charts = [ChartLatents(n, z[own] @ turn + 1, own, EXACT) for n, own, turn in zip("abc", ids, turns, strict=True)]
    atlas = Atlas.build(charts, anchors=300)
    assert not np.intersect1d(ids[0], ids[2]).size
    np.testing.assert_allclose(atlas.translate(z @ turns[0] + 1, "a", "c"), z @ turns[2] + 1, atol=1e-8)
    # charts are whitened on different states, so the maps are rotations only up to sampling error
    loose = Atlas.build([ChartLatents(c.name, c.latents @ stretched(3, 8), c.ids) for c in charts])
    translated, truth = (
        loose.translate((z @ turns[0] + 1) @ stretched(3, 8), "a", "c"),
        (z @ turns[2] + 1) @ stretched(3, 8),
    )
    assert np.mean((translated - truth) ** 2) / np.var(truth) < 0.02


def test_anchors_are_the_most_shared_states_evenly_spaced():
    z = white_states(100, 2)
    own = [np.arange(100), np.arange(100), np.arange(40, 60)]
    charts = [ChartLatents(n, z[ids] @ rotation(2, k), ids) for k, (n, ids) in enumerate(zip("abc", own, strict=True))]
    anchors = Atlas.build(charts, anchors=30).anchors
    assert set(range(40, 60)) < set(anchors.ids.tolist()) and len(set(anchors.ids.tolist())) == 30
    assert anchors.ids.min() == 0 and anchors.ids.max() == 99
    assert Atlas.build(charts, anchors=10).anchors.ids.tolist() == [40, 42, 44, 46, 48, 51, 53, 55, 57, 59]
    seen = Atlas.build(charts).chart("a").into.apply(z @ rotation(2, 0))
    np.testing.assert_allclose(Atlas.build(charts[:2]).anchors.coordinates, seen, atol=1e-6)


def test_constant_directions_fail_a_verdict_and_translate_to_their_mean():
    z = white_states(200, 3)
    flat = np.c_[z[:, :2], np.full(200, 7.0)]
    atlas = Atlas.build([ChartLatents("flat", flat, np.arange(200)), ChartLatents("full", z, np.arange(200))])
    np.testing.assert_allclose(atlas.translate(z, "full", "flat"), flat, atol=1e-6)
    tied = {verdict.name: verdict for verdict in atlas.verdicts()}
    assert tied["flat.tied"].value == 2 and tied["flat.tied"].passed is False
    assert "do not vary" in tied["flat.tied"].advice


@pytest.mark.parametrize("seed", range(5))
def test_constant_directions_off_the_axes_do_not_amplify_noise(seed: int):
    z = white_states(200, 3)
    flat = z[:, :2] @ gaussian(2, 3, seed)
    atlas = Atlas.build([ChartLatents("flat", flat, np.arange(200)), ChartLatents("full", z, np.arange(200))])
    translated = atlas.translate(z + 10 * gaussian(200, 3, seed=9), "full", "flat")
    assert np.linalg.svd(translated - translated.mean(0), compute_uv=False)[2] < 1e-6


def normalised(z: np.ndarray, seed: int, scale: np.ndarray | None = None) -> np.ndarray:
    """The output of a layer normalisation: h = γ n + β, with Σ n = 0."""
    inner = z @ stretched(z.shape[1], seed)
    unit = (inner - inner.mean(1, keepdims=True)) / inner.std(1, keepdims=True)
    rng = np.random.default_rng(seed)
    return unit * (rng.uniform(0.4, 2, z.shape[1]) if scale is None else scale) + rng.normal(size=z.shape[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_direction_removed_by_layer_normalisation_is_not_loose(dtype: type):
    z = white_states(800, 32)
    charts = [ChartLatents(n, normalised(z, k).astype(dtype), np.arange(800)) for k, n in enumerate("ab")]
    graded = normalised(z, 5, np.geomspace(1e-3, 1, 32)).astype(dtype)
    atlas = Atlas.build([*charts, ChartLatents("graded", graded, np.arange(800))])
    atlas = atlas.add(ChartLatents("new", normalised(z, 7).astype(dtype), np.arange(800)))
    assert len(atlas.verdicts()) == 4
    for chart, verdict in zip(atlas.charts, atlas.verdicts(), strict=True):
        assert chart.normed and chart.full == chart.tied == 31
        assert verdict.value == verdict.null == 31 and verdict.passed is None and verdict.threshold is None
        assert "a final layer normalisation" in verdict.advice


def test_normalised_chart_can_have_other_loose_directions():
    """Fewer than 31 of 32 directions are tied if too few states are shared or if the other charts are narrower."""
    z = white_states(800, 32)
    wide, other = normalised(z, 0), normalised(z, 1)
    few = Atlas.build([ChartLatents("a", wide, np.arange(800)), ChartLatents("b", other[:20], np.arange(20))])
    verdict = few.verdicts()[0]
    assert verdict.value == 19 and verdict.threshold == 31 and verdict.passed is False
    assert verdict.advice.startswith("12 of 31") and "more than 31" in verdict.advice
    narrow = ChartLatents("narrow", z[:, :9] @ stretched(9, 2), np.arange(800))
    blind = Atlas.build([ChartLatents("a", wide, np.arange(800)), narrow]).verdicts()[0]
    assert blind.value == 9 and blind.passed is False and "the other charts" in blind.advice
    # a chart with all 32 directions has one that the normalised chart does not carry
    whole = Atlas.build([ChartLatents("a", wide, np.arange(800)), ChartLatents("whole", z, np.arange(800))])
    assert not whole.chart("whole").normed and whole.verdicts()[0].passed is None
    assert whole.verdicts()[1].value == 31 and whole.verdicts()[1].passed is False


def test_directions_missing_for_other_reasons_are_loose():
    """A random direction, a constant column and a repeated column are not mistaken for a layer normalisation."""
    z = white_states(500, 16)
    away = np.linalg.qr(gaussian(16, 1))[0]
    flat, repeated = z.copy(), z.copy()
    flat[:, 3], repeated[:, 4] = 2.0, z[:, 5]
    both = normalised(z, 0)
    both[:, 3] = 2.0
    for lacking, tied in ((z - z @ away @ away.T, 15), (flat, 15), (repeated, 15), (both, 15)):
        atlas = Atlas.build([ChartLatents("a", lacking, np.arange(500)), ChartLatents("b", z, np.arange(500))])
        verdict = atlas.verdicts()[0]
        assert not atlas.chart("a").normed and verdict.value == tied and verdict.threshold == 16
        assert verdict.passed is False and "do not vary there" in verdict.advice


def test_rounding_noise_in_a_constant_direction_is_not_amplified():
    nearly = LinearMap(np.diag([1.0, 1e-12]), np.zeros(2), np.zeros(2))
    chart = Chart("a", nearly, LinearMap(np.eye(2), np.zeros(2), np.zeros(2)), 1, 10)
    np.testing.assert_allclose(chart.out.weight, np.diag([1.0, 0.0]))


def test_text_ids_and_float32_latents():
    z = white_states(60, 2)
    names = np.array([f"episode-{i}/é" for i in range(60)], dtype=object)
    charts = [ChartLatents(n, (z @ rotation(2, k)).astype(np.float32), names) for k, n in enumerate("ab")]
    atlas = Atlas.build(charts)
    np.testing.assert_allclose(atlas.translate(charts[0].latents, "a", "b"), charts[1].latents, atol=1e-5)


def test_attachments_belong_to_their_chart():
    atlas = Atlas.build(three_charts(white_states(50, 2)))
    grown = atlas.attach("ben", Attachment("probe", "colour", b"one")).attach(
        "ben", Attachment("energy", "iqe", b"two")
    )
    assert grown.chart("ben").attachment("probe", "colour").data == b"one"
    assert len(grown.attach("ben", Attachment("probe", "colour", b"new")).chart("ben").attachments) == 2
    assert atlas.chart("ben").attachments == ()
    with pytest.raises(InputError, match=r"no probe 'shape'.*probe 'colour', energy 'iqe'"):
        grown.chart("ben").attachment("probe", "shape")


def chart(name: str = "a", rows: int = 10, start: int = 0) -> ChartLatents:
    return ChartLatents(name, gaussian(rows, 2), np.arange(start, start + rows))


def constant(name: str, certificate: CertificateSummary | None = None) -> ChartLatents:
    return ChartLatents(name, np.full((10, 2), 0.3), np.arange(10), certificate)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Atlas.build([chart()]), "at least 2 charts"),
        (lambda: Atlas.build([chart(), chart()]), "must be unique"),
        (lambda: Atlas.build([chart("Ada"), chart("ada")]), "Ada and ada"),
        (lambda: Atlas.build([chart(), chart("b", start=50)]), r"\(a\) and .* \(b\)"),
        (lambda: Atlas.build([chart(), chart("b", rows=1)]), "at least 2 states"),
        (lambda: Atlas.build([chart(), chart("b")], anchors=1), "'anchors'.* 2"),
        (lambda: Atlas.build([chart(), ChartLatents("b", gaussian(2, 2), np.array(["0", "1"]))]), "Some ids"),
        (lambda: ChartLatents("a/../b", gaussian(2, 2), np.arange(2)), r"'a/\.\./b'"),
        (lambda: ChartLatents("", gaussian(2, 2), np.arange(2)), "cannot be the name"),
        (lambda: ChartLatents("a", gaussian(3, 2), np.array([1, 5, 5])), "more than once: 5"),
        (lambda: ChartLatents("a", gaussian(3, 2), np.arange(2)), r"3 rows.* ids .*\(2,\)"),
        (lambda: ChartLatents("a", gaussian(3, 2), np.arange(3), groups=np.arange(4)), "groups"),
        (lambda: ChartLatents("a", gaussian(3, 2), np.arange(3) / 2), r"row 1 .*0\.5"),
        (lambda: ChartLatents("a", gaussian(3, 2)[0], np.arange(3)), r"\(N, d\)"),
        (lambda: ChartLatents("a", np.array([[1.0], [math.nan]]), np.arange(2)), "latents of a.*row 1"),
        (lambda: Atlas.build([chart(), chart("b")]).add(chart("b")), "must be unique"),
        (lambda: Atlas.build([chart(), chart("b")]).add(chart("c", start=9)), "1 of the 10 anchors"),
        (lambda: Atlas.build([chart(), constant("b")]), "latents of 'b' are the same"),
        (lambda: Atlas.build([chart(), constant("b", EXACT)]), "latents of 'b' are the same"),
        (lambda: Atlas.build([chart(), chart("b")]).add(constant("c")), "latents of 'c' are the same"),
        (lambda: Atlas.build([chart(), chart("bern")]).chart("ben"), "Did you mean 'bern'"),
        (
            lambda: Atlas.build([chart(), chart("b")]).translate(gaussian(3, 4), "a", "b"),
            r"\(n, 2\), .*\(3, 4\)",
        ),
        (lambda: Attachment("probe", "../evil", b""), "evil"),
    ],
)
def test_invalid_input_is_rejected(make, message: str):
    with pytest.raises(InputError, match=message):
        make()


def test_saved_probe_is_read_from_the_other_chart(tmp_path: Path):
    z = np.random.default_rng(0).standard_normal((600, 3))
    labels = np.array(["left", "right", "up"])[np.argmax(z, axis=1)]
    a, b = z @ rotation(3) * [1, 5, 2] + 1, z @ rotation(3, seed=1) - 4
    atlas = Atlas.build([ChartLatents("a", a, np.arange(600)), ChartLatents("b", b, np.arange(600))])
    probe = LinearProbe.fit(a, labels)
    save_atlas(attach_probe(atlas, "a", "way", probe), tmp_path / "atlas")
    found = load_atlas(tmp_path / "atlas")
    np.testing.assert_array_equal(probe_of(found, "a", "way").logits(a), probe.logits(a))
    moved = probe_for(found, "b", "way", source="a")
    np.testing.assert_allclose(moved.logits(b), probe.logits(found.translate(b, "b", "a")), atol=1e-6)
    np.testing.assert_allclose(moved.logits(b), probe.logits(a), atol=1e-6)  # both latents are linear in z
    assert np.mean(moved.predict(b) == labels) > 0.95


def test_invalid_probes_are_rejected():
    z = np.random.default_rng(0).standard_normal((50, 2))
    atlas = Atlas.build([ChartLatents(name, z, np.arange(50)) for name in "ab"])
    with pytest.raises(InputError, match=r"'p' .*1 .*'a' .*2"):
        attach_probe(atlas, "a", "p", LinearProbe.fit(z[:, :1], z[:, 0] > 0))
    damaged = atlas.attach("a", Attachment("probe", "q", b"no probe"))
    with pytest.raises(InputError, match=r"'q' .*'a' .*LinearProbe"):
        probe_of(damaged, "a", "q")
    with pytest.raises(InputError, match="no probe 'p'"):
        probe_of(atlas, "a", "p")
