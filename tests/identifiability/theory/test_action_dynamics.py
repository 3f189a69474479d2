"""Linear dynamics under actions in latent space: rotations, insufficient excitation, nonlinear worlds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gaussian_worlds import rotation

from jepatlas.core.errors import InputError
from jepatlas.core.linear_system import LinearSystem, fit_linear_system
from jepatlas.core.records import Verdict
from jepatlas.identifiability import certify_dynamics
from jepatlas.identifiability.theory.action_dynamics import conjugacy_errors

A = np.array([[0.9, 0.2, 0.0], [-0.1, 0.7, 0.1], [0.0, 0.0, 0.5]])
B = np.array([[1.0, 0.0], [0.0, 0.5], [0.3, -0.4]])


def steps(rows: int, seed: int = 0, u: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z, drawn = rng.standard_normal((rows, 3)), rng.standard_normal((rows, 2))
    u = drawn if u is None else u
    return z, u, z @ A.T + u @ B.T


def judged(*arrays: np.ndarray, replicates: int = 20, **options) -> dict[str, Verdict]:
    return {verdict.name: verdict for verdict in certify_dynamics(*arrays, replicates=replicates, **options)}


def test_fit_is_least_squares_with_an_offset():
    z, u, _ = steps(60)
    h_next = np.tanh(z) + 0.3 * u[:, :1] + 2
    columns = np.c_[z, u, np.ones(60)]
    weight = np.linalg.lstsq(columns, h_next, rcond=None)[0].T
    found = fit_linear_system(z, u, h_next)
    assert np.allclose(np.c_[found.a_dd, found.b_da, found.c_d], weight)
    assert np.allclose(found.step(z, u), columns @ weight.T)
    counts = np.random.default_rng(1).integers(0, 3, 60)
    doubled = fit_linear_system(*(np.repeat(part, counts, axis=0) for part in (z, u, h_next)))
    assert np.allclose(fit_linear_system(z, u, h_next, counts.astype(float)).a_dd, doubled.a_dd)


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_rotation_gives_conjugate_dynamics(scale: float):
    q, (z, u, z_next) = rotation(3), steps(200)
    h, h_next = (scale * part @ q.T + 4 for part in (z, z_next))
    for found in (judged(h, u, h_next, z, truth=(A, B)), judged(h, u, h_next, z, z_next)):
        assert found["conjugacy_a"].value < 1e-8 and found["conjugacy_b"].value < 1e-8
        assert found["conjugacy_a"].null is not None and found["conjugacy_a"].null > 0.2, "randomly permuted states"
        assert found["conjugacy_scale"].value == pytest.approx(scale)
        assert all(verdict.passed is not False for verdict in found.values())
        assert found["linear_dynamics"].value == pytest.approx(1, abs=1e-12)
        assert found["action_share"].value == pytest.approx(1, abs=1e-12)


def test_orthonormal_embedding_gives_conjugate_dynamics():
    """h = Qz with Q 5 × 3: the smallest A that fits is QAQᵀ."""
    q, (z, u, z_next) = rotation(5)[:, :3], steps(200)
    found = judged(z @ q.T, u, z_next @ q.T, z, truth=(A, B))
    assert found["conjugacy_a"].value < 1e-8 and found["conjugacy_b"].value < 1e-8
    excited = found["persistent_excitation"]
    assert excited.passed and "2 of 5 directions of the latents hardly vary" in excited.advice


def drawn_latents(rows: int, follow: float) -> tuple[np.ndarray, ...]:
    """Eight smooth functions of two states; actions are random except for a share that follows the state."""
    rng = np.random.default_rng(5)
    z, noise = rng.uniform(-1, 1, (rows, 2)), rng.uniform(-1, 1, (rows, 2))
    u = follow * z + math.sqrt(1 - follow**2) * noise
    z_next, mixing = z + 0.1 * u, rng.standard_normal((2, 8))
    return np.tanh(z @ mixing / 2), u, np.tanh(z_next @ mixing / 2), z, z_next


def test_surplus_latents_are_not_reported_as_missing_excitation():
    h, u, h_next, z, z_next = drawn_latents(2000, follow=0.0)
    found = judged(h, u, h_next, z, z_next)
    excited = found["persistent_excitation"]
    assert np.linalg.eigvalsh(np.corrcoef(np.c_[h, u].T))[0] < 0.01, "over all directions"
    assert excited.passed and excited.value > 0.8 and "surplus dimensions" in excited.advice
    unknown = judged(h, u, h_next)["persistent_excitation"]
    assert unknown.passed is None and unknown.value == pytest.approx(excited.value)
    assert "surplus dimensions, or directions of the state that were not explored" in unknown.advice


def test_state_feedback_actions_are_detected_with_surplus_latents():
    h, u, h_next, z, z_next = drawn_latents(2000, follow=0.99)
    for found in (judged(h, u, h_next, z, z_next), judged(h, u, h_next)):
        excited = found["persistent_excitation"]
        assert excited.passed is False and excited.value < 0.1 and "u[" in excited.advice


def test_unexcited_state_direction_is_not_treated_as_surplus():
    z, u, z_next = steps(300)
    flat = np.array([1.0, 1.0, 0.0])
    found = judged(z * flat, u, z_next * flat, z * flat, z_next * flat)["persistent_excitation"]
    assert found.passed is False and "h[2] never varies." in found.advice


def test_conjugacy_has_no_threshold_with_surplus_directions():
    rng = np.random.default_rng(6)
    z, u, z_next = steps(500)
    more, more_next = rng.standard_normal((2, 500, 2))
    found = judged(np.c_[z, more], u, np.c_[z_next, more_next], z, z_next)
    for name in ("conjugacy_a", "conjugacy_b"):
        assert found[name].passed is None and found[name].threshold is None
        assert "vary in 5 directions and the state in 3" in found[name].advice


def test_small_noise_in_surplus_latents_does_not_change_the_conjugate():
    """h = Qz plus noise of 0.001 in all 8 latents: directions of negligible variance are excluded from A."""
    rng, q, (z, u, z_next) = np.random.default_rng(7), rotation(8)[:, :3], steps(400)
    h, h_next = (part @ q.T + 1e-3 * rng.standard_normal((400, 8)) for part in (z, z_next))
    found = judged(h, u, h_next, z, truth=(A, B))
    assert found["conjugacy_a"].passed and found["conjugacy_b"].passed and found["conjugacy_a"].value < 0.01


def test_errors_match_hand_computed_values():
    """h = z with A_h twice too large: ‖2A − A‖ / ‖A‖ = 1; a shear is not a conjugation."""
    z, u, z_next = steps(500)
    twice = LinearSystem(2 * A, B, np.zeros(3))
    found = conjugacy_errors(twice, LinearSystem(A, B, np.zeros(3)), z, z)
    assert found == pytest.approx({"conjugacy_a": 1, "conjugacy_b": 0, "conjugacy_scale": 1}, abs=1e-12)
    shear = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    sheared = judged(z @ shear.T, u, z_next @ shear.T, z, truth=(A, B))
    assert sheared["linear_dynamics"].passed and sheared["conjugacy_a"].passed is False


def test_excitation_is_the_smallest_eigenvalue_of_the_correlations():
    z, u, z_next = steps(300)
    found = judged(10 * z, u, z_next)["persistent_excitation"]
    assert found.value == pytest.approx(np.linalg.eigvalsh(np.corrcoef(np.c_[z, u].T))[0])
    assert found.passed and found.null == 0 and found.low < found.value < found.high


@pytest.mark.parametrize("free", [0.5, 0.1, 0.02])
def test_error_of_b_grows_as_actions_follow_the_state(free: float):
    """u = Kz + free · noise and slightly noisy latents: the verdict fails if B is not recovered."""
    errors = {}
    for share in (1.0, free):
        rng = np.random.default_rng(2)
        z, drawn = rng.standard_normal((3000, 3)), rng.standard_normal((3000, 2))
        u = math.sqrt(1 - share**2) * z[:, :2] + share * drawn
        z_next = z @ A.T + u @ B.T
        h, h_next = (part + 0.02 * rng.standard_normal(part.shape) for part in (z, z_next))
        found = judged(h, u, h_next, z, truth=(A, B))
        errors[share] = found["conjugacy_b"].value
        excited = found["persistent_excitation"]
        assert excited.value == pytest.approx(1 - math.sqrt(1 - share**2), abs=0.06)
        assert excited.passed is (share > 0.4)
        if excited.passed is False:
            assert "u[" in excited.advice and "h[" in excited.advice and "hardly var" in excited.advice
    assert errors[free] > 1.5 * errors[1.0]
    assert (errors[free] > 0.1) is (free == 0.02)


def test_constant_action_is_named():
    z, _, _ = steps(200)
    u = np.c_[np.random.default_rng(3).standard_normal(200), np.full(200, 0.7)]
    found = judged(*steps(200, u=u))["persistent_excitation"]
    assert found.value == 0 and found.passed is False and "u[1] never varies." in found.advice
    assert len(z) == found.n


def test_nonlinear_dynamics_fail_the_linearity_verdict():
    z, u, _ = steps(2000)
    z_next = np.sin(2 * z) + u @ B.T
    found = judged(z, u, z_next)
    explained = 1 - found["linear_dynamics"].value
    exact = 0.5 * (1 - math.exp(-8)) - (2 * math.exp(-2)) ** 2  # Var sin 2z minus its linear part
    total = 3 * 0.5 * (1 - math.exp(-8)) + np.sum(B**2)
    assert explained == pytest.approx(3 * exact / total, rel=0.1)
    assert found["linear_dynamics"].passed is False
    assert found["linear_dynamics"].null == pytest.approx(
        found["linear_dynamics"].value - np.sum(B**2) / total, abs=0.05
    )
    assert found["action_share"].value == pytest.approx(np.sum(B**2) / (np.sum(B**2) + 3 * exact), abs=0.03)


def test_intervals_resample_whole_groups():
    z, u, _ = steps(100)
    rows = [np.repeat(part, 8, axis=0) for part in (z, u, np.sin(z) + u @ B.T)]
    groups = np.repeat(np.arange(100), 8)
    wide, narrow = (judged(*rows, groups=labels, replicates=200)["linear_dynamics"] for labels in (groups, None))
    assert wide.high - wide.low > 1.8 * (narrow.high - narrow.low)


def test_invalid_inputs_are_rejected():
    z, u, z_next = steps(40)
    for arrays, options, message in [
        ((z, u, z_next[:, :2]), {}, "'h' and 'h_next'"),
        ((z, u[:-1], z_next), {}, "'u' has 39"),
        ((z, u, z_next, z), {"truth": (A, B.T)}, r"truth.*\(3, 3\) and \(2, 3\)"),
        ((z, u, z_next, z), {"truth": (A, B * np.nan)}, "NaN or infinite"),
        ((z, u, z_next, z, z_next[:, :1]), {}, "'z' and 'z_next'"),
        ((z, u, z_next), {"groups": np.arange(40) % 2}, "'groups'.*3.* 2"),
        ((z[:10], u[:10], z_next[:10]), {}, "20 rows.* 10"),
        ((np.tile(z, 8), u, np.tile(z_next, 8)), {}, "26 rows.* 20 of 40"),
    ]:
        with pytest.raises(InputError, match=message):
            certify_dynamics(*arrays, replicates=2, **options)
