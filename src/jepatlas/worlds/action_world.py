"""What a world with actions is: deterministic physics z' = f(z, u), seen as x = g(z), for many rows at once.

An action u lies in [−1, 1]^a, whatever its units in the world; the world scales it. One step of one episode is
`ActionEnv`; what plans or checks against the truth takes these functions themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["ActionWorld", "PixelWorld", "draw_until"]

TRIES = 1_000  # draws before we say that there is nothing to draw


class ActionWorld(Protocol):
    """The config of a world is its physics; b rows are b independent copies of it."""

    kind: ClassVar[str]

    @property
    def state_dim(self) -> int: ...

    @property
    def action_dim(self) -> int: ...

    def states(self, count: int, rng: np.random.Generator) -> np.ndarray:  # (count, n) float64
        """States one can be in, spread evenly."""
        ...

    def goals(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # (b, n) → (b, n)
        """For each state a goal that can be reached from it, and is not yet."""
        ...

    def admits(self, states: np.ndarray) -> np.ndarray:  # (b, n) → (b,) bool
        """Whether one can be in these states."""
        ...

    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:  # (b, n), (b, a) → (b, n)
        """The states after actions in [−1, 1]^a."""
        ...

    def observe(self, states: np.ndarray) -> np.ndarray:  # (b, n) → (b, ...)
        """What a learner is given: pixels in uint8, or numbers in float64."""
        ...

    def reached(self, states: np.ndarray, goals: np.ndarray) -> np.ndarray:  # (b, n), (b, n) → (b,) bool
        ...


class PixelWorld(ActionWorld, Protocol):
    """A world that can be looked at; its observations are these pictures."""

    def render(self, states: np.ndarray) -> np.ndarray:  # (b, n) → (b, 64, 64, 3) uint8
        ...


def draw_until(
    draw: Callable[[int], np.ndarray], fits: Callable[[np.ndarray, np.ndarray], np.ndarray], count: int
) -> np.ndarray:
    """Rows of `draw(how many)`, each drawn again until `fits(row numbers, rows)`: (count, n).

    >>> rng = np.random.default_rng(0)
    >>> bool((draw_until(lambda k: rng.uniform(size=(k, 1)), lambda _, x: x[:, 0] > 0.9, 5) > 0.9).all())
    True
    """
    rows = draw(count)
    open_ = np.flatnonzero(~fits(np.arange(count), rows))
    for _ in range(TRIES):
        if not len(open_):
            return rows
        rows[open_] = draw(len(open_))
        open_ = open_[~fits(open_, rows[open_])]
    raise InputError(
        f"Nothing suitable was found in {TRIES} draws for {len(open_)} of {count} rows: the world leaves no room, "
        "or no goal can be reached from there. Make it wider, or give the state and the goal yourself."
    )
