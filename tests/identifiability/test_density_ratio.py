"""The density ratio against closed forms: between Gaussians, and where the data do not reach."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.identifiability.isotropisation import fit_gaussian_ratio


def wrong(t: np.ndarray, exact: np.ndarray, inside: np.ndarray | slice = slice(None)) -> float:
    """Total variation between the weights of the rows and the exact ones, given as logarithms up to a constant."""
    fitted = fit_gaussian_ratio(t, np.random.default_rng(0))(t[inside])
    one, other = (np.exp(log) / np.exp(log).mean() for log in (fitted, exact[inside]))
    return float(np.abs(one - other).mean() / 2)


@pytest.mark.parametrize(("d", "spread"), [(1, 0.7), (1, 2.0), (2, 1.0), (2, 2.0), (5, 0.7), (5, 2.0)])
def test_between_gaussians(d: int, spread: float):
    t = spread * np.random.default_rng(1).standard_normal((3000, d))
    assert wrong(t, np.square(t).sum(1) / 2 * (1 / spread**2 - 1)) < 0.05 + 0.02 * d


def test_correlated_data():
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    t = np.random.default_rng(0).multivariate_normal(np.zeros(2), covariance, 3000)
    assert wrong(t, (np.einsum("bi,ij,bj->b", t, np.linalg.inv(covariance), t) - np.square(t).sum(1)) / 2) < 0.1


def test_independent_uniform_coordinates_in_many_dimensions():
    """Products of a curve of each coordinate: random directions alone would not see them."""
    t = np.random.default_rng(0).uniform(-np.sqrt(3), np.sqrt(3), (5000, 8))
    exact, inside = -np.square(t).sum(1) / 2, np.abs(t).max(1) < 1.6
    uniform = np.exp(exact[inside]) / np.exp(exact[inside]).mean()
    assert wrong(t, exact, inside) < 0.5 * np.abs(uniform - 1).mean() / 2


def test_what_the_data_do_not_reach_is_not_made_up_for_by_their_edge():
    """Uniform on [−1, 1], of which a Gaussian has 68%. The ratio at the edge is e^{−1/2} of that in the middle, or a
    little more; matching moments would have made it largest there."""
    t = np.random.default_rng(0).uniform(-1, 1, (2000, 1))
    middle, edge = fit_gaussian_ratio(t, np.random.default_rng(0))(np.array([[0.0], [0.9]]))
    assert -0.7 < edge - middle < 0.3


def test_far_rows_decide_nothing():
    rng = np.random.default_rng(0)
    t = rng.standard_normal((2000, 2))
    t[:5] = 1e6
    ratio = fit_gaussian_ratio(t, rng)
    assert np.isfinite(ratio(t)).all()
    assert ratio(t[5:]).std() < 0.2
    np.testing.assert_array_equal(ratio(np.array([[1e6, 1e6], [1e3, 1e3]])).round(9), [ratio(t[:1])[0].round(9)] * 2)
