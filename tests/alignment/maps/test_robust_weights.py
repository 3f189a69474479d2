"""Robust maps: mismatched pairs are found, clean pairs are kept, and uncertain pairs keep partial weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from jepatlas.alignment.maps.map_estimators import LeastSquaresMap, ProcrustesMap, RidgeMap, RobustMap
from jepatlas.alignment.maps.robust_weights import central_weights, robust_weights
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.linear_moments import PairMoments, least_squares_of


def agents(
    seed: int, n: int, dim: int, *, noise: float = 0.3, mismatched: float = 0.0, width: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Latents of two models, and which of their pairs are mismatched."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(dim, width or dim)) / np.sqrt(dim)
    x = rng.normal(size=(n, dim)) + 2
    y = x @ weight + noise * rng.normal(size=(n, width or dim)) - 1
    bad = rng.permutation(n)[: round(mismatched * n)]
    y[bad] = y[np.roll(bad, 1)]
    return x, y, np.isin(np.arange(n), bad)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize(("n", "dim"), [(2000, 64), (1000, 8)])
def test_mismatched_pairs_do_not_bias_the_map(n: int, dim: int, noise: float):
    """30% of the pairs are mismatched. Scores are measured on clean held-out pairs."""
    x, y, _ = agents(0, n + 1000, dim, noise=noise)
    fit, score = slice(n), slice(n, None)
    order = np.arange(n)
    shuffled = np.random.default_rng(1).permutation(n)[: 3 * n // 10]
    order[shuffled] = order[np.roll(shuffled, 1)]
    bad = order != np.arange(n)
    clean = LeastSquaresMap().fit(x[fit][~bad], y[fit][~bad]).score(x[score], y[score])
    plain = LeastSquaresMap().fit(x[fit], y[fit][order]).score(x[score], y[score])
    robust = RobustMap().fit(x[fit], y[fit][order])
    assert abs(robust.score(x[score], y[score]) - clean) < 0.001  # the requirement is 0.01
    assert plain < clean - 0.03
    found = np.isin(np.arange(n), robust.distrusted_)
    precision, recall = bad[found].mean(), found[bad].mean()
    if dim == 64:
        assert precision > 0.99 and recall > 0.99
    # in few dimensions some mismatched pairs fit by chance; the weights estimate how many
    assert precision == pytest.approx(1 - robust.trust_[found].mean(), abs=0.1)
    assert recall == pytest.approx((1 - robust.trust_)[found].sum() / (1 - robust.trust_).sum(), abs=0.1)


@pytest.mark.parametrize(("n", "dim", "width"), [(2000, 64, 64), (200, 64, 64), (500, 2, 2), (500, 3, 20), (60, 2, 2)])
def test_clean_pairs_are_trusted(n: int, dim: int, width: int):
    for seed in range(3):
        x, y, _ = agents(seed, n, dim, width=width)
        robust, plain = RobustMap().fit(x, y), LeastSquaresMap().fit(x, y)
        assert len(robust.distrusted_) <= 0.02 * n
        assert robust.score(x, y) == pytest.approx(plain.score(x, y), abs=0.001)


@pytest.mark.parametrize("kind", ["y", "x", "both"])
def test_gross_outliers_are_found(kind: str):
    """Outliers in y, in x (with the largest leverage), and in both at one place."""
    x, y, _ = agents(0, 1000, 8)
    rng = np.random.default_rng(1)
    off = np.arange(300)
    if kind != "x":
        y[off] = 100 * rng.normal(size=(300, 8)) if kind == "y" else -20 + 0.1 * rng.normal(size=(300, 8))
    if kind != "y":
        x[off] = 50 * rng.normal(size=(300, 8)) if kind == "x" else 20 + 0.1 * rng.normal(size=(300, 8))
    robust = RobustMap().fit(x, y)
    assert np.isin(off, robust.distrusted_).all() and len(robust.distrusted_) < 310
    expected = LeastSquaresMap().fit(x[300:], y[300:])
    np.testing.assert_allclose(robust.map_.weight, expected.map_.weight, atol=0.02)


def reference(x: np.ndarray, y: np.ndarray, weights: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """One step from the definition: numpy's least squares on other folds, scipy's densities, Bayes' rule."""
    left = np.empty_like(y)
    for k in np.unique(fold):
        others = fold != k
        roots = np.sqrt(weights[others])[:, None]
        ones = np.hstack([x, np.ones((len(x), 1))])
        solution = np.linalg.lstsq(roots * ones[others], roots * y[others], rcond=None)[0]
        left[fold == k] = (y - ones @ solution)[fold == k]
    mean = np.average(y, axis=0, weights=weights)

    def covariance(rows: np.ndarray, freedom: float) -> np.ndarray:
        sample = np.einsum("n,ni,nj->ij", weights, rows, rows) / weights.sum()
        kept = freedom / (freedom + rows.shape[1])
        return np.where(np.eye(len(sample), dtype=bool), sample, kept * sample)

    def density(rows: np.ndarray, freedom: float) -> np.ndarray:
        spread: Any = covariance(rows, freedom)
        return multivariate_normal(np.zeros(rows.shape[1]), spread).pdf(rows)

    share = weights.mean()
    matched = share * density(left, weights.sum() - x.shape[1] - 1)
    mismatched = (1 - share) * density(y - mean, weights.sum() - 1)
    return matched / (matched + mismatched)


