"""Gaussianity per coordinate: one violation among many is named, and false alarms have the stated rate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from jepatlas.core.records import Verdict
from jepatlas.identifiability.preconditions.audit import audit
from jepatlas.identifiability.preconditions.gaussianity import (
    coordinate_distances,
    coordinate_gaussianity,
    departure,
    largest_null,
)
from jepatlas.identifiability.preconditions.sliced_distance import GroupDistance, SlicedFeatures
from jepatlas.identifiability.preconditions.white_pairs import WhitePairs

Curve = Callable[[np.ndarray], np.ndarray]


def states(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, dim))


def judged(h: np.ndarray, groups: np.ndarray | None = None) -> Verdict:
    labels = np.arange(len(h)) if groups is None else groups
    return coordinate_gaussianity(WhitePairs(h, h, h, np.arange(h.shape[1]), labels, seed=0))


def uniform(z: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(z)) / len(z)


@pytest.mark.parametrize(
    ("curve", "dim", "departs"),
    [
        (uniform, 4, "tails are too light"),
        (np.sign, 8, "only 2 values"),
        (lambda z: z**3, 16, "tails are too heavy"),
        (np.exp, 8, "skewed to large values"),
        (lambda z: -np.maximum(z, 0), 8, "the same value in 5"),
    ],
    ids=["uniform", "signs", "cubes", "log-normal", "rectified"],
)
@pytest.mark.parametrize("place", [0, 3])
def test_one_non_gaussian_coordinate_is_named_with_its_departure(
    curve: Curve, dim: int, departs: str, place: int
) -> None:
    z = states(6000, dim)
    z[:, place] = 3 * curve(z[:, place]) + 7
    found = judged(z)
    assert found.passed is False and f"Latent coordinate {place} is not Gaussian" in found.advice, found
    assert departs in found.advice and "Neither " not in found.advice


def test_audit_fails_for_one_binary_coordinate_missed_by_slices() -> None:
    """Tested on raw latents, because whitening may rotate them and drops constant coordinates."""
    z = np.c_[np.ones(1500), states(1500, 8)]
    z_next = np.c_[np.ones(1500), 0.9 * z[:, 1:] + np.sqrt(0.19) * states(1500, 8, seed=1)]
    z[:, 6], z_next[:, 6] = np.sign(z[:, 6]), np.sign(z_next[:, 6])
    found = {verdict.name: verdict for verdict in audit(z, z_next)}
    assert found["gaussianity"].passed is not False and found["coordinate_gaussianity"].passed is False
    assert "Latent coordinate 6 is not Gaussian: it takes only 2 values" in found["coordinate_gaussianity"].advice


def test_all_non_gaussian_coordinates_are_listed() -> None:
    z = states(4000, 12)
    z[:, 2], z[:, 3:11] = np.sign(z[:, 2]), z[:, 3:11] ** 3
    advice = judged(z).advice
    assert "Neither are " in advice and "and 3 more." in advice
    z = states(4000, 3)
    z[:, 0], z[:, 2] = uniform(z[:, 0]), z[:, 2] ** 3
    assert "coordinate 2 is not" in judged(z).advice and "Neither is 0." in judged(z).advice


@pytest.mark.parametrize("dim", [1, 3, 16, 64])
@pytest.mark.parametrize("seed", range(3))
def test_gaussian_coordinates_pass_rotated_or_not(dim: int, seed: int) -> None:
    h = states(4000, dim, seed)
    mixed = h @ states(dim, dim, seed + 50)  # not a rotation; coordinates are correlated
    assert judged(h).passed and judged(mixed).passed


@pytest.mark.parametrize(("dim", "rows"), [(1, 60), (4, 200), (12, 400)])
def test_null_of_the_worst_coordinate_has_the_stated_level(dim: int, rows: int) -> None:
    """Of 400 Gaussian samples, 10% exceed the 90% quantile (± three standard errors), and few the 99% quantile."""
    null, rng = largest_null(dim, np.random.default_rng(1), 4000), np.random.default_rng(2)
    samples = (rng.standard_normal((rows, dim)) for _ in range(400))
    units = ((sample - sample.mean(0)) / sample.std(0) for sample in samples)
    worst = np.array([coordinate_distances(unit, np.arange(rows))[0].max() * np.sqrt(rows) for unit in units])
    assert np.mean(worst > np.quantile(null, 0.9)) == pytest.approx(0.1, abs=0.045)
    assert np.mean(worst > np.quantile(null, 0.99)) <= 0.025


def test_joint_computation_equals_separate_coordinates() -> None:
    u, labels = states(60, 3), np.random.default_rng(3).integers(7, size=60)
    features = SlicedFeatures(1, np.random.default_rng(0), slices=1)
    for groups in (labels, np.arange(60)):
        values, worth = coordinate_distances(u, groups)
        for j in range(3):
            alone = GroupDistance(features(u[:, j : j + 1]) - features.gaussian, groups)
            assert values[j] == pytest.approx(alone(np.ones(60))) and worth[j] == alone.effective_rows


def test_effective_sample_size_accounts_for_groups() -> None:
    """Thirty states with a hundred rows each are not Gaussian as rows, but undecided as thirty groups."""
    groups = np.repeat(np.arange(30), 100)
    h = states(30, 4)[groups]
    assert judged(h).passed is False and judged(h, groups).passed is None
    fresh = states(3000, 4)
    assert judged(fresh, groups).passed is True
    fresh[:, 1] = np.sign(fresh[:, 1])
    found = judged(fresh, groups)
    assert found.passed is False and "coordinate 1 is not" in found.advice


def test_undecided_coordinate_makes_the_verdict_undecided() -> None:
    groups = np.repeat(np.arange(40), 100)
    h = states(4000, 4)
    h[:, 3] = states(40, 1, seed=9)[groups, 0]  # constant in each of forty groups
    assert judged(h, groups).passed is None


def test_descriptions_of_departures() -> None:
    z = states(5000, 1)[:, 0]
    assert departure(np.zeros(50)) == "it takes only 1 value"
    assert "skewed to small values (skewness -" in departure((1 - z**2) / np.sqrt(2))
    assert "histogram" in departure(z)
