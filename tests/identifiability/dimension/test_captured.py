"""Captured share of a known state, superposition and directional coverage, on constructed cases."""

from __future__ import annotations

import numpy as np
import pytest
from gaussian_worlds import rotation
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.linear import hold_out
from jepatlas.core.records import Verdict
from jepatlas.identifiability import Captured, captured, name_direction
from jepatlas.identifiability.dimension.captured import coverage
from jepatlas.identifiability.regressions import decode
from jepatlas.identifiability.resampling import Halves


def states(rows: int, n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, n))


def held(h: np.ndarray, z: np.ndarray, replicates: int = 20, **options) -> Captured:
    rng = np.random.default_rng(1)
    return captured(h, z, hold_out(len(h), rng, groups=options.get("groups")), rng, replicates=replicates, **options)


def values(found: Captured) -> dict[str, float]:
    return {name: estimate.value for name, estimate in found.measures.items()}


@settings(deadline=None, max_examples=5)
@given(st.integers(1, 3), st.integers(0, 2), st.integers(0, 1000))
def test_orthonormal_projection(m: int, more: int, seed: int):
    """h = Py without noise: m directions are captured fully, those of the null space of P not at all."""
    n = m + more
    z = states(2000, n, seed)
    a = rotation(n, seed)[:m]
    found = held(z @ a.T + 5, z)
    shares = [share.value for share in found.shares]
    np.testing.assert_allclose(shares, [1.0] * m + [0.0] * more, atol=0.02)
    np.testing.assert_allclose(found.directions[m:] @ a.T, 0, atol=0.15)
    projector = a.T @ a
    np.testing.assert_allclose([c.value for c in found.coordinates], np.diag(projector), atol=0.08)
    numbers = values(found)
    assert numbers["held"] == pytest.approx(m, abs=0.03) and numbers["held_nonlinear"] == pytest.approx(m, abs=0.05)
    assert numbers["projection"] < 0.15
    assert numbers["participation"] == pytest.approx(m**2 / np.square(np.diag(projector)).sum(), rel=0.12)


def test_coordinates_sharing_one_latent():
    """One latent and four coordinates: its participation is one if unmixed and four if mixed evenly."""
    z = states(3000, 4)
    alone, mixed = (values(held(h, z)) for h in (z[:, :1], z.sum(1, keepdims=True) / 2))
    assert alone["participation"] == pytest.approx(1, abs=0.01)
    assert mixed["participation"] == pytest.approx(4, abs=0.2)
    assert alone["held"] == pytest.approx(1, abs=0.01) and mixed["held"] == pytest.approx(1, abs=0.01)
    assert abs(mixed["superposed"]) < 0.04


def test_two_directions_in_one_latent_are_superposed():
    """h = round(z₁) + small z₂: a linear map finds one direction, a nonlinear one both."""
    z = np.random.default_rng(0).uniform(-1, 1, (4000, 2))
    h = np.round(3 * z[:, :1]) + 0.3 * z[:, 1:]
    numbers = held(h, z).measures
    assert numbers["held"].value < 1.05
    assert numbers["held_nonlinear"].low > 1.8
    assert numbers["superposed"].low > 0.8
    assert numbers["folded"].value == pytest.approx(numbers["held_nonlinear"].value - numbers["held"].value)


def test_nonlinear_latents_are_folded_but_not_superposed():
    z = states(4000, 2)
    numbers = held(np.sinh(1.5 * z) @ rotation(2), z).measures
    assert numbers["folded"].low > 0.3
    assert numbers["superposed"].high < 0.02


@pytest.mark.parametrize("stretch", [0.5, 1.0, 2.0])
def test_projection_is_measured_in_the_units_of_the_latents(stretch: float):
    z = states(4000, 3)
    found = values(held(stretch * z[:, :2], z))
    assert found["projection"] == pytest.approx(abs(stretch**2 - 1), abs=0.05)
    assert found["held"] == pytest.approx(2, abs=0.02)


