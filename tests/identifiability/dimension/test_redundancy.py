"""Redundant latents with harmonics and copies of a state, and their minimal subspace."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg
from gaussian_worlds import pairs, rotation

from jepatlas.core.errors import InputError
from jepatlas.core.linear import hold_out
from jepatlas.identifiability import SpectrumSettings, minimal_recovery, redundancy
from jepatlas.identifiability.dimension.rank import linear_rank
from jepatlas.identifiability.dimension.redundancy import Redundancy

QUICK = SpectrumSettings(features=64, length_scales=(0.7, 1.6), ridges=(1e-4, 1e-2), pilot=3000, replicates=30)
Encoder = Callable[[np.ndarray], np.ndarray]


def harmonics(z: np.ndarray) -> np.ndarray:
    """z and all its second-degree Hermite functions, rotated jointly."""
    h = np.c_[z, (z**2 - 1) / np.sqrt(2), z[:, :1] * z[:, 1:]]
    return h @ rotation(h.shape[1])


def found(encode: Encoder, rho: float | np.ndarray = 0.9, rows: int = 6000, dim: int | None = None) -> Redundancy:
    z, z_next = pairs(rows, 2, rho)
    return redundancy(encode(z), encode(z_next), dim=dim, settings=QUICK)


def recovered(encode: Encoder, given: Redundancy, rho: float | np.ndarray = 0.9) -> dict[str, float]:
    z, _ = pairs(3000, 2, rho, seed=9)
    h, rng = encode(z), np.random.default_rng(0)
    scores = minimal_recovery(h, given.minimal, z, hold_out(3000, rng), rng, replicates=20)
    assert all(score.low <= score.value <= score.high for score in scores.values())
    return {name: score.value for name, score in scores.items()}


def test_harmonics_are_functions_of_the_state():
    ladder = found(harmonics)
    assert ladder.rank.value == 5 and ladder.dim == 2
    assert [step.kind for step in ladder.linear.steps] == ["direction"] * 2 + ["harmonic"] * 3
    assert ladder.minimal.weight.shape == (2, 5)
    np.testing.assert_allclose([rate.value for rate in ladder.rates], 0.9, atol=0.02)
    scores = recovered(harmonics, ladder)
    assert scores["r2"] == pytest.approx(1) and scores["r2_minimal"] > 0.99
    assert scores["r2_inverse"] == pytest.approx(2 / 5, abs=0.05) and scores["r2_inverse_minimal"] > 0.99
    assert scores["r2_lost"] == pytest.approx(scores["r2"] - scores["r2_minimal"])


def test_the_minimal_subspace_solves_the_generalised_eigenproblem():
    """Against dense scipy on all rows; the result is white and ordered from slow to fast."""
    z, z_next = pairs(6000, 2, np.array([0.9, 0.85]))
    h, h_next = harmonics(z), harmonics(z_next)
    given = redundancy(h, h_next, settings=QUICK)
    both = np.concatenate([h, h_next])
    a, b = h - both.mean(0), h_next - both.mean(0)
    vectors = scipy.linalg.eigh(a.T @ b + b.T @ a, a.T @ a + b.T @ b)[1][:, ::-1][:, :2]
    assert scipy.linalg.subspace_angles(given.minimal.weight.T, vectors).max() < 0.15  # three quarters of the rows
    np.testing.assert_allclose(np.cov(given.minimal.apply(both).T), np.eye(2), atol=0.06)
    assert given.rates[0].value > given.rates[1].value


def test_repetitions_do_not_add_rank():
    def encode(z: np.ndarray) -> np.ndarray:
        return np.c_[z, 7 * z @ rotation(2), np.ones(len(z))] + 3

    ladder = found(encode, rows=3000)
    assert ladder.rank.value == ladder.rank.low == 2 and ladder.dim == 2
    assert recovered(encode, ladder)["r2_minimal"] == pytest.approx(1)


@pytest.mark.parametrize(("noise", "rank"), [(0.003, 2), (0.3, 4)])
def test_noise_on_a_repetition_adds_rank_only_above_the_floor(noise: float, rank: int):
    rng = np.random.default_rng(0)
    z, z_next = pairs(2000, 2, 0.9)
    h, h_next = (np.c_[s, s + noise * rng.standard_normal(s.shape)] for s in (z, z_next))
    assert linear_rank(h, h_next, rng, replicates=20).value == rank
    scaled = np.array([1.0, 30.0, 0.2, 5.0])  # independent of units
    assert linear_rank(h * scaled, h_next * scaled, rng, replicates=20).value == rank


def test_slow_harmonic_does_not_replace_a_direction():
    """The slow direction's square has rate .9025. Directions below .868 are only found if n is given."""
    for fast, dim in ((0.88, None), (0.6, 2)):
        rho = np.array([0.95, fast])
        ladder = found(harmonics, rho, rows=10_000, dim=dim)
        assert [step.kind for step in ladder.linear.steps[:2]] == ["direction", "harmonic"] and ladder.dim == 2
        np.testing.assert_allclose([rate.value for rate in ladder.rates], rho, atol=0.03)
        assert recovered(harmonics, ladder, rho)["r2_minimal"] > 0.97


def test_as_many_latents_as_dimensions_are_kept():
    ladder = found(lambda z: z @ rotation(2), rows=4000)
    assert ladder.rank.value == ladder.dim == 2
    assert recovered(lambda z: z @ rotation(2), ladder)["r2_minimal"] == pytest.approx(1)


def test_groups_are_not_split():
    z, z_next = (np.repeat(v, 5, axis=0) for v in pairs(1000, 2, 0.9))
    groups = np.repeat(np.arange(1000), 5)
    alone, grouped = (redundancy(z, z_next, groups=g, settings=QUICK).rates[0] for g in (None, groups))
    assert grouped.high - grouped.low > 1.4 * (alone.high - alone.low)


def test_constant_latents_are_rejected():
    with pytest.raises(InputError, match="constant"):
        redundancy(np.ones((500, 2)), np.ones((500, 2)))
