"""Reachability: thresholds on known mixtures, error rates by counting, closures by search."""

from __future__ import annotations

import numpy as np
import pytest
from energy.learn.tiny import chain, grid
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse.csgraph import shortest_path

from jepatlas.core.errors import InputError
from jepatlas.core.records import Experience
from jepatlas.energy.learn import (
    later_pairs,
    reachability_errors,
    unreachable_share,
    unreachable_threshold,
    with_unreachable,
)
from jepatlas.energy.learn.reachability_threshold import reachable_closure

RNG = np.random.default_rng


def lengths(count: int, seed: int, longest: float) -> np.ndarray:
    """Path lengths as in a room: many of medium length, few long ones."""
    return longest * RNG(seed).beta(2, 3, count)


def test_the_threshold_lies_between_the_modes():
    reachable, unreachable = lengths(4000, 1, 20.0), 30 + RNG(2).normal(size=1300)
    threshold = unreachable_threshold(lengths(500, 0, 12.0), np.concatenate([reachable, unreachable]), 1.0)
    assert reachable.max() < threshold < unreachable.min()


@pytest.mark.parametrize("longest", [5.0, 20.0])
def test_the_threshold_is_infinite_if_all_pairs_are_reachable(longest: float):
    for seed in range(20):
        assert unreachable_threshold(lengths(500, seed, longest), lengths(5000, 100 + seed, 20.0), 1.0) == np.inf


def test_the_threshold_for_exact_energies_of_a_grid():
    _, truth, _ = grid()
    energy = np.where(np.isfinite(truth), truth, 15.0)
    reachable = np.isfinite(truth)
    threshold = unreachable_threshold(truth[reachable & (truth <= 4)], energy.ravel(), 1.0)
    assert truth[reachable].max() < threshold < 15


def test_later_pairs_are_of_one_episode_and_in_order():
    episode = np.array([0, 0, 0, 1, 2, 2])
    experience = Experience(np.zeros((6, 1)), np.zeros((6, 1)), np.ones(6), episode)
    first, last = later_pairs(experience, 500, RNG(0))
    assert (episode[first] == episode[last]).all() and (first <= last).all()
    assert set(zip(first.tolist(), last.tolist(), strict=True)) == {
        (i, j) for i in range(6) for j in range(i, 6) if episode[i] == episode[j]
    }


def test_later_pairs_are_reachable():
    states, truth, moves = grid()
    walk = chain(states, moves, 10, 15)
    number = {tuple(state): i for i, state in enumerate(states.tolist())}
    for i, j in zip(*later_pairs(walk, 200, RNG(0)), strict=True):
        assert np.isfinite(truth[number[tuple(walk.x[i])], number[tuple(walk.x_next[j])]])


def test_the_share_of_missed_pairs_has_the_exact_binomial_interval():
    estimate = unreachable_share(np.array([1.0] * 95 + [9.0] * 5), 5.0, episodes=100)
    assert estimate.value == 0.05
    assert (estimate.low, estimate.high) == pytest.approx((0.0164, 0.1128), abs=1e-4)  # Clopper-Pearson, 5 of 100
    none = unreachable_share(np.ones(10_000), 5.0, episodes=20)
    assert (none.value, none.low) == (0, 0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 20))  # (1 − p)²⁰ = 2.5%
    assert unreachable_share(np.ones(3), 0.5, episodes=3).high == 1
    with pytest.raises(InputError, match="known"):
        unreachable_share(np.ones(0), 1.0, episodes=1)


def test_error_rates_match_counting():
    rng = RNG(0)
    truth = np.where(rng.random((15, 15)) < 0.3, np.inf, 1.0)
    energy = np.round(np.where(np.isinf(truth), 1.0, 0.0) + rng.normal(size=(15, 15)), 1)  # with ties
    found = reachability_errors(energy, truth, energy <= 0.5)
    bad, good = energy[np.isinf(truth)], energy[np.isfinite(truth)]
    wins = sum((b > g) + (b == g) / 2 for b in bad for g in good)
    assert found.auc == pytest.approx(wins / (len(bad) * len(good)))
    assert found.missed == pytest.approx((good > 0.5).mean()) and found.imagined == pytest.approx((bad <= 0.5).mean())
    assert np.isnan(reachability_errors(energy, np.ones((15, 15)), energy <= 0.5).auc)


def violates(d: np.ndarray) -> bool:
    return bool((d[:, None, :] > d[:, :, None] + d[None, :, :] + 1e-9).any())


def test_only_the_closure_of_a_threshold_satisfies_the_triangle_inequality():
    line = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    assert violates(np.where(line <= 2, line, np.inf))
    assert np.array_equal(with_unreachable(line, 2.0), line)  # paths with steps of length 2 connect all states


@given(arrays(np.float64, (7, 7), elements=st.integers(1, 20).map(float)), st.integers(1, 20))
def test_with_unreachable_preserves_quasimetrics(costs: np.ndarray, threshold: int):
    exact = shortest_path(costs)
    result = with_unreachable(exact, float(threshold))
    assert not violates(result)
    assert np.array_equal(result[exact <= threshold], exact[exact <= threshold])
    assert np.isin(result, np.append(exact, np.inf)).all()


@given(arrays(np.bool_, (9, 9)))
def test_the_closure_matches_a_search(relation: np.ndarray):
    found = np.isfinite(shortest_path(relation.astype(float), unweighted=True))
    assert np.array_equal(reachable_closure(relation), found)


def test_disconnected_states_stay_unreachable():
    two = np.array([[0, 1, 9, 9], [1, 0, 9, 9], [2, 2, 0, 1], [2, 2, 1, 0]], dtype=float)
    result = with_unreachable(two, 3.0)
    assert np.isinf(result[:2, 2:]).all() and np.array_equal(result[2:], two[2:])


def test_matrices_must_be_square():
    with pytest.raises(InputError, match="square"):
        with_unreachable(np.zeros((2, 3)), 1.0)
