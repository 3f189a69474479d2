"""Audit of preconditions: passes on the theorems' world, and each violation fails the matching check."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.core.records import Verdict
from jepatlas.identifiability.preconditions.audit import audit
from jepatlas.identifiability.preconditions.sliced_distance import GroupDistance, SlicedFeatures

Pairs = tuple[np.ndarray, np.ndarray]
NAMES = [
    "effective_rank",
    "stationarity",
    "gaussianity",
    "coordinate_gaussianity",
    "rate_window",
    "isotropy",
    "additive_noise",
    "independence",
    "reversibility",
]


def world(rho: float | np.ndarray = 0.9, rows: int = 4000, dim: int = 3, seed: int = 0) -> tuple[np.ndarray, ...]:
    z, noise = np.random.default_rng(seed).standard_normal((2, rows, dim))
    return z, rho * z + np.sqrt(1 - np.square(rho)) * noise, noise


def failed(pairs: Pairs, groups: np.ndarray | None = None) -> set[str]:
    return {verdict.name for verdict in audit(*pairs, groups=groups) if verdict.passed is False}


def turning() -> Pairs:
    z, _, noise = world()
    turn = np.eye(3)
    turn[:2, :2] = [[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]]
    return z, 0.9 * z @ turn.T + np.sqrt(0.19) * noise


def of_unequal_noise() -> Pairs:
    z, _, noise = world()
    return z, 0.9 * z + np.sqrt(0.19) * noise * np.sqrt((z[:, :1] ** 2 + 0.5) / 1.5)


def with_a_common_scale() -> Pairs:
    z, z_next, _ = world()
    scale = np.exp(0.7 * np.random.default_rng(5).standard_normal((len(z), 1)))
    return z * scale, z_next * scale


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: (world()[0], world()[1] + 0.3), "stationarity"),
        (lambda: (np.tanh(2 * world()[0]), np.tanh(2 * world()[1])), "gaussianity"),
        (lambda: world(np.array([0.95, 0.9, 0.5]))[:2], "rate_window"),
        (lambda: world(np.array([0.95, 0.95, 0.9]))[:2], "isotropy"),
        (of_unequal_noise, "additive_noise"),
        (with_a_common_scale, "independence"),
        (turning, "reversibility"),
        (lambda: tuple(np.c_[part, part[:, 0]] for part in world()[:2]), "effective_rank"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_violation_fails_its_check(make: Callable[[], Pairs], expected: str) -> None:
    assert expected in failed(make())


@pytest.mark.parametrize("seed", range(3))
def test_theorem_world_passes(seed: int) -> None:
    z, z_next, _ = world(seed=seed)
    verdicts = audit(z, z_next)
    assert [verdict.name for verdict in verdicts] == NAMES
    assert all(verdict.passed for verdict in verdicts)


FEW_DRAWS = 40  # enough for the mean of a null and a rough interval


@pytest.mark.parametrize(("dim", "rows"), [(5, 500), (8, 2000), (16, 1000), (16, 5000), (32, 5000), (64, 10_000)])
def test_many_directions_with_few_pairs_pass(dim: int, rows: int) -> None:
    """Sampling spreads rates and makes norms positive, and resampling repeats both. The nulls account for this, and
    intervals contain their values."""
    z, z_next, _ = world(rows=rows, dim=dim)
    for verdict in audit(z, z_next, draws=FEW_DRAWS):
        assert verdict.passed or (dim, rows, verdict.name, verdict.passed) == (16, 1000, "rate_window", None), verdict
        assert verdict.low <= verdict.value <= verdict.high, verdict


def test_few_groups_are_undecided() -> None:
    """Five episodes with different scales of states and noise are too few to accept or reject stationarity."""
    z, _, noise = world(rows=1000, dim=2)
    groups = np.arange(1000) // 200
    size = np.exp(np.random.default_rng(3).standard_normal(5))[groups][:, None]
    verdicts = {v.name: v for v in audit(z * size, (0.9 * z + np.sqrt(0.19) * noise) * size, groups=groups)}
    for name in ("additive_noise", "independence"):
        assert verdicts[name].passed is None and "more pairs or groups" in verdicts[name].advice
    bent = audit(np.exp(0.8 * z), np.exp(0.8 * world(rows=1000, dim=2)[1]), groups=groups)
    assert {v.name: v for v in bent}["additive_noise"].passed is not True


def test_groups_of_independent_rows_count_as_independent_rows() -> None:
    z, z_next, _ = world(rows=8000, dim=2)
    verdicts = audit(z, z_next, groups=np.arange(8000) // 400)
    assert all(verdict.passed for verdict in verdicts), verdicts


@pytest.mark.parametrize("make", ["outlier", "one-hot", "sparse"])
def test_direction_supported_by_few_rows_raises_no_error(make: str) -> None:
    rng = np.random.default_rng(0)
    z, z_next, _ = world(rows=300)
    if make == "outlier":
        z[5, 1] = 1e12
    elif make == "one-hot":
        z = z_next = np.eye(40)[rng.integers(40, size=300)]
    else:
        z = z_next = (rng.random((300, 3)) < 0.005).astype(float)
    assert [verdict.name for verdict in audit(z, z_next)] == NAMES


def test_audit_is_invariant_to_rotation_and_scale() -> None:
    z, z_next, _ = world()
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0] * 5
    assert not failed((z @ turn + 7, z_next @ turn + 7))


def test_correlated_rows_of_a_group_do_not_count_as_evidence() -> None:
    """Forty states with a hundred rows each: the rows look far from Gaussian, but only forty are independent."""
    z, z_next, _ = world(rows=40, dim=2)
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(40), 100))
    pairs = z[groups], z_next[groups]
    assert "gaussianity" in failed(pairs)
    assert "gaussianity" not in failed(pairs, groups=groups)


def test_rates_match_the_world() -> None:
    z, z_next, _ = world(np.array([0.9, 0.8]), rows=20_000, dim=2)
    by_name: dict[str, Verdict] = {verdict.name: verdict for verdict in audit(z, z_next)}
    assert by_name["rate_window"].value == pytest.approx(0.8 - 0.81, abs=0.02)
    assert by_name["isotropy"].value == pytest.approx(np.log(0.8) / np.log(0.9), rel=0.05)


def test_constant_latents_give_verdicts_and_one_coordinate_is_sufficient() -> None:
    (only,) = audit(np.ones((50, 2)), np.ones((50, 2)))
    assert (only.name, only.value, only.passed) == ("effective_rank", 0, False)
    z, z_next, _ = world(dim=1)
    assert not failed((z, z_next))


def test_audit_is_deterministic_by_seed() -> None:
    z, z_next, _ = world(rows=500)
    assert audit(z, z_next, seed=3) == audit(z, z_next, seed=3)
    assert audit(z, z_next, seed=3) != audit(z, z_next, seed=4)


@pytest.mark.parametrize(
    ("h", "h_next", "message"),
    [
        (np.eye(3), np.eye(3), "20 rows.* 3"),
        (np.ones((5, 2)), np.ones((4, 2)), "same number of rows"),
        (np.ones((5, 2)), np.ones((5, 3)), "'h' and 'h_next'"),
        (np.full((5, 2), np.nan), np.ones((5, 2)), "NaN"),
        (np.ones(5), np.ones(5), "'h'.*2-D"),
    ],
)
def test_invalid_inputs_are_rejected(h: np.ndarray, h_next: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        audit(h, h_next)


def test_group_distance_matches_its_definition() -> None:
    rng = np.random.default_rng(0)
    gap, labels, weights = rng.standard_normal((12, 3)), np.repeat(np.arange(4), 3), np.repeat([1.0, 0.0, 2.0, -1.0], 3)
    total, count = 0.0, 0.0
    for i in range(12):
        for j in range(12):
            if labels[i] != labels[j]:
                total += weights[i] * weights[j] * (gap[i] @ gap[j])
                count += abs(weights[i] * weights[j])
    expected = np.sign(total) * np.sqrt(abs(total / count))
    assert GroupDistance(gap, labels)(weights) == pytest.approx(expected)


def test_group_distance_is_zero_if_one_group_has_all_the_weight() -> None:
    gap, labels = np.random.default_rng(0).standard_normal((400, 7)), np.arange(400) // 80
    distance = GroupDistance(gap, labels)
    assert [distance((labels == group) * 5.0) for group in range(5)] == [0.0] * 5


def test_sliced_features_are_unbiased_for_gaussian_samples() -> None:
    rng = np.random.default_rng(0)
    features = SlicedFeatures(3, rng)
    mean = features(rng.standard_normal((50_000, 3))).mean(0)
    np.testing.assert_allclose(mean, features.gaussian, atol=0.003)


def test_fewer_draws_give_about_the_same_nulls() -> None:
    z, z_next, _ = world(rows=1000, dim=8)
    most = {verdict.name: verdict for verdict in audit(z, z_next)}
    few = {verdict.name: verdict for verdict in audit(z, z_next, draws=50)}
    for name in ("gaussianity", "isotropy", "independence", "reversibility"):
        assert few[name].value == most[name].value
        assert few[name].null != most[name].null
        assert few[name].null == pytest.approx(most[name].null, rel=0.1, abs=0.01)
