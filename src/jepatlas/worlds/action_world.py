"""Protocol of worlds with actions: deterministic dynamics z' = f(z, u), observed as x = g(z), for many rows at once.

An action u lies in [−1, 1]^a; the world scales it to its own units. `ActionEnv` runs single episodes of a world as a
gymnasium environment; planners and tests against the truth call these functions directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["ActionWorld", "draw_starts", "rejection_sample"]

MAX_DRAWS = 1_000


class ActionWorld(Protocol):
    """A world's fields are its physical parameters; the b rows of an array are independent copies."""

    kind: ClassVar[str]

    @property
    def state_dim(self) -> int: ...

    @property
    def action_dim(self) -> int: ...

    def states(self, count: int, rng: np.random.Generator) -> np.ndarray:  # (count, n) float64
        """Random admissible states that cover the state space."""
        ...

    def goals(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # (b, n) → (b, n)
        """For each state a random goal that can be reached from it and is not reached yet."""
        ...

    def admits(self, states: np.ndarray) -> np.ndarray:  # (b, n) → (b,) bool
        """Whether states are admissible."""
        ...

    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:  # (b, n), (b, a) → (b, n)
        """The states after actions in [−1, 1]^a."""
        ...

    def observe(self, states: np.ndarray) -> np.ndarray:  # (b, n) → (b, ...)
        """Observations: pixels in uint8, or numbers in float64."""
        ...

    def reached(self, states: np.ndarray, goals: np.ndarray) -> np.ndarray:  # (b, n), (b, n) → (b,) bool
        ...


def draw_starts(world: ActionWorld, count: int, rng: np.random.Generator) -> np.ndarray:
    """Start states for tasks: `world.starts` if the world defines it, else `world.states`."""
    draw = getattr(world, "starts", world.states)
    return draw(count, rng)


def rejection_sample(
    draw: Callable[[int], np.ndarray], accept: Callable[[np.ndarray, np.ndarray], np.ndarray], count: int
) -> np.ndarray:
    """Draw `count` rows, replacing rejected rows until `accept(row_indices, rows)` holds for all: (count, n).

    >>> rng = np.random.default_rng(0)
    >>> bool((rejection_sample(lambda k: rng.uniform(size=(k, 1)), lambda _, x: x[:, 0] > 0.9, 5) > 0.9).all())
    True
    """
    rows = draw(count)
    rejected = np.flatnonzero(~accept(np.arange(count), rows))
    for _ in range(MAX_DRAWS):
        if not len(rejected):
            return rows
        rows[rejected] = draw(len(rejected))
        rejected = rejected[~accept(rejected, rows[rejected])]
    raise InputError(
        f"No valid state or goal was found for {len(rejected)} of {count} rows in {MAX_DRAWS} draws. Free space may be "
        "too small, or no goal can be reached. Change the world's layout, or pass the state and the goal yourself."
    )