def test_trust_is_a_fixed_point_of_the_posterior():
    x, y, _ = agents(0, 400, 2, noise=0.5, mismatched=0.3, width=3)
    weights = robust_weights(
        x, y, lambda fit, held: least_squares_of(fit.merge(held)), np.random.default_rng(7), folds=4
    )
    fold = np.random.default_rng(7).permutation(400) % 4
    np.testing.assert_allclose(reference(x, y, weights, fold), weights, atol=0.01)
    assert (
        (weights > 0.05) & (weights < 0.95)
    ).mean() > 0.1  # many weights are uncertain here, so the test is not trivial


def test_the_same_random_state_gives_the_same_trust():
    x, y, _ = agents(0, 300, 4, noise=0.5, mismatched=0.3)
    first, again, other = (RobustMap(random_state=seed).fit(x, y).trust_ for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_allclose(first, other, atol=0.3)


@pytest.mark.parametrize(("n", "dim"), [(500, 1), (500, 2), (200, 16), (1000, 8)])
def test_pairs_of_unrelated_latents_have_equal_trust(n: int, dim: int):
    """The sign test rejects chance fits in all but about 2% of the runs."""
    distrusting = 0
    for seed in range(10):
        x, y = np.random.default_rng(seed).normal(size=(2, n, dim))
        robust = RobustMap().fit(x, y)
        distrusting += len(robust.distrusted_) > 0
        if not len(robust.distrusted_):
            np.testing.assert_allclose(robust.map_.weight, LeastSquaresMap().fit(x, y).map_.weight)
    assert distrusting <= 1


def test_too_few_pairs_have_full_trust():
    for n, dim in ((40, 30), (5, 2), (1, 1)):
        x, y, _ = agents(0, n, dim, mismatched=0.3)
        assert (RobustMap().fit(x, y).trust_ == 1).all()
    with pytest.raises(InputError, match=r"'folds'.* 2 was given"):
        RobustMap(folds=2).fit(*agents(0, 100, 2)[:2])


def test_prior_finds_mismatched_pairs_among_few_pairs():
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    x = rng.normal(size=(75, 30))
    y = x @ turn + 0.2 * rng.normal(size=x.shape)
    bad = np.arange(22)
    y[bad] = y[np.roll(bad, 1)]
    for prior in (ProcrustesMap(), RidgeMap()):
        found = np.isin(np.arange(75), RobustMap(prior).fit(x, y).distrusted_)
        assert found[bad].mean() > 0.9 and not found[22:].any()


def test_folds_do_not_split_groups():
    groups = np.random.default_rng(1).permutation(np.repeat(np.arange(20), 5))
    x, y, _ = agents(0, 100, 2)
    fits: list[tuple[PairMoments, PairMoments]] = []

    def keep(fit: PairMoments, held: PairMoments) -> LinearMap:
        fits.append((fit, held))
        return least_squares_of(fit.merge(held))

    robust_weights(x, y, keep, np.random.default_rng(0), groups=groups, folds=4, steps=1)
    order = (np.random.default_rng(0).permutation(20) % 4)[groups]  # the fold of each group
    weights = central_weights(np.hstack([x, y]))
    for k, (fit, held) in enumerate(fits[:4]):
        others = order != k
        np.testing.assert_allclose(fit.merge(held).x_mean, np.average(x[others], axis=0, weights=weights[others]))
        chosen = order == (k + 1) % 4
        np.testing.assert_allclose(held.x_mean, np.average(x[chosen], axis=0, weights=weights[chosen]))


def test_groups_are_used_to_choose_the_penalty():
    """With copies of few pairs, holding out rows selects the smallest penalty and holding out groups does not."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30)[::-1], 8)
    x = np.repeat(rng.normal(size=(30, 20)), 8, axis=0)
    y = np.repeat(rng.normal(size=(30, 3)), 8, axis=0) + x[:, :3]
    robust, plain = RobustMap(RidgeMap()), RidgeMap()
    robust.fit(x, y, groups)
    assert (robust.trust_ == 1).all()  # otherwise the two are not comparable
    np.testing.assert_allclose(robust.map_.weight, plain.fit(x, y, groups).map_.weight)
    assert np.abs(robust.map_.weight - plain.fit(x, y).map_.weight).max() > 0.01
    with pytest.raises(InputError, match=r"'groups' .* 240 rows.* 3"):
        robust.fit(x, y, [1, 2, 3])
