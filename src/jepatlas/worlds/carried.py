"""Ways in a current that may be faster than the agent: what is on one of them can be reached, because it was.

Against a slower current one gets everywhere that one gets without it. For a faster one there is no rule that also knows
walls. So ways are tried in the world itself, straight ones in all directions and ones that turn, and a goal counts as
reachable where one of them has reached it. Some that can be reached are missed, and none is that cannot.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.worlds.current_fields import AnyCurrent

__all__ = ["carried_ways", "on_a_way", "too_fast"]

STRAIGHT = TURNING = 16  # ways that are tried from each state
TURN = 1 / 6  # how likely one that turns does so in a step
WIDTHS = 3  # times the width of the world, which is how long ways are

Step = Callable[[np.ndarray, np.ndarray], np.ndarray]
Reached = Callable[[np.ndarray, np.ndarray], np.ndarray]


def too_fast(current: AnyCurrent | None) -> bool:
    """Whether it is as fast as the agent somewhere in the box."""
    if current is None:
        return False
    axis = np.linspace(-1, 1, 101)
    velocity = current.velocity(np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2))
    return bool(np.linalg.norm(velocity, axis=-1).max() >= 1)


def carried_ways(step: Step, states: np.ndarray, step_length: float, rng: np.random.Generator) -> np.ndarray:
    """Where ways from each state lead, the state itself among it: (b, 2) → (b, ways, steps + 1, 2)."""
    count, ways = len(states), STRAIGHT + TURNING
    angle = 2 * np.pi * (np.arange(ways) / STRAIGHT + rng.uniform(size=(count, 1)))
    turning = np.arange(ways) >= STRAIGHT
    x, seen = np.repeat(states, ways, axis=0), [states[:, None].repeat(ways, 1)]
    for _ in range(round(2 * WIDTHS / step_length)):
        turned = turning & (rng.uniform(size=angle.shape) < TURN)
        angle = np.where(turned, rng.uniform(0, 2 * np.pi, angle.shape), angle)
        x = step(x, np.stack([np.cos(angle), np.sin(angle)], -1).reshape(-1, 2))
        seen.append(x.reshape(count, ways, 2))
    return np.stack(seen, axis=2)


def on_a_way(ways: np.ndarray, goals: np.ndarray, reached: Reached) -> np.ndarray:
    """Whether one of its ways has reached each goal: (b, ways, steps + 1, 2), (b, 2) → (b,)."""
    count = ways.shape[1] * ways.shape[2]
    found = reached(ways.reshape(-1, 2), np.repeat(goals, count, axis=0))
    return np.logical_or.reduce(found.reshape(-1, count), axis=1)
