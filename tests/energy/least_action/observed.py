"""Observed steps with known cheapest ways: random tables, and walks in a plane with a one-way wall."""

from __future__ import annotations

import numpy as np

from jepatlas.core.records import Experience

__all__ = ["by_relaxation", "one_way_walks", "table_walks", "tabular_costs"]

DOOR = 0.3  # half of the plane's one-way opening: it leads from x < 0 to x > 0


def tabular_costs(states: int, seed: int) -> np.ndarray:
    """A random directed graph with unequal costs, (n, n), +∞ where there is no edge."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((states, states)) < 3 / states, rng.uniform(0.5, 2.0, (states, states)), np.inf)


def table_walks(costs: np.ndarray, seed: int) -> tuple[Experience, np.ndarray]:
    """Every edge of a table as episodes of one or two steps, and the latents of its states."""
    rng = np.random.default_rng(seed)
    latents = rng.standard_normal((len(costs), 3)).astype(np.float32)
    source, target = np.nonzero(np.isfinite(costs) & ~np.eye(len(costs), dtype=bool))
    source, target = np.tile(source, 3), np.tile(target, 3)
    steps = Experience(latents[source], latents[target], costs[source, target], np.arange(len(source)))
    return steps, latents


def by_relaxation(costs: np.ndarray) -> np.ndarray:
    """The cheapest ways between all states, by relaxing all edges until nothing changes."""
    best = np.where(np.eye(len(costs), dtype=bool), 0.0, costs)
    while True:
        relaxed = np.minimum(best, (best[:, :, None] + best[None]).min(1))
        if (relaxed == best).all():
            return best
        best = relaxed


def one_way_walks(episodes: int, length: int, seed: int, noise: float = 0.01) -> Experience:
    """Random walks in the square |x|, |y| < 1, whose wall at x = 0 can be crossed at |y| < 0.3, from left to right.

    The latents are the positions in six dimensions, with noise that blurs the sides of the wall.
    """
    rng = np.random.default_rng(seed)
    place = rng.uniform(-1, 1, (episodes, 2))
    heading = rng.uniform(0, 2 * np.pi, episodes)
    walks = [place]
    for _ in range(length):
        heading = heading + rng.normal(0, 0.6, episodes)
        moved = place + 0.1 * np.stack([np.cos(heading), np.sin(heading)], 1)
        left, was_left = moved[:, 0] < 0, place[:, 0] < 0
        blocked = (was_left & ~left & (np.abs(moved[:, 1]) > DOOR)) | (~was_left & left)
        moved[blocked, 0] = np.where(was_left[blocked], -0.005, 0.005)
        outside = (np.abs(moved) > 1).any(1)
        heading = np.where(blocked | outside, heading + np.pi, heading)
        place = np.clip(moved, -1, 1)
        walks.append(place)
    lift = np.linalg.qr(rng.standard_normal((6, 6)))[0][:2]
    states = np.stack(walks, 1) @ lift + noise * rng.standard_normal((episodes, length + 1, 6))
    x, x_next = (part.reshape(-1, 6) for part in (states[:, :-1], states[:, 1:]))
    z, z_next = (np.stack(part, 1).reshape(-1, 2) for part in (walks[:-1], walks[1:]))
    return Experience(x, x_next, np.ones(len(x)), np.repeat(np.arange(episodes), length), z, z_next)
