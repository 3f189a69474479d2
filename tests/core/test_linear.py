"""Linear fits compared with numpy, scipy, closed forms and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.linear import hold_out, least_squares, orthogonality_error, procrustes, r2, ridge, whitener
from jepatlas.core.linear_map import LinearMap

seeds = st.integers(0, 2**32 - 1)
widths = st.integers(1, 5)


def data(rng: np.random.Generator, n: int, d_in: int, d_out: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(n, d_in)) @ rng.normal(size=(d_in, d_in)) + 10 * rng.normal(size=d_in)
    return x, x @ rng.normal(size=(d_in, d_out)) + 0.3 * rng.normal(size=(n, d_out)) + 5 * rng.normal(size=d_out)


def deficient(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Nine columns of rank six with an offset, so that rounding noise fills three directions."""
    x = rng.normal(size=(2000, 6))
    return np.hstack([x, 0.1 * x @ rng.normal(size=(6, 3)) + 5]), rng.normal(size=(2000, 2))


def with_ones(x: np.ndarray) -> np.ndarray:
    return np.hstack([x, np.ones((len(x), 1))])


@given(widths, widths, seeds)
def test_least_squares_matches_numpy_with_an_intercept(d_in, d_out, seed):
    x, y = data(np.random.default_rng(seed), 40, d_in, d_out)
    fitted = least_squares(x, y)
    reference = with_ones(x) @ np.linalg.lstsq(with_ones(x), y, rcond=None)[0]
    np.testing.assert_allclose(fitted.apply(x), reference, atol=1e-6)
    assert fitted.weight.shape == (d_out, d_in)
    # by definition, the residual is orthogonal to every column
    np.testing.assert_allclose((y - fitted.apply(x)).T @ with_ones(x), 0, atol=1e-6)


def test_rank_deficient_least_squares_has_minimum_norm():
    x, y = deficient(np.random.default_rng(0))
    fitted = least_squares(x, y)
    expected = np.linalg.pinv(x - x.mean(0), rcond=1e-9) @ (y - y.mean(0))
    np.testing.assert_allclose(fitted.weight, expected.T, atol=1e-9)
    few = least_squares(x[:4], y[:4])  # fewer rows than columns
    np.testing.assert_allclose(few.apply(x[:4]), y[:4], atol=1e-9)
    np.testing.assert_allclose(few.weight.T, np.linalg.pinv(x[:4] - x[:4].mean(0)) @ (y[:4] - y[:4].mean(0)), atol=1e-9)


def test_fits_are_float64_for_every_input_dtype():
    x, y = data(np.random.default_rng(0), 30, 3, 2)
    for fit in (least_squares, procrustes, lambda a, b: ridge(a, b, 0.5)):
        single = fit(x.astype(np.float32), y.astype(np.float32))
        assert single.weight.dtype == single.x_mean.dtype == single.y_mean.dtype == np.float64
        np.testing.assert_allclose(single.apply(x), fit(x, y).apply(x), atol=1e-4)
    whole = np.arange(12).reshape(6, 2) ** 2
    np.testing.assert_allclose(least_squares(whole, whole).apply(whole), whole, atol=1e-9)


@given(widths, widths, st.floats(1e-4, 1e4), seeds)
def test_ridge_matches_its_closed_form_and_minimum(d_in, d_out, penalty, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(25, d_in)) + 3, rng.normal(size=(25, d_out))
    xc, yc = x - x.mean(0), y - y.mean(0)
    fitted = ridge(x, y, penalty)
    expected = yc.T @ xc @ np.linalg.inv(xc.T @ xc + penalty * np.eye(d_in))
    np.testing.assert_allclose(fitted.weight, expected, atol=1e-10)
    # equivalent to least squares with additional rows √λ W = 0
    tall = np.vstack([xc, math.sqrt(penalty) * np.eye(d_in)])
    solved = np.linalg.lstsq(tall, np.vstack([yc, np.zeros((d_in, d_out))]), rcond=None)[0]
    np.testing.assert_allclose(fitted.weight, solved.T, atol=1e-8)


