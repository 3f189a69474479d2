"""Eigenfunctions against closed forms, and Theorem 2: monotone f₁, k zeros of f_k, affine only if Gaussian."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermeval

from jepatlas.core.errors import InputError
from jepatlas.identifiability import SturmLiouville, sturm_liouville, sturm_liouville_generalised_normal

WALL = math.sqrt(3)


def zeros(function: np.ndarray) -> int:
    return int(np.count_nonzero(np.diff(np.sign(function))))


def check_theorem(found: SturmLiouville) -> None:
    """Properties for every distribution: oscillation, order, orthonormality, monotonicity."""
    assert [zeros(f) for f in found.eigenfunctions] == list(range(1, len(found.eigenvalues) + 1))
    assert found.eigenvalues[0] > 0 and (np.diff(found.eigenvalues) > 0).all()
    assert (np.diff(found.eigenfunctions[0]) > 0).all()
    assert 0 < found.affinity < 1 + 1e-9
    products = found.density * found.eigenfunctions[:, None] * found.eigenfunctions[None]
    np.testing.assert_allclose(np.trapezoid(products, found.x), np.eye(len(products)), atol=5e-3)


@pytest.mark.parametrize(("mean", "scale"), [(0.0, 1.0), (2.0, 0.3), (-5.0, 10.0)])
def test_gaussian_has_hermite_polynomials(mean: float, scale: float):
    found = sturm_liouville(lambda x: -(((x - mean) / scale) ** 2) / 2 + 7, 6)
    np.testing.assert_allclose(found.eigenvalues * scale**2, np.arange(1, 7), atol=1e-7)
    z = (found.x - mean) / scale
    for k, function in enumerate(found.eigenfunctions, 1):
        expected = hermeval(z, [0.0] * k + [1.0]) / math.sqrt(math.factorial(k))
        np.testing.assert_allclose(function, expected, atol=2e-6 * np.abs(expected).max())
    inner = np.abs(z) < 5
    np.testing.assert_allclose(found.eigenfunctions[0][inner], z[inner], atol=1e-7)
    assert found.affinity == pytest.approx(1, abs=1e-9) and found.reason is None
    np.testing.assert_allclose(found.density, scipy.stats.norm.pdf(z) / scale, rtol=1e-6)
    assert z.max() > 8
    check_theorem(found)


def test_uniform_has_cosines():
    found = sturm_liouville(np.zeros_like, 5, support=(-WALL, WALL))
    k = np.arange(1, 6)
    np.testing.assert_allclose(found.eigenvalues, (k * math.pi / (2 * WALL)) ** 2, rtol=1e-8)
    for mode, function in zip(k, found.eigenfunctions, strict=True):
        expected = math.sqrt(2) * np.cos(mode * math.pi * (WALL - found.x) / (2 * WALL))
        np.testing.assert_allclose(function, expected, atol=1e-6)
    assert found.affinity == pytest.approx(96 / math.pi**4, abs=1e-6)
    assert found.x[0] > -WALL and found.x[-1] < WALL
    check_theorem(found)


@pytest.mark.parametrize("power", [1.5, 2.5, 4.0])
def test_hyperbolic_secant_has_finitely_many_eigenfunctions(power: float):
    """p ∝ sech^{2ℓ}: f₁ = sinh, λ_k = ℓ² − (ℓ−k)² for k < ℓ, continuous above ℓ². So exponential tails can have f₁."""
    found = sturm_liouville(lambda x: -2 * power * np.logaddexp(x, -x), 3)
    exist = min(3, math.ceil(power) - 1)
    k = np.arange(1, exist + 1)
    np.testing.assert_allclose(found.eigenvalues, power**2 - (power - k) ** 2, atol=1e-6)
    near = np.abs(found.x) < 3
    ratio = found.eigenfunctions[0][near] / np.sinh(found.x[near] + 1e-300)
    np.testing.assert_allclose(ratio[np.abs(found.x[near]) > 0.01], ratio[0], rtol=1e-5)
    assert (found.reason is None) == (exist == 3)
    if exist < 3:
        assert f"Only {exist} of 3 eigenfunctions" in (found.reason or "")
    check_theorem(found)


def test_half_gaussian_has_the_even_polynomials():
    found = sturm_liouville(lambda x: -(x**2) / 2, 3, support=(0, math.inf))
    np.testing.assert_allclose(found.eigenvalues, [2, 4, 6], atol=1e-6)


def test_density_that_vanishes_at_its_boundary():
    """p ∝ cos² on [−π/2, π/2]: √p f solves −g'' = (λ+1) g with g = 0 at the walls, so λ_k = (k+1)² − 1."""
    half = math.pi / 2
    found = sturm_liouville(lambda x: 2 * np.log(np.cos(x)), 4, support=(-half, half))
    np.testing.assert_allclose(found.eigenvalues, np.arange(2, 6) ** 2 - 1, rtol=1e-5)
    check_theorem(found)


def test_double_well():
    """N(±3, 1): one slow mode between the wells, close to a step function, then the modes within the wells."""
    found = sturm_liouville(lambda x: np.logaddexp(-((x - 3) ** 2) / 2, -((x + 3) ** 2) / 2))
    assert found.eigenvalues[0] < 0.05 and found.eigenvalues[1] > 0.9
    check_theorem(found)


@settings(deadline=None, max_examples=15)
@given(st.floats(1.15, 40))
def test_warp_is_affine_only_for_the_gaussian(alpha: float):
    """Generalised normals of variance 1: λ₁ ≤ 1 (Poincaré) with equality, and an affine f₁, only at α = 2."""
    found = sturm_liouville_generalised_normal(alpha)
    check_theorem(found)
    away = abs(alpha - 2)
    assert found.eigenvalues[0] <= 1 + 1e-8 and found.affinity <= 1 + 1e-10
    if away > 0.05:
        assert found.eigenvalues[0] < 1 - 1e-5 and found.affinity < 1 - 1e-5
    variance = np.trapezoid(found.density * found.x**2, found.x)
    assert variance == pytest.approx(1, rel=1e-4)


@settings(deadline=None, max_examples=15)
@given(st.floats(0, 0.5), st.floats(0, 0.3), st.floats(-0.5, 0.5))
def test_poincare_inequality_for_random_distributions(quartic: float, cosine: float, tilt: float):
    """λ₁ Var f ≤ E f'² with equality for f₁; f₁ is affine only without quartic and cosine terms."""

    def log_density(x: np.ndarray) -> np.ndarray:
        return -(x**2) / 2 - quartic * x**4 + cosine * np.cos(2 * x) + tilt * x

    found = sturm_liouville(log_density)
    check_theorem(found)
    p, x = found.density, found.x

    def quotient(f: np.ndarray, slope: np.ndarray) -> float:
        mean = np.trapezoid(p * f, x)
        return float(np.trapezoid(p * slope**2, x) / np.trapezoid(p * (f - mean) ** 2, x))

    first = found.eigenvalues[0]
    assert quotient(x, np.ones_like(x)) >= first - 1e-6
    assert quotient(np.sin(x), np.cos(x)) >= first - 1e-6
    assert quotient(x**3, 3 * x**2) >= first - 1e-6
    f1 = found.eigenfunctions[0]
    assert quotient(f1, np.gradient(f1, x)) == pytest.approx(first, rel=2e-4)
    if max(quartic, cosine) > 0.02:
        assert found.affinity < 1 - 1e-7 and quotient(x, np.ones_like(x)) > first + 1e-7
    if max(quartic, cosine) == 0:
        assert found.affinity == pytest.approx(1, abs=1e-9)


