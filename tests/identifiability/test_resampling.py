"""Consecutive rows are seen as such, chance coincidences are not, and blocks are longer than what rows remember."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.identifiability import time_blocks


def walk(rows: int, rho: float, dim: int = 2, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal((rows, dim))
    states = [noise[0]]
    for step in noise[1:]:
        states.append(rho * states[-1] + np.sqrt(1 - rho**2) * step)
    return np.array(states)


def blocks_of(h: np.ndarray, h_next: np.ndarray) -> np.ndarray:
    found = time_blocks(h, h_next)
    assert found is not None
    return found


@pytest.mark.parametrize(("rho", "length"), [(0.0, 5), (0.5, 15), (0.9, 95)])
def test_blocks_are_five_correlation_times_long(rho: float, length: int) -> None:
    z = walk(20_001, rho)
    blocks = blocks_of(z[:-1], z[1:])
    sizes = np.bincount(blocks)
    assert sizes[0] == pytest.approx(length, rel=0.25) and (np.diff(blocks) >= 0).all()
    assert (sizes[:-1] == sizes[0]).all() and sizes.sum() == 20_000


def test_what_hardly_forgets_still_has_ten_blocks() -> None:
    z = np.c_[np.arange(1001.0), np.ones(1001)]  # and a coordinate that never varies
    assert blocks_of(z[:-1], z[1:]).max() + 1 == 10


def test_episodes_after_one_another_are_not_joined_and_rounding_does_not_part_them() -> None:
    episodes = [walk(41, 0.9, seed=seed).astype(np.float32) for seed in range(30)]
    h, h_next = np.concatenate([e[:-1] for e in episodes]), np.concatenate([e[1:] for e in episodes])
    blocks = blocks_of(h, h_next * np.float32(1 + 1e-6))
    assert blocks.max() + 1 == 30 and (blocks == np.repeat(np.arange(30), 40)).all()


def test_pairs_in_no_order_have_no_blocks() -> None:
    z = walk(500, 0.9)
    order = np.random.default_rng(1).permutation(499)
    assert time_blocks(z[:-1][order], z[1:][order]) is None
    assert time_blocks(np.ones((50, 2)), np.ones((50, 2))) is None  # one state follows itself by chance as well
    bits = np.sign(np.random.default_rng(2).standard_normal((2, 400, 1)))
    assert time_blocks(*bits) is None