def test_ridge_limits():
    x, y = data(np.random.default_rng(0), 50, 4, 3)
    np.testing.assert_allclose(ridge(x, y, 0).weight, least_squares(x, y).weight, atol=1e-12)
    np.testing.assert_allclose(ridge(x, y, 1e-9).weight, least_squares(x, y).weight, atol=1e-6)
    np.testing.assert_allclose(ridge(x, y, 1e12).weight, 0, atol=1e-7)
    np.testing.assert_allclose(ridge(x, y, 1e12).apply(x), np.broadcast_to(y.mean(0), y.shape), atol=1e-5)
    norms = [np.linalg.norm(ridge(x, y, penalty).weight) for penalty in (0, 0.1, 1, 10, 100)]
    assert norms == sorted(norms, reverse=True) and len(set(norms)) == 5


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("penalty", [0.0, 1e-300, 1e-14, 1e-12])
def test_rank_deficient_ridge_approaches_the_minimum_norm_map(penalty: float):
    x, y = deficient(np.random.default_rng(0))
    np.testing.assert_allclose(ridge(x, y, penalty).weight, least_squares(x, y).weight, atol=1e-6)
    np.testing.assert_allclose(ridge(x[:5], y[:5], penalty).apply(x[:5]), y[:5], atol=1e-6)


@pytest.mark.parametrize("penalty", [-1.0, math.nan, math.inf])
def test_ridge_rejects_invalid_penalties(penalty: float):
    with pytest.raises(InputError, match=str(penalty)):
        ridge(np.ones((3, 2)), np.ones((3, 2)), penalty)


@pytest.mark.parametrize("fit", [least_squares, procrustes])
def test_rows_must_match(fit):
    with pytest.raises(InputError, match="x has 3 and y has 4"):
        fit(np.ones((3, 2)), np.ones((4, 2)))


@given(st.integers(1, 6), seeds)
def test_procrustes_matches_scipy(dim, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(30, dim)) + 4, rng.normal(size=(30, dim)) - 2
    expected, _ = scipy.linalg.orthogonal_procrustes(x - x.mean(0), y - y.mean(0))
    np.testing.assert_allclose(procrustes(x, y).weight, expected.T, atol=1e-10)


@given(st.integers(1, 5), st.integers(0, 3), st.booleans(), st.floats(0.1, 10), seeds)
def test_procrustes_recovers_a_rotation_a_reflection_and_a_scale(dim, extra, mirror, scale, seed):
    rng = np.random.default_rng(seed)
    q = np.linalg.qr(rng.normal(size=(dim + extra, dim)))[0]
    q[:, 0] *= -1 if mirror else 1
    x, shift = rng.normal(size=(30, dim)) + 1, rng.normal(size=dim + extra)
    for scaled in (False, True):
        factor = scale if scaled else 1.0
        fitted = procrustes(x, factor * x @ q.T + shift, scaled=scaled)
        np.testing.assert_allclose(fitted.weight, factor * q, atol=1e-9)
        np.testing.assert_allclose(fitted.apply(x), factor * x @ q.T + shift, atol=1e-9)
        assert orthogonality_error(fitted.weight / factor) < 1e-10


