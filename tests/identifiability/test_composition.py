"""Shares of variance by kind of map against known mixtures, and FastICA."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from jepatlas.core.linear import Split, hold_out
from jepatlas.core.records import Verdict
from jepatlas.identifiability.composition import composition, explain, nonlinear_r2, unmix, worst_direction
from jepatlas.identifiability.resampling import Halves

Z = np.random.default_rng(0).standard_normal((6000, 3))
TURN = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
NOISE = np.random.default_rng(4).standard_normal((6000, 3))


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def halves(h: np.ndarray, z: np.ndarray = Z, groups: np.ndarray | None = None) -> Halves:
    return Halves(h, z, hold_out(len(h), rng(), groups=groups), groups)


def shares(h: np.ndarray, complete: bool = True) -> tuple[list[float], Verdict]:
    verdicts = composition(explain(halves(h), rng()), rng(), complete=complete, replicates=30)
    assert [v.name for v in verdicts] == [f"share_{name}" for name in ("linear", "warp", "shear", "bend", "noise")]
    assert all(v.passed is None and v.low <= v.value <= v.high for v in verdicts)
    values = [v.value for v in verdicts]
    assert sum(values) == pytest.approx(1) and min(values) >= 0
    return values, verdicts[0]


@pytest.mark.parametrize(
    ("h", "expected"),
    [
        (Z @ TURN, [1, 0, 0, 0, 0]),
        (Z**3 @ TURN, [0.6, 0.4, 0, 0, 0]),
        (Z + NOISE, [0.5, 0, 0, 0, 0.5]),
        (np.c_[Z[:, 0], Z[:, 1] + Z[:, 0] ** 2, Z[:, 2]], [0.6, 0, 0.4, 0, 0]),  # the square has variance 2 of 5
        (np.c_[Z[:, 0], Z[:, 1], Z[:, 2] + Z[:, 0] * Z[:, 1]], [0.75, 0, 0, 0.25, 0]),  # the product has 1 of 4
    ],
    ids=["rotation", "warp", "noise", "shear", "bend"],
)
def test_shares_match_known_mixtures(h: np.ndarray, expected: list[float]):
    assert shares(h, complete=False)[0] == pytest.approx(expected, abs=0.035)


def test_warp_of_rotated_states_is_found_from_the_latents():
    values, linear = shares((Z @ TURN) ** 3)
    assert values == pytest.approx([0.6, 0.4, 0, 0, 0], abs=0.035) and "of the state's variance" in linear.advice
    other, linear = shares((Z @ TURN) ** 3, complete=False)
    assert other[3] > 0.15 and "of the latents' variance" in linear.advice


def test_constant_latents_have_no_shares():
    verdicts = composition(explain(halves(np.ones_like(Z)), rng()), rng(), complete=False, replicates=5)
    assert all(np.isnan(v.value) for v in verdicts)


def test_share_of_nonlinear_functions():
    assert nonlinear_r2(explain(halves(np.exp(Z)), rng()), rng(), 20).value > 0.98
    found = nonlinear_r2(explain(halves(Z[:, :2] ** 3), rng()), rng(), 20)
    assert found.value == pytest.approx(2 / 3, abs=0.02) and found.low < found.value < found.high


def test_subsample_keeps_split_and_groups():
    groups = np.repeat(np.arange(600), 10)
    some = halves(Z, groups=groups).subsampled(500, rng())
    fit, score = some.split
    assert len(fit) == len(score) == 500 and some.groups is not None
    assert not set(some.groups[fit]) & set(some.groups[score])
    for row, label in zip(some.h, some.groups, strict=True):
        assert any(np.array_equal(row, Z[10 * label + i]) for i in range(10))
    few = Halves(Z, Z, Split(np.arange(5), np.arange(5, 9))).subsampled(500, rng())
    np.testing.assert_array_equal(few.h, Z[:9])


def turn(dim: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0]


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("curve", [lambda u: u**3, np.exp, lambda u: np.tanh(2 * u)], ids=["cubes", "exp", "tanh"])
def test_fastica_recovers_independent_coordinates(curve: Callable[[np.ndarray], np.ndarray], dim: int):
    sources = curve(np.random.default_rng(0).standard_normal((6000, dim)))
    fit = np.arange(4000)
    found = unmix(3 * sources @ turn(dim, 1) - 7, fit, np.random.default_rng(2))
    match = np.abs(np.corrcoef(found[4000:].T, sources[4000:].T)[:dim, dim:])  # held-out rows
    assert sorted(match.argmax(1)) == list(range(dim)) and match.max(1).min() > 0.97


def test_fastica_map_whitens():
    h = np.random.default_rng(0).standard_normal((3000, 3)) @ np.diag([1.0, 5.0, 0.1]) @ turn(3, 4)
    found = unmix(h, np.arange(3000), np.random.default_rng(1))
    np.testing.assert_allclose(np.cov(found.T), np.eye(3), atol=1e-8)


def test_constant_latents_give_finite_results():
    h = np.c_[np.random.default_rng(0).standard_normal((500, 1)), np.ones(500)]
    assert np.isfinite(unmix(h, np.arange(500), np.random.default_rng(1))).all()


SIX_STATES = np.random.default_rng(0).standard_normal((6000, 6))
SIX_TURN = np.linalg.qr(np.random.default_rng(2).standard_normal((6, 6)))[0]
ONE_NOISE = np.random.default_rng(4).standard_normal((6000, 1))


def worst_shares(h: np.ndarray) -> list[float]:
    """Shares of the worst direction: nonlinear and noise."""
    rng = np.random.default_rng(1)
    verdicts = worst_direction(
        explain(Halves(h, SIX_STATES, hold_out(len(h), rng)), rng), rng, complete=True, replicates=30
    )
    assert [v.name for v in verdicts] == ["worst_nonlinear", "worst_noise"]
    assert all(v.passed is None and v.low <= v.value <= v.high for v in verdicts)
    return [v.value for v in verdicts]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (SIX_STATES[:, 5:], [0, 0]),
        (SIX_STATES[:, 5:] ** 3, [0.4, 0]),  # E z⁶ = 15, of which (E z⁴)² = 9 is linear
        (SIX_STATES[:, 5:] + SIX_STATES[:, :1] ** 2, [2 / 3, 0]),
        (3 * (SIX_STATES[:, 5:] + 0.5 * ONE_NOISE), [0, 0.2]),
    ],
    ids=["rotation", "cube", "shear", "noise"],
)
@pytest.mark.parametrize("turn", [np.eye(6), SIX_TURN], ids=["plain", "turned"])
def test_worst_direction_matches_closed_forms(last: np.ndarray, expected: list[float], turn: np.ndarray) -> None:
    assert worst_shares(np.c_[SIX_STATES[:, :5], last] @ turn) == pytest.approx(expected, abs=0.06)


def test_worst_direction_of_constant_latents_is_zero() -> None:
    assert worst_shares(np.ones_like(SIX_STATES))[0] == 0
