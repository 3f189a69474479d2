"""Controls compared with scikit-learn's PCA and with a network evaluated row by row."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from jepatlas.alignment.controls import FIT_ROWS, pca_control, untrained_control
from jepatlas.core.errors import InputError
from jepatlas.core.linear import least_squares, r2


def pictures(rows: int, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Low-rank images plus noise, as bytes."""
    rng = np.random.default_rng(seed)
    causes = rng.standard_normal((rows, 5)) @ rng.standard_normal((5, int(np.prod(shape))))
    return np.clip(128 + 20 * causes + rng.standard_normal(causes.shape), 0, 255).astype(np.uint8).reshape(rows, *shape)


@pytest.mark.parametrize("shape", [(8, 8), (6, 6, 3), (12,), (200,)])
def test_pca_matches_scikit_learn_up_to_signs(shape: tuple[int, ...]):
    raw, fit = pictures(120, shape), np.arange(0, 120, 2)
    flat = raw.reshape(120, -1).astype(np.float64)
    expected = PCA(4, svd_solver="full").fit(flat[fit]).transform(flat)
    found = pca_control(raw, 4, fit)
    signs = np.sign(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=1e-3 * expected.std())


def test_scored_rows_do_not_affect_the_components():
    raw, fit = pictures(80, (5, 5)), np.arange(40)
    other = raw.copy()
    other[40:] = 255 - other[40:] // 2
    np.testing.assert_array_equal(pca_control(raw, 3, fit)[:40], pca_control(other, 3, fit)[:40])


@pytest.mark.parametrize(("shape", "fit", "expected"), [((3,), 50, 3), ((40,), 6, 5), ((4, 4), 50, 16)])
def test_no_more_components_than_dimensions(shape: tuple[int, ...], fit: int, expected: int):
    assert pca_control(pictures(50, shape), 20, np.arange(fit)).shape == (50, expected)


def test_many_rows_are_subsampled_for_the_fit_only():
    raw = pictures(FIT_ROWS + 700, (4,)).astype(np.float64)
    every = PCA(2).fit_transform(raw)
    found = pca_control(raw, 2, np.arange(len(raw)))
    assert r2(every, least_squares(found, every).apply(found)) > 0.999 and len(found) == len(raw)


def test_large_offset_keeps_precision():
    plain = np.random.default_rng(0).standard_normal((300, 4)) * np.array([4.0, 3.0, 2.0, 1.0])
    far = pca_control(plain + 1e9, 4, np.arange(300))
    np.testing.assert_allclose(np.abs(far), np.abs(pca_control(plain, 4, np.arange(300))), atol=1e-5)
    np.testing.assert_allclose(
        untrained_control(plain + 1e9, 3, np.random.default_rng(1)),
        untrained_control(plain, 3, np.random.default_rng(1)),
        atol=1e-4,
    )


@pytest.mark.parametrize("shape", [(8, 8), (6, 6, 3), (12,)])
def test_untrained_network_matches_row_by_row_evaluation(shape: tuple[int, ...]):
    raw = pictures(600, shape)  # more than one chunk
    found = untrained_control(raw, 7, np.random.default_rng(3))
    flat = raw.reshape(600, -1).astype(np.float64)
    x = (flat - flat.mean()) / flat.std() if len(shape) > 1 else (flat - flat.mean(0)) / flat.std(0)
    rng, h = np.random.default_rng(3), []
    weights = []
    for d_in, d_out in ((x.shape[1], 512), (512, 512), (512, 7)):
        weight = rng.standard_normal((d_in, d_out), dtype=np.float32) * (2 / d_in) ** 0.5
        weights.append((weight, rng.standard_normal(d_out, dtype=np.float32)))
    for row in x[::50]:
        one = np.maximum(weights[0][0].T @ row + weights[0][1], 0)
        two = np.maximum(weights[1][0].T @ one + weights[1][1], 0)
        h.append(weights[2][0].T @ two)
    np.testing.assert_allclose(found[::50], h, atol=1e-3)


def test_untrained_network_is_nonlinear_and_depends_on_its_generator():
    raw = np.random.default_rng(0).standard_normal((2000, 2))
    one, other = (untrained_control(raw, 4, np.random.default_rng(seed)) for seed in (0, 1))
    assert r2(one, least_squares(raw, one).apply(raw)) < 0.9
    assert not np.allclose(one, other)
    np.testing.assert_array_equal(one, untrained_control(raw, 4, np.random.default_rng(0)))


def test_constant_columns_are_accepted():
    raw = np.c_[np.full(50, 7.0), np.random.default_rng(0).standard_normal((50, 2))]
    assert np.isfinite(untrained_control(raw, 3, np.random.default_rng(0))).all()
    assert pca_control(raw, 3, np.arange(50)).shape == (50, 2)


@pytest.mark.parametrize(
    ("raw", "width", "message"),
    [
        (np.zeros(5), 2, "its shape is .5,."),
        (np.zeros((0, 5)), 2, "its shape is .0, 5."),
        (np.ones((5, 5)), 0, "'width'"),
        (np.array([[1.0, np.nan], [1.0, 2.0]]), 1, "'raw'.* NaN"),
        (np.array([["a"], ["b"]]), 1, "must hold numbers"),
    ],
)
def test_invalid_raw_input_is_rejected(raw: np.ndarray, width: int, message: str):
    with pytest.raises(InputError, match=message):
        pca_control(raw, width, np.arange(len(raw)))
    with pytest.raises(InputError, match=message):
        untrained_control(raw, width, np.random.default_rng(0))


def test_invalid_fit_rows_are_rejected():
    with pytest.raises(InputError, match=r"'fit_rows' .*9 up to 8"):
        pca_control(np.eye(5), 2, np.arange(9))
    with pytest.raises(InputError, match="raw input is constant"):
        pca_control(np.ones((5, 3)), 2, np.arange(5))
