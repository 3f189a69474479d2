"""Figures of alignments, compared with their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from workflows.align.models import Models, matched

from jepatlas.alignment import Latents, PairedLatents, cka_debiased
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.pictures import spread_rows
from jepatlas.reporting import draw
from jepatlas.workflows.align.align_figures import layers_figure, pairs_figure, projections, spectrum_figure

MODELS = Models.draw(rows=40)


def test_mapped_latents_are_shown_on_the_axes_of_the_target():
    (figure,), arrays = projections(matched(MODELS.a, MODELS.b), MODELS.b, umap=False, seed=0)
    np.testing.assert_array_equal(arrays["mapped"], arrays["b"])
    spread = np.linalg.svd(MODELS.b - MODELS.b.mean(0), compute_uv=False)[:2]
    np.testing.assert_allclose(np.linalg.norm(arrays["b"], axis=0), spread, rtol=1e-5)
    assert [panel.x for panel in figure.panels] == ["a", "b", "mapped"]
    assert [panel.range for panel in figure.panels] == [None, "target", "target"]
    assert "the target" in figure.note and all(array.dtype == np.float32 for array in arrays.values())


def test_labels_colour_the_points():
    (figure,), arrays = projections(matched(MODELS.a, MODELS.b, labels=MODELS.label), MODELS.b, umap=False, seed=0)
    np.testing.assert_array_equal(arrays["label"], MODELS.label)
    assert all(panel.color == "label" for panel in figure.panels)


def test_prefix_distinguishes_the_arrays_of_projections():
    (figure,), arrays = projections(matched(MODELS.a, MODELS.b, labels=MODELS.label), MODELS.b, prefix="norb_")
    assert set(arrays) == {"norb_a", "norb_b", "norb_mapped", "norb_label"}
    assert {key for panel in figure.panels for key in (panel.x, panel.color)} == set(arrays)


def test_pairs_figure_shows_the_raw_input_of_both_sides():
    images = np.random.default_rng(0).integers(0, 256, (40, 6, 6), dtype=np.uint8)
    ids = np.array([f"s{i}" for i in range(40)])
    a = Latents("ada", MODELS.a, ids=ids, labels=MODELS.label, raw=images)
    b = Latents("ben", MODELS.b, ids=ids, raw=images[..., None] / 255)
    (figure,), arrays = pairs_figure(PairedLatents(a, b))
    rows = spread_rows(40, 8, MODELS.label)
    np.testing.assert_array_equal(arrays["raw_a"], np.repeat(images[rows][..., None], 3, axis=3))
    np.testing.assert_array_equal(arrays["raw_b"], arrays["raw_a"])
    assert figure.panels[0].captions[0] == f"{MODELS.label[rows[0]]}, s{rows[0]}"
    assert "ben: 6 × 6 × 1, float64" in figure.note
    assert pairs_figure(PairedLatents(a, Latents("ben", MODELS.b, ids=ids, raw=MODELS.b))) == ([], {})


def test_one_dimensional_latents_get_a_zero_second_axis():
    _, arrays = projections(matched(MODELS.a[:, :1], MODELS.b[:, :1]), MODELS.b[:, :1], umap=False, seed=0)
    assert all(arrays[name].shape == (40, 2) and not arrays[name][:, 1].any() for name in ("a", "b", "mapped"))


def test_spectrum_shows_fitted_and_raw_singular_values():
    fitted = LinearMap(np.diag([3.0, 2.0]), np.zeros(2), np.zeros(2), np.array([1.0, 4.0]), np.ones(2))
    figure = spectrum_figure(fitted)
    assert figure.series is not None
    as_fitted, raw = figure.series
    assert as_fitted.y == pytest.approx([3.0, 2.0]) and raw.y == pytest.approx([3.0, 0.5])
    assert as_fitted.x == [1, 2]


def test_layers_are_compared_by_cka():
    a = {"layer0": MODELS.a, "layer1": MODELS.raw}
    b = {"layer0": MODELS.b, "layer1": MODELS.b[:, :2], "layer2": MODELS.raw}
    figure = layers_figure(PairedLatents(Latents("ada", MODELS.a, layers=a), Latents("ben", MODELS.b, layers=b)))
    assert figure is not None and (figure.y, figure.x) == (list(a), list(b))
    assert figure.matrix[0][1] == pytest.approx(cka_debiased(MODELS.a, MODELS.b[:, :2]))
    assert figure.matrix[1][2] == pytest.approx(1)
    assert "ada" in draw(figure).title
    assert layers_figure(matched(MODELS.a, MODELS.b)) is None
