"""Similarity metrics: their table of names, coordinates and directions, errors of maps, and the Procrustes error."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.spatial
from alignment.latents import SHAPES, gaussian, invertible, related, rotation
from hypothesis import given, settings

from jepatlas.alignment.similarity.distance_structure import dsc
from jepatlas.alignment.similarity.kernel_alignment import cka, cka_debiased
from jepatlas.alignment.similarity.nearest_neighbours import mutual_knn, nos
from jepatlas.alignment.similarity.similarity_metrics import (
    METRICS,
    measure,
    mse_per_dim,
    mse_sum,
    procrustes_error,
    r2,
)
from jepatlas.core.errors import InputError
from jepatlas.core.linear import least_squares


def test_every_metric_matches_its_function_and_coordinates():
    a, b = related(80, 4, 6)
    transition = least_squares(a[:40], b[:40])
    found = measure(a, b, transition)
    assert list(found) == list(METRICS)
    back = transition.invert().apply(b)
    assert found["r2"] == r2(transition.apply(a), b) and found["mse_sum"] == mse_sum(transition.apply(a), b)
    for name, function in {"cka": cka, "cka_debiased": cka_debiased, "dsc": dsc, "mutual_knn": mutual_knn}.items():
        assert found[name] == function(a, b) and found[f"{name}_common"] == function(a, back)
    for k in (1, 5, 10, 20, 50):
        assert found[f"nos_{k}"] == nos(a, b, k) == METRICS[f"nos_{k}"](a, b)
        assert found[f"nos_{k}_common"] == nos(a, back, k)
    assert all(found[m.name] == m(a, b) for m in METRICS.values() if m.coordinates == "own")


def test_common_coordinates_need_a_map():
    a, b = related(80, 4, 6)
    found = measure(a, b)
    assert set(found) == {name for name, metric in METRICS.items() if metric.coordinates == "own"}
    assert found["cka"] == cka(a, b)
    for name in ("r2", "cka_common"):
        with pytest.raises(InputError, match=f"'{name}' .*'transition'"):
            measure(a, b, names=[name])


def test_noise_worsens_every_metric():
    """Every metric gets worse with noise, according to its `direction`."""
    z = gaussian(300, 4)
    steps = []
    for noise in (0.1, 0.5, 2.0):
        b = z @ invertible(4) + noise * gaussian(300, 4, seed=1) @ invertible(4)
        steps.append(measure(z, b, least_squares(z[:150], b[:150])))
    for name, metric in METRICS.items():
        sign = 1 if metric.direction == "higher" else -1
        assert all(sign * better[name] > sign * worse[name] for better, worse in pairwise(steps)), name
        assert metric.meaning


@settings(deadline=None)  # the first call compiles the kernels
@given(SHAPES)
def test_values_are_within_the_range_of_the_metric(shape):
    rows, wide_a, wide_b, seed = shape
    a, b = related(rows, wide_a, wide_b, seed)
    for c in (b, gaussian(rows, wide_b, seed + 9), a):
        for name, value in measure(a, c, least_squares(a[::2], c[::2])).items():
            assert math.isnan(value) or METRICS[name].low - 1e-9 <= value <= METRICS[name].high + 1e-9, name


def test_limit_truncates_the_inverse():
    a = gaussian(100, 3)
    b = a * [1, 1, 1e-3] + 1e-2 * gaussian(100, 3, seed=1)
    transition = least_squares(a, b)
    free, limited = (measure(a, b, transition, names=["cka_common"], limit=limit) for limit in (None, 20.0))
    assert limited["cka_common"] > free["cka_common"] + 0.2
    assert limited["cka_common"] == cka(a, transition.invert(20.0).apply(b))


def test_small_and_constant_latents_have_undefined_scores():
    a, b = related(8, 2, 3)
    found = measure(a, b, least_squares(a, b))
    undefined = {name for name, value in found.items() if math.isnan(value)}
    many = {f"{m}{c}" for m in ("nos_10", "nos_20", "nos_50") for c in ("", "_common", "_target")}
    assert undefined == many | {"mutual_knn", "mutual_knn_common"}
    constant = np.full((80, 3), 0.2)
    for one, other in [(constant, gaussian(80, 3)), (gaussian(80, 3), constant), (constant, constant)]:
        found = measure(one, other)
        assert all(math.isnan(value) for value in found.values())


def test_selected_metrics_and_progress():
    a, b = related(60, 3, 3)
    reports: list[tuple[str, int, int]] = []
    found = measure(a, b, names=["nos_5", "cka", "dsc", "nos_1"], progress=lambda *parts: reports.append(parts))
    assert list(found) == ["nos_5", "cka", "dsc", "nos_1"]
    assert [(name, done == total) for name, done, total in reports][-2:] == [("cka", True), ("dsc", True)]
    assert reports[0][0] == "nos_5" and "nos_1" not in {name for name, *_ in reports}
    reports.clear()
    measure(a, b, names=["mutual_knn"], progress=lambda *parts: reports.append(parts))
    assert len(reports) == 2 and reports[-1] == ("mutual_knn", 2, 2)  # one part per side
    with pytest.raises(InputError, match=r"'ckaa'. Did you mean 'cka'\?"):
        measure(a, b, names=["ckaa"])


def test_target_coordinates_do_not_depend_on_the_limit():
    """A poorly carried direction affects metrics in common coordinates, but not in target coordinates."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((200, 4))
    b = a * (1.0, 1.0, 1.0, 1e-4) + 0.01 * rng.standard_normal((200, 4))
    there = least_squares(a, b)
    found = {limit: measure(a, b, there, limit=limit) for limit in (10.0, 1e6)}
    assert found[10.0]["nos_10_target"] == found[1e6]["nos_10_target"] < 0.2 and found[10.0]["dsc_target"] > 0.95
    assert found[10.0]["nos_10_common"] < 0.6 and found[1e6]["nos_10_common"] > 0.8
    predicted = there.apply(a) / there.y_scale
    assert found[10.0]["dsc_target"] == pytest.approx(dsc(predicted, b / there.y_scale))


