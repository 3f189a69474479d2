"""Map estimators: scikit-learn's estimator checks, numpy references on rows, and streamed fits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from jepatlas.alignment.maps.map_estimators import LeastSquaresMap, ProcrustesMap, RidgeMap, RobustMap, StreamedMap
from jepatlas.alignment.maps.ridge_penalty import CANDIDATES, held_out
from jepatlas.core.errors import InputError
from jepatlas.core.linear import least_squares, procrustes, r2, ridge
from jepatlas.core.linear_map import LinearMap

seeds = st.integers(0, 2**32 - 1)
STREAMED: list[StreamedMap] = [
    LeastSquaresMap(),
    LeastSquaresMap(offset=False, standardise=True),
    ProcrustesMap(),
    ProcrustesMap(scaled=True),
    RidgeMap(2.0),
    RidgeMap(),
    RidgeMap(standardise=True),
]


def data(rng: np.random.Generator, n: int, d_in: int, d_out: int, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(n, d_in)) + 3
    return x, x @ rng.normal(size=(d_in, d_out)) + noise * rng.normal(size=(n, d_out)) - 5


@pytest.mark.parametrize("estimator", [*STREAMED, LeastSquaresMap(products="float32"), RobustMap()])
def test_scikit_learn_estimator_checks(estimator):
    results = check_estimator(estimator, on_skip=None)
    assert all(result["status"] == "passed" for result in results if result["check_name"] != "check_array_api_input")


def test_noisy_invertible_map_is_recovered():
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(16, 16)) + 4 * np.eye(16)
    x = rng.normal(size=(5000, 16)) + 2
    y = x @ weight.T + 0.1 * rng.normal(size=x.shape) - 7
    found = LeastSquaresMap().fit(x[:4000], y[:4000])
    np.testing.assert_allclose(found.map_.raw_weight, weight, atol=0.01)
    assert found.score(x[4000:], y[4000:]) > 0.999
    assert r2(x, found.inverse_transform(x @ weight.T - 7)) > 0.999


@given(st.integers(1, 6), st.integers(1, 6), seeds)
@settings(max_examples=25)
def test_maps_match_fits_on_rows(d_in, d_out, seed):
    x, y = data(np.random.default_rng(seed), 40, d_in, d_out)
    for estimator, expected in (
        (LeastSquaresMap(), least_squares(x, y)),
        (RidgeMap(2.0), ridge(x, y, 2.0)),
        (ProcrustesMap(), procrustes(x, y)),
        (ProcrustesMap(scaled=True), procrustes(x, y, scaled=True)),
    ):
        assert estimator.fit(x, y) is estimator
        np.testing.assert_allclose(estimator.transform(x), expected.apply(x), atol=1e-7)
        assert estimator.score(x, y) == pytest.approx(r2(y, expected.apply(x)), abs=1e-9)
        assert estimator.n_samples_seen_ == 40


shapes = st.tuples(st.integers(1, 60), st.integers(1, 6), st.integers(1, 4))  # rows, d_in, d_out
dtypes = st.sampled_from([np.float64, np.float32, np.int64])


@given(shapes, st.integers(1, 6), st.integers(-6, 6), dtypes, seeds)
@settings(max_examples=100)
def test_least_squares_matches_numpy_for_all_shapes_ranks_scales_and_dtypes(shape, rank, power, dtype, seed):
    """Includes fewer rows than columns and rank-deficient rows."""
    n, d_in, d_out = shape
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d_in))
    y = x @ rng.normal(size=(d_in, d_out)) + rng.normal(size=(n, d_out))
    scale = 1000.0 if dtype is np.int64 else 10.0**power
    x, y = (x * scale).astype(dtype), (y * scale).astype(dtype)
    kept = x.copy(), y.copy()
    found = LeastSquaresMap().fit(x, y)
    assert (x == kept[0]).all() and (y == kept[1]).all()
    xc, yc = (side - side.astype(np.float64).mean(0) for side in (x, y))
    live = np.linalg.svd(xc, compute_uv=False)
    if live[-1] > 1e-5 * live[0] or live[-1] < 1e-9 * live[0]:  # in between, moments may lose one rank
        reference = xc @ np.linalg.lstsq(xc, yc, rcond=1e-7)[0] + y.astype(np.float64).mean(0)
        np.testing.assert_allclose(found.transform(x), reference, atol=1e-4 * scale)
    assert found.transform(x).dtype == np.float64


@pytest.mark.parametrize("estimator", STREAMED)
@given(cuts=st.lists(st.integers(1, 40), max_size=4), seed=seeds)
@settings(max_examples=10)
def test_streamed_fit_does_not_depend_on_the_batches(estimator, cuts, seed):
    x, y = data(np.random.default_rng(seed), 60 + sum(cuts), 4, 3)
    whole = type(estimator)(**estimator.get_params()).fit(x, y)
    streamed = type(estimator)(**estimator.get_params())
    for part in np.split(np.arange(len(x)), np.cumsum(cuts)):
        streamed.partial_fit(x[part], y[part])
    assert streamed.n_samples_seen_ == len(x)
    np.testing.assert_allclose(streamed.map_.weight, whole.map_.weight, atol=1e-8)
    np.testing.assert_allclose(streamed.transform(x), whole.transform(x), atol=1e-8)
    assert np.array_equal(
        streamed.fit(x[:30], y[:30]).transform(x), whole.fit(x[:30], y[:30]).transform(x)
    )  # fit discards earlier batches


def test_memory_mapped_rows(tmp_path):
    x, y = data(np.random.default_rng(0), 70_000, 3, 2)
    sides = []
    for name, side in (("x", x), ("y", y)):
        side.astype(np.float32).tofile(tmp_path / name)
        sides.append(np.memmap(tmp_path / name, np.float32, "r", shape=side.shape))
    for estimator in (LeastSquaresMap(), LeastSquaresMap(products="float32"), RidgeMap()):
        np.testing.assert_allclose(estimator.fit(*sides).transform(x[:9]), least_squares(x, y).apply(x[:9]), atol=1e-3)


def brute_force_penalty(x: np.ndarray, y: np.ndarray, held: np.ndarray) -> float:
    fit = x[~held] - x[~held].mean(0)
    unit = np.square(fit).sum() / x.shape[1]
    misses = {}
    for candidate in CANDIDATES:
        fitted = ridge(x[~held], y[~held], unit * candidate)
        misses[unit * candidate] = np.square(y[held] - fitted.apply(x[held])).sum()
    return min(misses, key=lambda penalty: misses[penalty])


def test_penalty_is_chosen_on_held_out_pairs_and_refitted_on_all():
    rng = np.random.default_rng(0)
    x, y = data(rng, 80, 40, 5, noise=6.0)
    found = RidgeMap().fit(x, y)
    assert found.penalty_ == pytest.approx(brute_force_penalty(x, y, held_out(np.arange(80), 0)))
    assert found.penalty_ > 0
    np.testing.assert_allclose(found.map_.weight, ridge(x, y, found.penalty_).weight, atol=1e-9)
    assert RidgeMap(3.5).fit(x, y).penalty_ == 3.5
    assert RidgeMap(random_state=1).fit(x, y).map_.weight != pytest.approx(found.map_.weight)


def test_penalty_helps_with_few_pairs():
    rng = np.random.default_rng(0)
    x, y = data(rng, 2060, 40, 20, noise=4.0)
    fit, score = slice(60), slice(60, None)
    ridged, plain = RidgeMap().fit(x[fit], y[fit]), LeastSquaresMap().fit(x[fit], y[fit])
    assert ridged.score(x[score], y[score]) > plain.score(x[score], y[score]) + 0.05


def test_groups_are_held_out_whole():
    """Each state has 8 near-copies, so held-out rows are not independent of fitted rows, but held-out groups are."""
    rng = np.random.default_rng(0)
    state, own = rng.normal(size=(60, 40)), rng.normal(size=(60, 3))
    groups = np.array([f"state {i}" for i in np.repeat(np.arange(60), 8)])
    x = np.repeat(state, 8, axis=0) + 0.01 * rng.normal(size=(480, 40))
    y = np.repeat(state[:, :3] + 3 * own, 8, axis=0)
    by_row, by_group = RidgeMap().fit(x, y), RidgeMap().fit(x, y, groups=groups)
    assert by_group.penalty_ > 10 * by_row.penalty_
    streamed = RidgeMap()
    for part in (slice(0, 100), slice(100, 480)):  # the second batch continues a state
        streamed.partial_fit(x[part], y[part], groups=groups[part])
    assert streamed.penalty_ == pytest.approx(by_group.penalty_)
    held = held_out(np.repeat(np.arange(60), 8), 0)
    assert by_group.penalty_ == pytest.approx(brute_force_penalty(x, y, held))


@given(st.integers(2, 400), seeds)
def test_a_quarter_is_held_out_independently_of_the_batches(n, seed):
    held = held_out(np.arange(n), seed)
    assert held.any() and not held.all()
    assert abs(held.sum() - n / 4) < 1
    cut = n // 3
    assert np.array_equal(held, np.concatenate([held_out(np.arange(cut), seed), held_out(np.arange(cut, n), seed)]))


def test_inverse_truncates_directions_beyond_the_condition_limit():
    rng = np.random.default_rng(0)
    u, v = (np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2))
    x = rng.normal(size=(400, 3))
    y = x @ (u * [1.0, 0.5, 1e-4] @ v.T).T
    full = LeastSquaresMap(condition_limit=1e6).fit(x, y)
    np.testing.assert_allclose(full.inverse_transform(y), x, atol=1e-6)
    cut = LeastSquaresMap(condition_limit=1e3).fit(x, y)
    expected = x.mean(0) + (x - x.mean(0)) @ (v[:, :2] @ v[:, :2].T)  # without the direction of σ = 1e-4
    np.testing.assert_allclose(cut.inverse_transform(y), expected, atol=1e-6)
    assert cut.conditioning_.condition == pytest.approx(1e4, rel=1e-3)
    assert not next(v for v in cut.conditioning_.verdicts(400) if v.name == "condition").passed


def test_maps_between_widths_compose_invert_and_are_saved(tmp_path):
    rng = np.random.default_rng(0)
    x, y = data(rng, 300, 3, 5, noise=0.0)
    z = data(rng, 300, 5, 4)[1]
    there, back = LeastSquaresMap(standardise=True).fit(x, y), LeastSquaresMap().fit(y, z)
    np.testing.assert_allclose(there.inverse_transform(there.transform(x)), x, atol=1e-9)
    np.testing.assert_allclose(there.map_.compose(back.map_).apply(x), back.transform(there.transform(x)), atol=1e-9)
    there.map_.save(tmp_path / "map.safetensors")
    np.testing.assert_array_equal(LinearMap.load(tmp_path / "map.safetensors").apply(x), there.transform(x))
    assert list(there.get_feature_names_out()) == [f"leastsquaresmap{i}" for i in range(5)]


def test_maps_work_with_scikit_learn_utilities():
    x, y = data(np.random.default_rng(0), 200, 3, 4)
    assert cross_val_score(LeastSquaresMap(), x, y, cv=4).min() > 0.99
    assert set(RidgeMap().fit(x, y).get_params()) >= {"penalty", "offset", "standardise", "condition_limit"}


def test_invalid_input_is_rejected():
    x, y = data(np.random.default_rng(0), 20, 3, 2)
    for estimator in (LeastSquaresMap(), RobustMap()):
        with pytest.raises(InputError, match=r"samples: \[20, 19\]"):
            estimator.fit(x, y[:19])
        broken = x.copy()
        broken[7, 1] = math.nan
        with pytest.raises(InputError, match=r"'x' .*row 7"):
            estimator.fit(broken, y)
        with pytest.raises(NotFittedError):
            estimator.transform(x)
        estimator.fit(x, y)
        with pytest.raises(InputError, match=r"\(b, 2\)"):
            estimator.inverse_transform(x)
        with pytest.raises(InputError, match=r"'y' .*2 columns.* 3"):
            estimator.score(x, x)
    with pytest.raises(InputError, match=r"3 → 2 .*3 → 3"):
        LeastSquaresMap().fit(x, y).partial_fit(x, x)
    with pytest.raises(InputError, match=r"'penalty'.*'best'"):
        RidgeMap("best").fit(x, y)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="-1"):
        RidgeMap(-1).fit(x, y)
    with pytest.raises(InputError, match=r"'groups' must have 20 entries.* 3"):
        RidgeMap().fit(x, y, groups=[1, 2, 3])
    with pytest.raises(InputError, match="at least 2 groups"):
        RidgeMap().fit(x, y, groups=np.zeros(20))
    assert not hasattr(RobustMap(), "partial_fit")


@pytest.mark.parametrize("estimator", [*STREAMED, RobustMap()])
def test_degenerate_pairs_give_finite_maps(estimator):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    constant, repeated = np.full((30, 4), 0.1), np.hstack([x, x])
    for a, b in ((constant, x), (x, constant), (repeated, x), (x, repeated), (x[:3], x[:3]), (x[:1], x[:1])):
        found = estimator.fit(a, b)
        assert np.isfinite(found.transform(a)).all() and np.isfinite(found.inverse_transform(b)).all()
        assert found.conditioning_.verdicts(len(a))