def test_shares_do_not_depend_on_the_units_of_states():
    """Correlated states in mixed units: shares refer to whitened directions, names to standardised coordinates."""
    z = states(4000, 2) @ np.array([[1.0, 0.8], [0.0, 0.6]]) * [100.0, 0.01]
    lost = z[:, 0] / 100 - z[:, 1] / 0.01  # the difference of the standardised coordinates
    kept = z[:, 0] / 100 + z[:, 1] / 0.01
    found = held(kept[:, None], z)
    np.testing.assert_allclose([share.value for share in found.shares], [1, 0], atol=0.01)
    assert abs(np.corrcoef(lost, kept)[0, 1]) < 0.05
    assert name_direction(found.directions[1]) in {
        "0.71·z[0] − 0.71·z[1]",
        "0.71·z[1] − 0.71·z[0]",
        "0.72·z[0] − 0.70·z[1]",
        "0.72·z[1] − 0.70·z[0]",
    }


def test_noise_and_constants_capture_nothing():
    z = states(2000, 2)
    for h in (np.random.default_rng(5).standard_normal((2000, 2)), np.ones((2000, 1))):
        numbers = values(held(h, z))
        assert abs(numbers["held"]) < 0.02 and numbers["held_nonlinear"] < 0.02


def test_intervals_cover_the_share():
    """h = z₁ + e/2: the share of z₁ is 1/1.25. Of 12 intervals 11.4 ± 0.8 should cover it."""
    covered = 0
    for seed in range(12):
        z, noise = states(300, 2, seed), states(300, 1, 1000 + seed)
        share = held(z[:, :1] + noise / 2, z, replicates=60).coordinates[0]
        covered += share.low <= 0.8 <= share.high
    assert covered >= 9


def test_groups_widen_the_interval():
    z, noise = states(300, 2), states(300, 1, 7)
    z, h = np.repeat(z, 6, axis=0), np.repeat(z[:, :1] + noise, 6, axis=0)
    groups = np.repeat(np.arange(300), 6)
    alone, grouped = (held(h, z, 100, groups=g).measures["held"] for g in (None, groups))
    assert grouped.high - grouped.low > 1.6 * (alone.high - alone.low)


Z = np.random.default_rng(0).standard_normal((6000, 3))
TURN = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
NOISE = np.random.default_rng(4).standard_normal((6000, 3))


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def halves(h: np.ndarray, z: np.ndarray = Z) -> Halves:
    return Halves(h, z, hold_out(len(h), rng()))


def covered(h: np.ndarray, z: np.ndarray = Z) -> Verdict:
    return coverage(halves(h, z), decode(halves(h, z), rng()), rng(), replicates=30)


@pytest.mark.parametrize(
    ("h", "count"),
    [
        (Z @ TURN, 3),
        (np.exp(Z @ TURN), 3),
        (np.c_[Z[:, :2] ** 3, NOISE[:, 0]], 2),
        ((Z @ TURN)[:, :1], 1),
        (NOISE, 0),
        (np.zeros_like(Z), 0),
    ],
    ids=["rotation", "warp", "one lost", "two lost", "unrelated", "constant"],
)
def test_captured_directions_are_counted(h: np.ndarray, count: int):
    verdict = covered(h)
    assert verdict.value == verdict.low == verdict.high == count and verdict.threshold == 3
    assert verdict.passed is (count == 3)


def test_missing_directions_are_named_in_any_units():
    assert "missing: z[2]." in covered(Z[:, :2], Z * np.array([1e3, 1.0, 1e-3])).advice
    assert "mixture" in covered((Z @ TURN)[:, :2], Z).advice


def test_constant_states_are_not_reported_as_missing():
    verdict = covered(Z[:, :2], np.c_[Z[:, :2], np.full(6000, 7.0)])
    assert verdict.value == verdict.threshold == 2


def test_no_direction_is_reported_missing_with_many_dimensions_and_few_rows():
    """h = z + e/2 leaves one fifth of each direction; the largest of 40 sampled eigenvalues exceeds twice that."""
    z, e = np.random.default_rng(3).standard_normal((2, 400, 40))
    split = Halves(z + e / 2, z, hold_out(400, rng()))
    found = coverage(split, decode(split, rng()), rng(), 30)
    assert found.value == 40
