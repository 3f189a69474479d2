"""Policies for collecting episodes.

A policy is a function `policy(observation, info, generator) -> action`. A policy with memory (the previous action, a
plan) implements `begin(space) -> policy` instead, which is called once per episode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator

from jepatlas.core.errors import InputError, check_count
from jepatlas.core.lazy import lazy_import

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazy_import("scipy.special")

__all__ = ["EpisodicPolicy", "Policy", "RandomPolicy"]

Policy = Callable[[Any, Mapping[str, Any], Generator], Any]
"""(observation, info of the environment, generator) → action."""


@runtime_checkable
class EpisodicPolicy(Protocol):
    """A policy with memory: `begin` returns a fresh policy for each episode."""

    def begin(self, space: Any) -> Policy: ...


@dataclass(frozen=True)
class RandomPolicy:
    """Uniform random actions that are correlated over time.

    In a box, w' = p w + √(1 − p²) ε with Gaussian ε, and the action is low + (high − low) Φ(w): each action is uniform,
    and `persistence` p makes the sequence smooth. A discrete action is repeated with probability p.
    """

    kind: ClassVar[str] = "random"
    persistence: float = 0.0
    """Correlation of successive actions, from 0 (independent) to below 1."""
    repeat: int = 1
    """Number of steps for which each action is held."""

    def __post_init__(self) -> None:
        if not 0 <= self.persistence < 1:
            raise InputError(f"persistence must be in [0, 1), but is {self.persistence}.")
        check_count("repeat", self.repeat)

    def begin(self, space: Any) -> Policy:
        sample = _discrete_sampler if hasattr(space, "n") else _box_sampler
        return _HeldActions(sample(space, self.persistence), self.repeat)


class _HeldActions:
    """The actions of one episode, each held for `repeat` steps."""

    def __init__(self, sample: Callable[[Generator], Any], repeat: int) -> None:
        self.sample, self.repeat, self.count = sample, repeat, 0

    def __call__(self, observation: Any, info: Mapping[str, Any], generator: Generator) -> Any:
        if self.count % self.repeat == 0:
            self.action = self.sample(generator)
        self.count += 1
        return self.action


def _box_sampler(space: Any, persistence: float) -> Callable[[Generator], np.ndarray]:
    low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    w: np.ndarray | None = None

    def sample(generator: Generator) -> np.ndarray:
        nonlocal w
        noise = generator.standard_normal(low.shape)
        w = noise if w is None else persistence * w + np.sqrt(1 - persistence**2) * noise
        return np.clip(low + (high - low) * special.ndtr(w), low, high).astype(space.dtype)

    return sample


def _discrete_sampler(space: Any, persistence: float) -> Callable[[Generator], int]:
    current: int | None = None

    def sample(generator: Generator) -> int:
        nonlocal current
        fresh, chance = int(generator.integers(space.n)), generator.random()
        if current is None or chance >= persistence:
            current = fresh
        return int(space.start) + current

    return sample
