"""Mehler's formula, contraction and loss decomposition, by quadrature and on samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gaussian_worlds import Polynomial, paired_quadrature, pairs, psi, rotation
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.identifiability import loss_decomposition, mehler_ladder, mehler_verdicts
from jepatlas.identifiability.theory.hermite import hermite_basis, multi_indices
from jepatlas.identifiability.theory.mehler import decays

rates = st.floats(0.05, 0.98)


def correlation(f: np.ndarray, f_next: np.ndarray, weights: np.ndarray) -> float:
    """Correlation between two views of a stationary function."""
    mean = weights @ f
    return float(weights @ ((f - mean) * (f_next - mean)) / (weights @ (f - mean) ** 2))


@settings(deadline=None, max_examples=25)
@given(rates, rates)
def test_degrees_are_orthogonal_and_decay_with_their_rates(one: float, two: float):
    """E ψ_k(z) ψ_l(z') = 1[k = l] ρ₁^k₁ ρ₂^k₂."""
    z, z_next, weights = paired_quadrature(2, 5, np.array([one, two]))
    across = hermite_basis(z, 3).T @ (weights[:, None] * hermite_basis(z_next, 3))
    np.testing.assert_allclose(across, np.diag(decays(multi_indices(2, 3), [one, two])), atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(rates, st.integers(0, 10_000), st.floats(0.01, 3.0))
def test_correlation_of_any_function_is_at_most_rho(rho: float, seed: int, bend: float):
    """Random networks of one variable: their linear share has correlation ρ, the rest at most ρ²."""
    a, b, c = np.random.default_rng(seed).standard_normal((3, 6))
    z, z_next, weights = paired_quadrature(1, 80, rho)

    def f(z: np.ndarray) -> np.ndarray:
        return z[:, 0] + bend * np.tanh(z * a / 2 + b) @ c

    kept = correlation(f(z), f(z_next), weights)
    slope = weights @ (f(z) * z[:, 0])
    linear = slope**2 / (weights @ f(z) ** 2 - (weights @ f(z)) ** 2)
    assert 0 <= linear < 1 + 1e-9
    assert rho * linear - 1e-5 <= kept <= rho * linear + rho**2 * (1 - linear) + 1e-5
    if linear < 0.99:
        assert kept < rho - 0.009 * rho * (1 - rho)


@settings(deadline=None, max_examples=30)
@given(rates, st.integers(0, 10_000))
def test_linear_functions_have_correlation_rho(rho: float, seed: int):
    slope, shift = np.random.default_rng(seed).standard_normal(2)
    z, z_next, weights = paired_quadrature(1, 5, rho)
    kept = correlation(slope * z[:, 0] + shift, slope * z_next[:, 0] + shift, weights)
    assert kept == pytest.approx(rho, rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 2), st.integers(1, 3), st.integers(0, 10_000), st.lists(rates, min_size=2, max_size=2))
def test_loss_decomposes_exactly(dim: int, out: int, seed: int, rho: list[float]):
    """Closed form = quadrature of E‖h − h'‖² = what the decomposition predicts from samples, one ρ per dimension."""
    h, given_rates = Polynomial(dim, 3, out, seed), np.array(rho[:dim])
    z, z_next, weights = paired_quadrature(dim, 5, given_rates)
    loss = float(weights @ np.square(h(z) - h(z_next)).sum(1))
    assert loss == pytest.approx(h.loss(given_rates), rel=1e-7)
    z, z_next = pairs(400, dim, given_rates, seed)
    rng = np.random.default_rng(seed)
    found = loss_decomposition(h(z), h(z_next), z, given_rates, rng, degree=3, replicates=2)
    assert found["predicted_least"].value == pytest.approx(loss, rel=1e-6)
    assert found["predicted_most"].value == pytest.approx(loss, rel=1e-6)
    assert sum(found[f"loss_{d}"].value for d in (1, 2, 3)) == pytest.approx(loss, rel=1e-6)


@settings(deadline=None, max_examples=40)
@given(rates, st.integers(0, 10_000))
def test_loss_is_minimal_for_linear_maps(rho: float, seed: int):
    """L ≥ 2(1−ρ) tr Cov h, with equality only for linear h."""
    h = Polynomial(2, 3, 2, seed)
    total = sum(h.variance(d) for d in (1, 2, 3))
    assert h.loss(np.array([rho, rho])) > 2 * (1 - rho) * total
    h.coefficients[[sum(k) > 1 for k in h.indices]] = 0
    assert h.loss(np.array([rho, rho])) == pytest.approx(2 * (1 - rho) * h.variance(1))


@pytest.mark.parametrize("rho", [0.9, [0.95, 0.6]])
def test_measured_ladder(rho: float | list[float]):
    z, z_next = pairs(12_000, 2, np.array(rho))
    h = Polynomial(2, 3, 3, seed=1)
    found = mehler_ladder(h(z), z, z_next, rho, np.random.default_rng(0), degree=3, replicates=200)
    for d in (1, 2, 3):
        width = found[f"correlation_{d}"].high - found[f"correlation_{d}"].low  # four standard errors
        assert abs(found[f"gap_{d}"].value) < width and 1e-3 < width < 0.1
    if isinstance(rho, float):
        kept = [found[f"correlation_{d}"].value for d in (1, 2, 3)]
        assert kept == pytest.approx([0.9, 0.81, 0.729], abs=0.02)


def test_ladder_matches_plain_correlations():
    """h has one term of each degree, so the correlations of its parts can be computed directly."""
    z, z_next = pairs(3000, 2, 0.8)
    parts = [psi((1, 0), z), psi((1, 1), z), psi((0, 3), z)]
    parts_next = [psi((1, 0), z_next), psi((1, 1), z_next), psi((0, 3), z_next)]
    h = np.sum(parts, axis=0)[:, None]
    found = mehler_ladder(h, z, z_next, 0.8, np.random.default_rng(0), degree=3, replicates=2)
    for d, (a, b) in enumerate(zip(parts, parts_next, strict=True), 1):
        expected = 2 * np.sum(a * b) / np.sum(a**2 + b**2)
        assert found[f"correlation_{d}"].value == pytest.approx(expected, rel=1e-6)
        assert found[f"gap_{d}"].value == pytest.approx(expected - 0.8**d, rel=1e-6)


def test_ladder_weights_dimensions_by_their_share_of_h():
    """h = 3z₁ + z₂ + e with rates .9 and .5: 9 parts of .9 and 1 of .5, whatever the noise."""
    z, z_next = pairs(8000, 2, np.array([0.9, 0.5]))
    h = (3 * z[:, 0] + z[:, 1] + np.random.default_rng(9).standard_normal(8000))[:, None]
    found = mehler_ladder(h, z, z_next, [0.9, 0.5], np.random.default_rng(0), degree=1, replicates=50)
    assert found["correlation_1"].value == pytest.approx(0.86, abs=0.01)
    assert abs(found["gap_1"].value) < 0.01


def test_absent_degree_has_no_correlation():
    z, z_next = pairs(600, 2, 0.8)
    h, h_next = z @ rotation(2), z_next @ rotation(2)
    rng = np.random.default_rng(0)
    ladder = mehler_ladder(h, z, z_next, 0.8, rng, degree=2, replicates=20)
    assert ladder["correlation_1"].value == pytest.approx(0.8, abs=0.05)
    assert math.isnan(ladder["correlation_2"].value)
    loss = loss_decomposition(h, h_next, z, 0.8, rng, degree=2, replicates=20)
    assert [v.name for v in mehler_verdicts(ladder, loss)] == ["ladder_1", "loss_decomposition"]


def test_intervals_cover_the_truth():
    """h = z + He₂/√2: correlations ρ and ρ², loss 2(1−ρ) + 2(1−ρ²). Of 60 intervals at 95%, 57 ± 1.7 should cover."""
    rho, covered = 0.7, {"correlation_1": 0, "correlation_2": 0, "loss": 0}
    truth = {"correlation_1": rho, "correlation_2": rho**2, "loss": 2 * (1 - rho) + 2 * (1 - rho**2)}
    for seed in range(60):
        z, z_next = pairs(500, 1, rho, seed)
        h, h_next = z + psi((2,), z)[:, None], z_next + psi((2,), z_next)[:, None]
        rng = np.random.default_rng(seed)
        found = mehler_ladder(h, z, z_next, rho, rng, degree=2, replicates=100)
        found |= loss_decomposition(h, h_next, z, rho, rng, degree=2, replicates=100)
        for name, value in truth.items():
            covered[name] += found[name].low <= value <= found[name].high
    assert min(covered.values()) >= 50


def test_loss_beyond_the_largest_degree_is_bracketed():
    """He₄ analysed up to degree 2: the loss 2(1−ρ⁴) lies between 2(1−ρ³) and 2."""
    z, z_next = pairs(20_000, 1, 0.8)
    h, h_next = psi((4,), z)[:, None], psi((4,), z_next)[:, None]
    found = loss_decomposition(h, h_next, z, 0.8, np.random.default_rng(0), degree=2, replicates=100)
    assert found["predicted_least"].value == pytest.approx(2 * (1 - 0.8**3), rel=0.2)
    assert found["predicted_most"].value == pytest.approx(2, rel=0.2)
    assert found["predicted_least"].value < found["loss"].value < found["predicted_most"].value
    assert found["gap"].value == 0


def verdicts(true_rho: float, claimed: float, law=lambda z: z) -> dict[str, bool | None]:
    z, z_next = (law(v) for v in pairs(20_000, 2, true_rho))
    h = Polynomial(2, 2, 2, seed=4)
    rng = np.random.default_rng(0)
    ladder = mehler_ladder(h(z), z, z_next, claimed, rng, degree=2, replicates=100)
    loss = loss_decomposition(h(z), h(z_next), z, claimed, rng, degree=2, replicates=100)
    return {verdict.name: verdict.passed for verdict in mehler_verdicts(ladder, loss)}


def test_verdicts_accept_only_the_gaussian_world():
    assert verdicts(0.9, 0.9) == {"ladder_1": True, "ladder_2": True, "loss_decomposition": True}
    assert verdicts(0.9, 0.7) == {"ladder_1": False, "ladder_2": False, "loss_decomposition": False}
    # Binary states ±1 from a copula: linear parts have correlation (2/π) asin ρ, far from ρ.
    assert verdicts(0.9, 0.9, lambda z: np.sign(z) * (0.99 + 0.01 * np.abs(z)))["ladder_1"] is False


def test_noise_does_not_pass_the_verdicts():
    z, z_next = pairs(60, 1, 0.5)
    rng = np.random.default_rng(0)
    ladder = mehler_ladder(z, z, z_next, 0.5, rng, degree=1, replicates=100)
    loss = loss_decomposition(z, z_next, z, 0.5, rng, degree=1, replicates=100)
    assert [verdict.passed for verdict in mehler_verdicts(ladder, loss)] == [False, False]


@pytest.mark.parametrize("rho", [0.0, 1.0, -0.5, math.nan, [0.5, 1.2]])
def test_rho_outside_the_unit_interval_is_rejected(rho: float | list[float]):
    z, z_next = pairs(90, 2, 0.5)
    with pytest.raises(InputError, match="rho"):
        mehler_ladder(z, z, z_next, rho, np.random.default_rng(0), degree=1)


def test_invalid_inputs_are_rejected():
    z, z_next = pairs(90, 2, 0.5)
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"rho.* 2 .* 3"):
        mehler_ladder(z, z, z_next, [0.5, 0.5, 0.5], rng, degree=1)
    with pytest.raises(InputError, match=r"'z' and 'z_next'.*\(90, 2\) and \(90, 1\)"):
        mehler_ladder(z, z, z_next[:, :1], 0.5, rng, degree=1)
    with pytest.raises(InputError, match="'h' and 'h_next'"):
        loss_decomposition(z, z_next[:, :1], z, 0.5, rng, degree=1)
    with pytest.raises(InputError, match="'h_next' has 89"):
        loss_decomposition(z, z_next[:-1], z, 0.5, rng, degree=1)
