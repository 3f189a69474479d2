"""Policies that collect: what to do, from what is seen; and one that does anything, more or less smoothly.

A policy is called as `policy(observation, info, generator) -> action`. One that remembers something (the action
before, a plan) has `begin(space) -> policy`, called once for each episode: so episodes know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

from jepatlas.core.errors import InputError

__all__ = ["Policy", "RandomPolicy", "RemembersAnEpisode", "begin"]

Policy = Callable[[Any, Mapping[str, Any], Generator], Any]
"""From an observation, the environment's info and a generator to an action of its space."""


@runtime_checkable
class RemembersAnEpisode(Protocol):
    def begin(self, space: Any) -> Policy: ...


def begin(policy: Policy | RemembersAnEpisode, space: Any) -> Policy:
    """The policy of one episode, in an environment with this action space."""
    return policy.begin(space) if isinstance(policy, RemembersAnEpisode) else policy


@dataclass(frozen=True)
class RandomPolicy:
    """Any action, uniformly, whatever is seen; and the next one more or less like it.

    In a box, w' = p w + √(1 − p²) ε with Gaussian ε, and the action is low + (high − low) Φ(w): each of them is
    uniform, and the `persistence` p makes the path smooth. Of finitely many the last is kept with probability p.
    """

    kind: ClassVar[str] = "random"
    persistence: float = 0.0
    """How much of an action lasts to the next one, from 0 (nothing) to below 1."""
    repeat: int = 1
    """For how many steps an action is held."""

    def __post_init__(self) -> None:
        if not 0 <= self.persistence < 1:
            raise InputError(f"persistence is {self.persistence}, but it must be at least 0 and below 1.")
        if self.repeat < 1:
            raise InputError(f"repeat is {self.repeat}, but an action is held for at least 1 step.")

    def begin(self, space: Any) -> Policy:
        draws = _choices if hasattr(space, "n") else _paths
        return _Held(self, draws(space, self.persistence))


class _Held:
    """One episode's actions: drawn by the policy, and each held for a while."""

    def __init__(self, policy: RandomPolicy, draw: Callable[[Generator], Any]) -> None:
        self.repeat, self.draw, self.taken = policy.repeat, draw, 0

    def __call__(self, observation: Any, info: Mapping[str, Any], generator: Generator) -> Any:
        if self.taken % self.repeat == 0:
            self.action = self.draw(generator)
        self.taken += 1
        return self.action


def _paths(space: Any, persistence: float) -> Callable[[Generator], np.ndarray]:
    low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    w: np.ndarray | None = None

    def draw(generator: Generator) -> np.ndarray:
        nonlocal w
        fresh = generator.standard_normal(low.shape)
        w = fresh if w is None else persistence * w + np.sqrt(1 - persistence**2) * fresh
        return np.clip(low + (high - low) * ndtr(w), low, high).astype(space.dtype)

    return draw


def _choices(space: Any, persistence: float) -> Callable[[Generator], int]:
    kept: int | None = None

    def draw(generator: Generator) -> int:
        nonlocal kept
        fresh, chance = int(generator.integers(space.n)), generator.random()
        kept = fresh if kept is None or chance >= persistence else kept
        return int(space.start) + kept

    return draw