def test_eigenfunction_satisfies_the_differential_equation():
    """(p f')' = −λ p f, integrated once: p f' = λ ∫_x^∞ p f at every x, for a distribution without closed form."""
    found = sturm_liouville_generalised_normal(4.0, 3)
    inner = slice(200, -200)
    for value, f in zip(found.eigenvalues, found.eigenfunctions, strict=True):
        pieces = np.diff(found.x) * (found.density * f)[1:] / 2 + np.diff(found.x) * (found.density * f)[:-1] / 2
        right = np.r_[np.cumsum(pieces[::-1])[::-1], 0]
        left = found.density * np.gradient(f, found.x)
        np.testing.assert_allclose(left[inner], value * right[inner], atol=2e-5)


@pytest.mark.parametrize("alpha", [0.125, 0.5, 1.0])
def test_heavy_tailed_generalised_normals_have_no_eigenfunction(alpha: float):
    found = sturm_liouville_generalised_normal(alpha)
    assert len(found.eigenvalues) == 0 and found.eigenfunctions.shape == (0, len(found.x))
    assert math.isnan(found.affinity)
    assert "first eigenfunction" in (found.reason or "") and f"α = {alpha:g}" in (found.reason or "")
    assert ("from 1/(4s²) = 0.5 upward" in (found.reason or "")) == (alpha == 1)
    assert np.isfinite(found.density).all() and found.density.max() > 0
    assert np.trapezoid(found.density, found.x) == pytest.approx(1, abs=1e-3)
    scale = 1 / scipy.stats.gennorm.std(alpha)
    np.testing.assert_allclose(found.density, scipy.stats.gennorm.pdf(found.x, alpha, scale=scale), rtol=1e-9)
    with pytest.raises(InputError, match="first eigenfunction"):
        found.warp(np.zeros(1))