def test_scaled_procrustes_matches_brute_force_in_the_plane():
    """Brute force over angle, reflection and scale."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    xc, yc = x - x.mean(0), y - y.mean(0)

    def loss(parameters: np.ndarray, mirror: float) -> float:
        angle, scale = parameters
        c, s = math.cos(angle), math.sin(angle)
        weight = scale * np.array([[c, -s], [s, c]]) @ np.diag([1.0, mirror])
        return float(np.square(yc - xc @ weight.T).sum())

    starts = [(angle, mirror) for angle in np.linspace(0, 6, 7) for mirror in (1.0, -1.0)]
    best = min(scipy.optimize.minimize(loss, [a, 1.0], args=(m,), tol=1e-12).fun for a, m in starts)
    fitted = procrustes(x, y, scaled=True)
    assert np.square(y - fitted.apply(x)).sum() == pytest.approx(best, rel=1e-7)
    assert np.square(y - procrustes(x, y).apply(x)).sum() > best


@pytest.mark.parametrize(("d_in", "d_out"), [(4, 2), (2, 4), (3, 3)])
def test_scaled_procrustes_has_the_optimal_scale(d_in: int, d_out: int):
    rng = np.random.default_rng(d_in)
    x = rng.normal(size=(40, d_in))
    y = x @ rng.normal(size=(d_in, d_out)) + rng.normal(size=(40, d_out))
    q, scaled = procrustes(x, y), procrustes(x, y, scaled=True)

    def loss(factor: float) -> float:
        return float(np.square(y - LinearMap(factor * q.weight, q.x_mean, q.y_mean).apply(x)).sum())

    best = scipy.optimize.minimize_scalar(loss, bounds=(0, 100), method="bounded", options={"xatol": 1e-10})
    assert np.square(y - scaled.apply(x)).sum() == pytest.approx(best.fun, rel=1e-9)
    singular = np.linalg.svd(q.weight, compute_uv=False)
    np.testing.assert_allclose(singular, 1, atol=1e-12)


def test_rank_deficient_procrustes_is_orthogonal():
    x, y = deficient(np.random.default_rng(0))
    assert orthogonality_error(procrustes(x, x * [1, 2, 3, 1, 2, 3, 1, 2, 3]).weight) < 1e-10
    constant = np.ones((5, 2))
    np.testing.assert_array_equal(procrustes(constant, y[:5], scaled=True).weight, np.zeros((2, 2)))


@given(st.integers(1, 6), seeds)
def test_whitener_gives_identity_covariance(dim, seed):
    x, _ = data(np.random.default_rng(seed), 50, dim, 1)
    if np.linalg.cond(np.atleast_2d(np.cov(x, rowvar=False))) > 1e9:
        return
    white = whitener(x)
    h = white.apply(x)
    np.testing.assert_allclose(np.atleast_2d(np.cov(h, rowvar=False)), np.eye(dim), atol=1e-5)
    np.testing.assert_allclose(h.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(white.weight, white.weight.T)
    assert (np.linalg.eigvalsh(white.weight) > 0).all()


def test_whitener_maps_constant_directions_to_zero():
    x, _ = deficient(np.random.default_rng(0))
    covariance = np.cov(whitener(x).apply(x), rowvar=False)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance), [0] * 3 + [1] * 6, atol=1e-9)
    with_constant = np.hstack([x[:, :2], np.full((2000, 1), 0.1)])
    h = whitener(with_constant).apply(with_constant)
    np.testing.assert_allclose(np.cov(h, rowvar=False), np.diag([1.0, 1, 0]), atol=1e-9)
    np.testing.assert_allclose(h[:, 2], 0, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6, 1 / 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_collapsed_latents_are_whitened_to_zero(value: float, dtype):
    x = np.full((1000, 3), value, dtype)
    white = whitener(x)
    np.testing.assert_array_equal(white.weight, 0)
    np.testing.assert_array_equal(white.apply(x), 0)


def test_whitener_floor():
    x = np.random.default_rng(0).normal(size=(500, 2)) * [1.0, 1e-3]
    assert np.linalg.matrix_rank(whitener(x).weight) == 2
    assert np.linalg.matrix_rank(whitener(x, floor=1e-4).weight) == 1


@given(st.integers(2, 20), widths, st.booleans(), seeds)
def test_r2_matches_its_formula(n, dim, weighted, seed):
    rng = np.random.default_rng(seed)
    y, guess = rng.normal(size=(n, dim)) + 50, rng.normal(size=(n, dim)) + 50
    weights = rng.integers(0, 4, n) + 1.0 * (np.arange(n) < 2) if weighted else np.ones(n)
    mean = [sum(w * row[j] for w, row in zip(weights, y, strict=True)) / weights.sum() for j in range(dim)]
    residual = sum(weights[i] * (y[i, j] - guess[i, j]) ** 2 for i in range(n) for j in range(dim))
    total = sum(weights[i] * (y[i, j] - mean[j]) ** 2 for i in range(n) for j in range(dim))
    assert r2(y, guess, weights if weighted else None) == pytest.approx(1 - residual / total, rel=1e-8)
    assert r2(y, y) == 1.0
    assert r2(y, np.tile(y.mean(0), (n, 1))) == pytest.approx(0, abs=1e-12)
    if weighted:  # integer weights are equivalent to repeated rows
        rows = np.repeat(np.arange(n), weights.astype(int))
        assert r2(y, guess, weights) == pytest.approx(r2(y[rows], guess[rows]), rel=1e-9)


def test_r2_pools_dimensions_and_keeps_float64():
    y = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 0.0] + 0.1
    assert math.isfinite(r2(y, y + 0.01))
    single = np.random.default_rng(1).normal(size=(1000, 3)).astype(np.float32)
    near = (single + 1e-4).astype(np.float32)
    exact = r2(single.astype(np.float64), near.astype(np.float64))
    assert r2(single, near) == pytest.approx(exact, abs=1e-14)


def test_r2_of_a_constant_is_undefined():
    constant = np.full((1000, 3), 0.1)  # its computed mean is not exactly 0.1
    assert math.isnan(r2(constant, constant))
    assert math.isnan(r2(constant, constant + 1))


def test_r2_rejects_different_shapes():
    with pytest.raises(InputError, match=r"\(5, 2\) and \(5, 1\)"):
        r2(np.ones((5, 2)), np.ones((5, 1)))


def test_orthogonality_error():
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    assert orthogonality_error(q) < 1e-14
    assert orthogonality_error(q[:, :2]) < 1e-14
    assert orthogonality_error(q @ np.diag([1, -1, 1, 1])) < 1e-14
    assert orthogonality_error(2 * q) == pytest.approx(3.0)
    assert orthogonality_error(np.zeros((3, 3))) == pytest.approx(1.0)
    weight = np.random.default_rng(1).normal(size=(3, 2))
    gap = [[weight[:, i] @ weight[:, j] - (i == j) for j in range(2)] for i in range(2)]
    by_hand = math.sqrt(sum(value**2 for row in gap for value in row)) / math.sqrt(2)
    assert orthogonality_error(weight) == pytest.approx(by_hand)


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=60).filter(lambda g: len(set(g)) > 1),
    st.floats(0, 1),
    seeds,
    st.booleans(),
)
@settings(max_examples=200)
def test_hold_out_never_splits_a_group(labels, share, seed, text):
    groups = np.array([f"id{g}" for g in labels]) if text else np.array(labels)
    split = hold_out(len(groups), np.random.default_rng(seed), groups=groups, share=share)
    fit, score = set(groups[split.fit]), set(groups[split.score])
    assert fit and score and not fit & score
    assert sorted([*split.fit, *split.score]) == list(range(len(groups)))
    count = len(set(labels))
    assert abs(len(score) - share * count) <= 0.5 or len(score) in (1, count - 1)
    again = hold_out(len(groups), np.random.default_rng(seed), groups=groups, share=share)
    assert np.array_equal(split.score, again.score)


def test_hold_out_without_groups():
    split = hold_out(1000, np.random.default_rng(0), share=0.3)
    assert len(split.score) == 300 and len(split.fit) == 700
    assert not np.array_equal(split.score, hold_out(1000, np.random.default_rng(1), share=0.3).score)
    drawn = np.zeros(20)
    for seed in range(400):
        drawn[hold_out(20, np.random.default_rng(seed)).score] += 1
    assert np.abs(drawn - 200).max() < 5 * 10  # each row is held out half of the time


def test_hold_out_rejects_invalid_groups():
    for n, groups in ((1, None), (0, None), (3, np.zeros(3))):
        with pytest.raises(InputError, match="at least 2 groups"):
            hold_out(n, np.random.default_rng(0), groups=groups)
    with pytest.raises(InputError, match=r"groups.*4 rows.*3"):
        hold_out(4, np.random.default_rng(0), groups=np.arange(3))