def test_errors_match_their_definition():
    a, b = gaussian(30, 4), gaussian(30, 4, seed=1) + 2
    rows = [sum((b[i, j] - a[i, j]) ** 2 for j in range(4)) for i in range(30)]
    spread = sum((b[i, j] - b[:, j].mean()) ** 2 for i in range(30) for j in range(4))
    assert mse_sum(a, b) == pytest.approx(np.mean(rows)) == pytest.approx(4 * mse_per_dim(a, b))
    assert r2(a, b) == pytest.approx(1 - sum(rows) / spread)
    assert r2(b, b) == 1 and r2(np.broadcast_to(b.mean(0), b.shape), b) == pytest.approx(0)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(SHAPES)
def test_procrustes_error_matches_scipy(shape: tuple[int, int, int, int]):
    _, wide_a, wide_b, seed = shape
    a, b = related(*shape)
    wide = max(wide_a, wide_b)  # scipy needs equal widths; zeros do not change the result
    padded = [np.pad(x, ((0, 0), (0, wide - x.shape[1]))) for x in (a, b)]
    assert procrustes_error(a, b) == pytest.approx(scipy.spatial.procrustes(*padded)[2], abs=1e-9)
    assert procrustes_error(b, a) == pytest.approx(procrustes_error(a, b), abs=1e-9)
    assert procrustes_error(a, 3 - 2 * a @ rotation(wide_a, seed)) == pytest.approx(0, abs=1e-9)
    assert procrustes_error(5 * a @ rotation(wide_a, seed), b) == pytest.approx(procrustes_error(a, b), abs=1e-9)


def test_errors_of_constant_latents():
    a, constant = gaussian(20, 2), np.full((20, 2), 0.3)
    assert math.isnan(procrustes_error(constant, a)) and math.isnan(procrustes_error(a, constant))
    assert math.isnan(r2(a, constant)) and r2(constant, a) <= 0


@pytest.mark.parametrize("metric", [mse_sum, mse_per_dim, r2])
def test_different_widths_are_rejected(metric):
    with pytest.raises(InputError, match=r"'a' .*2 .*'b' .*3"):
        metric(gaussian(9, 2), gaussian(9, 3))
