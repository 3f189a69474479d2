"""Theorem 3: terms against their definitions, and the inequality for random polynomial maps with exact moments."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss, hermeval

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate
from jepatlas.identifiability import bound, bound_terms
from jepatlas.identifiability.standards import epsilon_of_sampling
from jepatlas.identifiability.theory.bound import bound_verdicts


def pairs(rows: int, dim: int, rho: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    z, noise = np.random.default_rng(seed).standard_normal((2, rows, dim))
    return z, rho * z + math.sqrt(1 - rho**2) * noise


def rotation(dim: int, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0]


def test_terms_match_their_definitions():
    h, h_next = pairs(50, 3, 0.7)
    h, h_next = h**2 + h, h_next**2 + h_next
    both = [*h, *h_next]
    mean = np.sum(both, axis=0) / 100
    covariance = np.sum([np.outer(row - mean, row - mean) for row in both], axis=0) / 100
    epsilon = math.sqrt(sum((covariance[i, j] - (i == j)) ** 2 for i in range(3) for j in range(3)))
    loss = sum(float(np.sum((a - b) ** 2)) for a, b in zip(h, h_next, strict=True)) / 50
    delta = loss - 2 * 0.3 * sum(covariance[i, i] for i in range(3))
    gap = delta / (2 * 0.7 * 0.3)
    assert gap > 0
    expected = {"epsilon": epsilon, "delta": delta, "gap": gap, "bound": gap + (epsilon + gap) ** 2}
    assert bound_terms(h, h_next, 0.7) == pytest.approx(expected, rel=1e-9)
    assert bound_terms(h, h_next, 0.7, np.full(50, 3.0)) == pytest.approx(expected, rel=1e-9)
    counts = np.random.default_rng(0).multinomial(50, np.full(50, 0.02))
    repeated = bound_terms(np.repeat(h, counts, axis=0), np.repeat(h_next, counts, axis=0), 0.7)
    assert bound_terms(h, h_next, 0.7, counts) == pytest.approx(repeated, rel=1e-9)


BROKEN = np.ones((30, 2))
BROKEN[3, 1] = np.nan


@pytest.mark.parametrize(
    ("h", "h_next", "rho", "message"),
    [
        (np.ones((30, 2)), np.ones((30, 3)), 0.5, r"'h' and 'h_next'.*\(30, 2\) and \(30, 3\)"),
        (np.ones((30, 2)), np.ones((20, 2)), 0.5, "same number of rows"),
        (np.ones((30, 2)), BROKEN, 0.5, "'h_next' has 1 NaN"),
        (np.ones((30, 2)), np.ones((30, 2)), 1.0, "rho.*1.0"),
        (np.ones((30, 2)), np.ones((30, 2)), 0.0, "rho.*0.0"),
        (np.ones(30), np.ones(30), 0.5, "'h'.*2-D"),
        (1e200 * np.ones((30, 2)), np.ones((30, 2)), 0.5, "too large to square"),
    ],
)
def test_invalid_inputs_are_rejected(h: np.ndarray, h_next: np.ndarray, rho: float, message: str):
    with pytest.raises(InputError, match=message):
        bound(h, h_next, rho, np.random.default_rng(0))
    with pytest.raises(InputError, match=message):
        bound_terms(h, h_next, rho)


def test_weights_must_match_the_rows():
    for weights in (np.ones(29), -np.ones(30), np.zeros(30)):
        with pytest.raises(InputError, match="'weights'"):
            bound_terms(np.ones((30, 2)), np.ones((30, 2)), 0.5, weights)
    plain = bound_terms(*pairs(30, 2, 0.5), 0.5)
    assert bound_terms(*(view.tolist() for view in pairs(30, 2, 0.5)), 0.5) == plain  # pyright: ignore


def test_negative_gap_is_clipped_to_zero():
    h, _ = pairs(500, 2, 0.5)
    terms = bound_terms(h, h, 0.5)  # views closer than ρ allows
    assert terms["delta"] < 0 and terms["gap"] < 0 and terms["bound"] == pytest.approx(terms["epsilon"] ** 2)


# Exact moments: h has coefficients in normalised Hermite polynomials He_a(z1) He_b(z2) / √(a! b!), which are
# orthonormal under the Gaussian and keep correlation ρ^(a+b). Five Gauss–Hermite nodes integrate up to degree 9; degree
# 6 is needed.

DEGREES = [(a, b) for a, b in itertools.product(range(4), repeat=2) if a + b <= 3]
NODES, NODE_WEIGHTS = hermegauss(5)


def polynomial(coefficients: np.ndarray, z: np.ndarray) -> np.ndarray:
    def basis(degree: int, x: np.ndarray) -> np.ndarray:
        return hermeval(x, [0.0] * degree + [1.0]) / math.sqrt(math.factorial(degree))

    features = np.stack([basis(a, z[:, 0]) * basis(b, z[:, 1]) for a, b in DEGREES], 1)
    return features @ coefficients.T


def exact_terms(coefficients: np.ndarray, rho: float) -> dict[str, float]:
    """`bound_terms` on quadrature nodes in (z, η): population moments up to rounding."""
    grid = np.array(list(itertools.product(NODES, repeat=4)))
    weights = np.array([math.prod(w) for w in itertools.product(NODE_WEIGHTS, repeat=4)])
    z, noise = grid[:, :2], grid[:, 2:]
    z_next = rho * z + math.sqrt(1 - rho**2) * noise
    return bound_terms(polynomial(coefficients, z), polynomial(coefficients, z_next), rho, weights / weights.sum())


def exact_error(coefficients: np.ndarray) -> float:
    """min_Q E‖h − E h − Qz‖² = Σ‖c‖² − 2‖A‖_* + n, with A the linear coefficients."""
    centred = np.delete(coefficients, DEGREES.index((0, 0)), axis=1)
    linear = coefficients[:, [DEGREES.index((1, 0)), DEGREES.index((0, 1))]]
    return float(np.sum(centred**2) - 2 * np.linalg.svd(linear)[1].sum() + 2)


coefficient = st.floats(-1, 1, allow_subnormal=False)
rates = st.floats(0.05, 0.98)


@settings(deadline=None, max_examples=150)
@given(st.lists(coefficient, min_size=20, max_size=20), st.integers(0, 100), st.floats(0, 1), rates)
def test_inequality_holds_for_polynomial_maps(numbers: list[float], seed: int, bend: float, rho: float):
    """From a rotation (bend 0) to an arbitrary cubic polynomial, constant term included (bend 1)."""
    coefficients = bend * np.reshape(numbers, (2, 10))
    coefficients[:, [DEGREES.index((1, 0)), DEGREES.index((0, 1))]] += rotation(2, seed)
    terms = exact_terms(coefficients, rho)
    powers = np.array([1 - rho ** (a + b) for a, b in DEGREES])
    energies = np.sum(coefficients**2, axis=0)
    total = energies.sum() - energies[DEGREES.index((0, 0))]
    assert terms["delta"] == pytest.approx(2 * powers @ energies - 2 * (1 - rho) * total, abs=1e-8)
    nonlinear = sum(e for e, (a, b) in zip(energies, DEGREES, strict=True) if a + b > 1)
    assert nonlinear <= terms["gap"] + 1e-8
    assert exact_error(coefficients) <= terms["bound"] + 1e-8


def test_inequality_is_not_vacuous():
    """A rotation has bound 0, and a small second harmonic a bound of the same order."""
    coefficients = np.zeros((2, 10))
    coefficients[:, [DEGREES.index((1, 0)), DEGREES.index((0, 1))]] = rotation(2)
    assert exact_terms(coefficients, 0.8)["bound"] < 1e-12 and exact_error(coefficients) < 1e-12
    coefficients[0, DEGREES.index((2, 0))] = 0.1
    # All energy above degree one has degree two, so D equals that energy.
    assert exact_terms(coefficients, 0.8)["gap"] == pytest.approx(0.01)
    assert exact_error(coefficients) == pytest.approx(0.01)
    assert exact_terms(coefficients, 0.8)["bound"] < 0.02
    # A white second harmonic alone is not a rotation, and the bound is large.
    coefficients[:] = 0
    coefficients[0, DEGREES.index((2, 0))] = coefficients[1, DEGREES.index((0, 2))] = 1
    assert exact_terms(coefficients, 0.8)["epsilon"] < 1e-12
    assert 2 <= exact_error(coefficients) <= exact_terms(coefficients, 0.8)["bound"]


def test_bound_is_invariant_to_the_mean():
    z, z_next = pairs(20_000, 3, 0.9)
    plain, shifted = bound_terms(z, z_next, 0.9), bound_terms(z + 50, z_next + 50, 0.9)
    assert shifted == pytest.approx(plain, abs=1e-8) and plain["bound"] < 0.05


def test_epsilon_detects_scaling():
    z, z_next = pairs(20_000, 3, 0.9)
    assert bound_terms(3 * z, 3 * z_next, 0.9)["epsilon"] == pytest.approx(8 * math.sqrt(3), rel=0.05)


def test_intervals_cover_the_truth():
    """h = He₂/√2: δ = 2(1 − ρ²) − 2(1 − ρ) = 2ρ(1 − ρ), D = 1. Of 60 intervals at 95%, 57 ± 1.7 should cover."""
    rho, covered = 0.6, 0
    for seed in range(60):
        h, h_next = ((v**2 - 1) / math.sqrt(2) for v in pairs(1500, 1, rho, seed))
        gap = bound(h, h_next, rho, np.random.default_rng(seed), replicates=150)["gap"]
        assert gap.n == 1500
        covered += gap.low <= 1 <= gap.high
    assert covered >= 50


def test_groups_widen_the_interval():
    order = np.random.default_rng(1).permutation(1600)  # neighbours would be resampled together, also without groups
    z, z_next = (np.repeat(v, 8, axis=0)[order] for v in pairs(200, 2, 0.5))
    groups = np.repeat(np.arange(200), 8)[order]

    def width(labels: np.ndarray | None) -> float:
        found = bound(z, z_next, 0.5, np.random.default_rng(0), groups=labels, replicates=300)["delta"]
        return found.high - found.low

    assert width(groups) == pytest.approx(math.sqrt(8) * width(None), rel=0.15)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("dim", [1, 4])
def test_epsilon_null_matches_sampled_white_latents(dim: int, rho: float):
    squares = [bound_terms(*pairs(400, dim, rho, seed), 0.5)["epsilon"] ** 2 for seed in range(200)]
    assert math.sqrt(np.mean(squares)) == pytest.approx(epsilon_of_sampling(dim, 400, rho), rel=0.12)


@pytest.mark.parametrize("rho", [0.0, 1.0, -0.5, 1.5, math.nan])
def test_rho_outside_the_unit_interval_is_rejected(rho: float):
    z, z_next = pairs(10, 2, 0.5)
    with pytest.raises(InputError, match=rf"rho.*{rho}"):
        bound(z, z_next, rho, np.random.default_rng(0))


def test_estimated_rho_is_used_at_its_limits():
    z, z_next = pairs(4000, 2, 0.9)
    rho = Estimate(0.9, 0.88, 0.92, 1000)
    found = bound(z, z_next, rho, np.random.default_rng(0), replicates=100)
    high, low = (bound(z, z_next, rate, np.random.default_rng(0), replicates=100) for rate in (0.92, 0.88))
    for name in ("delta", "gap", "bound"):
        assert found[name].value == high[name].value == pytest.approx(bound_terms(z, z_next, 0.92)[name])
        assert found[name].high == pytest.approx(high[name].high, rel=0.1)
        assert found[name].low == pytest.approx(low[name].low, rel=0.3, abs=2e-3) and found[name].low < high[name].low


def test_bound_is_undecided_if_rho_or_sampling_makes_it_loose():
    def judged(epsilon: tuple[float, float], gap: tuple[float, float], null: float) -> bool | None:
        low, high = ((gap[i] + (epsilon[i] + gap[i]) ** 2) for i in (0, 1))
        limits = {"epsilon": epsilon, "gap": gap, "delta": gap, "bound": (low, high)}
        terms = {name: Estimate(high, low, high, 100) for name, (low, high) in limits.items()}
        (verdict,) = (v for v in bound_verdicts(terms, 2, null, estimated=" estimated") if v.name == "bound")
        assert verdict.threshold == 0.04 and "estimated" in verdict.advice
        return verdict.passed

    assert judged((0.1, 0.1), (0.01, 0.02), 0.1) is True
    assert judged((0.1, 0.1), (0.01, 0.06), 0.1) is None  # ρ is uncertain
    assert judged((0.3, 0.4), (0.01, 0.02), 0.3) is None  # few rows in many dimensions
    assert judged((0.3, 0.4), (0.01, 0.02), 0.1) is False
    assert judged((0.1, 0.1), (0.05, 0.06), 0.1) is False