@pytest.mark.parametrize(
    ("log_density", "low"),
    [
        (lambda x: -np.abs(x), -math.inf),
        (lambda x: -np.sqrt(np.abs(x)), -math.inf),
        (lambda x: -2 * np.logaddexp(x / 2, -x / 2), -math.inf),  # logistic: its first mode is exactly at the edge
        (lambda x: -3 * np.log1p(x**2 / 5), -math.inf),  # Student t
        (lambda x: -np.log1p(x**2), -math.inf),  # Cauchy
        (lambda x: -x, 0.0),  # exponential
    ],
)
def test_heavy_tails_are_detected_from_the_density(log_density, low: float):
    found = sturm_liouville(log_density, 2, support=(low, math.inf))
    assert len(found.eigenvalues) == 0 and "first eigenfunction" in (found.reason or "")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("freedom", [1.5, 3.0, 4.0, 7.0, 10.0, 15.0, 20.0])
def test_rounding_is_not_reported_as_an_eigenfunction(freedom: float, count: int):
    """The spectrum of Student's t is continuous from 0; near 0, rounding resembles an eigenvalue."""
    found = sturm_liouville(lambda x: -(freedom + 1) / 2 * np.log1p(x**2 / freedom), count)
    assert len(found.eigenvalues) == 0 and "first eigenfunction" in (found.reason or "")


@pytest.mark.parametrize(
    ("log_density", "low"),
    [
        (lambda x: -(np.abs(x) ** 0.3), -math.inf),
        (lambda x: -(np.log(x) ** 2) / 2 - np.log(x), 0.0),  # log-normal
        (lambda x: -3 * np.log(x), 1.0),  # Pareto
    ],
)
def test_other_heavy_tails_have_no_eigenfunction(log_density, low: float):
    assert len(sturm_liouville(log_density, 2, support=(low, math.inf)).eigenvalues) == 0


@pytest.mark.parametrize("apart", [4.0, 6.0])
def test_deep_double_well_has_a_tiny_positive_eigenvalue(apart: float):
    """λ₁ is tiny but above rounding: crossing the barrier takes a time of about e^{apart²/2}."""
    found = sturm_liouville(lambda x: np.logaddexp(-((x - apart) ** 2) / 2, -((x + apart) ** 2) / 2), 3)
    check_theorem(found)
    assert found.reason is None and 0 < found.eigenvalues[0] < 1e-2


@pytest.mark.parametrize("law", [scipy.stats.uniform(-1, 2), scipy.stats.beta(2, 2), scipy.stats.truncnorm(-1, 1)])
def test_boundary_of_the_support_is_detected(law):
    found, expected = (sturm_liouville(law.logpdf, 3, support=ends) for ends in ((-math.inf, math.inf), law.support()))
    check_theorem(found)
    assert found.eigenvalues == pytest.approx(expected.eigenvalues, rel=1e-4)


def test_each_failure_reports_its_reason():
    wells = sturm_liouville(lambda x: np.logaddexp(-((x - 7) ** 2) / 2, -((x + 7) ** 2) / 2), 2)
    assert len(wells.eigenvalues) == 0 and "wells so deep" in (wells.reason or "")
    steep = sturm_liouville_generalised_normal(3000.0, 2)
    assert len(steep.eigenvalues) == 0 and "'points'" in (steep.reason or "")
    flat = sturm_liouville_generalised_normal(0.005, 2)
    assert len(flat.eigenvalues) == 0 and "for α ≤ 1" in (flat.reason or "")


def test_warp_function():
    found = sturm_liouville_generalised_normal(6.0)
    x = np.linspace(-6, 6, 4001)
    y = found.warp(x)
    assert (np.diff(y) > 0).all() and found.warp(found.x[:3]) == pytest.approx(found.eigenfunctions[0][:3])
    assert found.warp(np.zeros((2, 3))).shape == (2, 3)
    beyond = found.warp(np.array([10.0, 11.0, 12.0]))
    assert np.diff(beyond, 2) == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(y, -y[::-1], atol=1e-6)  # a symmetric distribution has an odd warp


@pytest.mark.parametrize(
    ("log_density", "options", "message"),
    [
        (lambda x: -(x**2), {"support": (1.0, 0.0)}, r"support.*\(1.0, 0.0\)"),
        (lambda x: -(x**2), {"count": 0}, "count.* 0"),
        (lambda x: x * np.nan, {}, "log_density"),
        (lambda x: np.float64(1.0), {}, "log_density"),
        (lambda x: x, {}, "log_density"),
        (np.zeros_like, {}, "log_density"),
        (lambda x: -np.log1p(np.log1p(x**2)), {}, "log_density.*'support'"),
        (lambda x: np.full_like(x, -np.inf), {"support": (0.0, 1.0)}, "log_density has no maximum"),
    ],
)
def test_invalid_inputs_are_rejected(log_density, options: dict, message: str):
    with pytest.raises(InputError, match=message):
        sturm_liouville(log_density, **options)


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.inf, math.nan])
def test_invalid_exponent_is_rejected(alpha: float):
    with pytest.raises(InputError, match=f"alpha.*{alpha}"):
        sturm_liouville_generalised_normal(alpha)
