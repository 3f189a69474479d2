"""Trajectories: detection of rows that follow each other, and time blocks beyond the correlation time."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.identifiability import find_trajectories


def walk(rows: int, rho: float, dim: int = 2, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal((rows, dim))
    states = [noise[0]]
    for step in noise[1:]:
        states.append(rho * states[-1] + np.sqrt(1 - rho**2) * step)
    return np.array(states)


def blocks_of(h: np.ndarray, h_next: np.ndarray) -> np.ndarray:
    found = find_trajectories(h, h_next)
    assert found.blocks is not None and "trajectory" in found.note
    return found.blocks


@pytest.mark.parametrize(("rho", "length"), [(0.0, 5), (0.5, 15), (0.9, 95)])
def test_blocks_span_five_correlation_times(rho: float, length: int) -> None:
    z = walk(20_001, rho)
    blocks = blocks_of(z[:-1], z[1:])
    sizes = np.bincount(blocks)
    assert sizes[0] == pytest.approx(length, rel=0.25) and (np.diff(blocks) >= 0).all()
    assert (sizes[:-1] == sizes[0]).all() and sizes.sum() == 20_000


def test_slow_series_have_at_least_ten_blocks() -> None:
    z = np.c_[np.arange(1001.0), np.ones(1001)]  # and a constant coordinate
    assert blocks_of(z[:-1], z[1:]).max() + 1 == 10


def test_consecutive_episodes_are_separated_and_rounding_is_tolerated() -> None:
    episodes = [walk(41, 0.9, seed=seed).astype(np.float32) for seed in range(30)]
    h, h_next = np.concatenate([e[:-1] for e in episodes]), np.concatenate([e[1:] for e in episodes])
    blocks = blocks_of(h, h_next * np.float32(1 + 1e-6))
    assert blocks.max() + 1 == 30 and (blocks == np.repeat(np.arange(30), 40)).all()


def test_shuffled_steps_are_sorted_into_blocks() -> None:
    z = walk(2001, 0.5)
    order = np.random.default_rng(1).permutation(2000)
    shuffled = blocks_of(z[:-1][order], z[1:][order])
    ordered = blocks_of(z[:-1], z[1:])
    pairs = np.unique(np.stack([shuffled, ordered[order]]), axis=1)
    assert pairs.shape[1] == ordered.max() + 1 == shuffled.max() + 1  # the same blocks with other labels


def test_some_linked_rows_are_reported() -> None:
    z = walk(3001, 0.9)
    order = np.random.default_rng(1).permutation(3000)[:900]
    found = find_trajectories(z[:-1][order], z[1:][order])
    assert found.blocks is None and 0.2 < found.linked < 0.4 and "groups" in found.note


def test_independent_and_repeated_rows_have_no_blocks() -> None:
    z = np.random.default_rng(1).standard_normal((2, 500, 2))
    assert find_trajectories(*z).linked == 0 and not find_trajectories(*z).note
    assert find_trajectories(np.ones((50, 2)), np.ones((50, 2))).blocks is None  # one state follows itself by chance
    bits = np.sign(np.random.default_rng(2).standard_normal((2, 400, 1)))
    assert find_trajectories(*bits).blocks is None
    many = np.random.default_rng(3).standard_normal((2, 100_000, 1))  # equal up to rounding, by chance
    assert find_trajectories(*many).blocks is None
