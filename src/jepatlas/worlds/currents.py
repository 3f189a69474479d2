"""Currents of the plane: velocity fields W(x), and reachability where a current exceeds the agent's speed.

Against a slower current, an agent reaches every place that it reaches without the current. For a faster current there
is no closed-form rule among walls. `exploratory_paths` therefore follows straight and turning paths through the world
itself; a goal counts as reachable if one of them reaches it. Some reachable goals are missed, but none is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jepatlas.core.errors import check_argument, check_positive

__all__ = [
    "AnyCurrent",
    "ConstantCurrent",
    "JetCurrent",
    "ShearCurrent",
    "VortexCurrent",
    "exceeds_agent_speed",
    "exploratory_paths",
    "on_a_path",
]

STRAIGHT = TURNING = 16  # exploratory paths from each state
TURN_PROBABILITY = 1 / 6  # of a turning path, in each step
WIDTHS = 3  # length of exploratory paths, in widths of the world

Step = Callable[[np.ndarray, np.ndarray], np.ndarray]
Reached = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ConstantCurrent:
    """W(x) = W, for which the minimal time has a closed form.

    >>> ConstantCurrent(0.5, 0.0).velocity(np.array([[1.0, 2.0]]))
    array([[0.5, 0. ]])
    """

    kind: ClassVar[str] = "constant"

    along: float = 0.5
    """Velocity along the first axis; 1 is the default speed of the vehicle."""
    across: float = 0.0
    """Velocity along the second axis."""

    def __post_init__(self) -> None:
        _check_finite(along=self.along, across=self.across)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to([self.along, self.across], np.shape(x)).astype(np.float64)


@dataclass(frozen=True)
class ShearCurrent:
    """W(x) = (rate · x₁, 0): opposite directions on the two sides of the first axis."""

    kind: ClassVar[str] = "shear"

    rate: float = 0.9
    """Change of the velocity per unit along the second axis."""

    def __post_init__(self) -> None:
        _check_finite(rate=self.rate)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        return _along_first_axis(self.rate * x[..., 1])


@dataclass(frozen=True)
class JetCurrent:
    """W(x) = (speed · exp(−x₁² / 2 width²), 0): a stream along the first axis."""

    kind: ClassVar[str] = "jet"

    speed: float = 0.9
    """Velocity in the middle of the stream."""
    width: float = 0.3
    """Standard deviation of the velocity profile."""

    def __post_init__(self) -> None:
        _check_finite(speed=self.speed)
        _check_positive(width=self.width)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        return _along_first_axis(self.speed * np.exp(-0.5 * (x[..., 1] / self.width) ** 2))


@dataclass(frozen=True)
class VortexCurrent:
    """A counter-clockwise vortex about the origin of velocity speed · (r/R) · exp((1 − (r/R)²) / 2)."""

    kind: ClassVar[str] = "vortex"

    speed: float = 0.8
    """Largest velocity; negative for a clockwise vortex."""
    radius: float = 0.5
    """Radius R at which the velocity is largest."""

    def __post_init__(self) -> None:
        _check_finite(speed=self.speed)
        _check_positive(radius=self.radius)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        scaled = np.asarray(x, dtype=np.float64) / self.radius
        turned = np.stack([-scaled[..., 1], scaled[..., 0]], -1)
        return self.speed * turned * np.exp((1 - np.square(scaled).sum(-1, keepdims=True)) / 2)


# The choices of recipe files and the command line. Register a new current here.
AnyCurrent = ConstantCurrent | ShearCurrent | JetCurrent | VortexCurrent


def _along_first_axis(first: np.ndarray) -> np.ndarray:
    return np.stack([first, np.zeros_like(first)], -1)


def _check_finite(**values: float) -> None:
    for name, value in values.items():
        check_argument(name, value, math.isfinite(value), "finite")


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        check_positive(name, value)


def exceeds_agent_speed(current: AnyCurrent | None) -> bool:
    """Whether the current is at least as fast as the agent (speed 1) anywhere in the box [−1, 1]²."""
    if current is None:
        return False
    axis = np.linspace(-1, 1, 101)
    velocity = current.velocity(np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2))
    return bool(np.linalg.norm(velocity, axis=-1).max() >= 1)


def exploratory_paths(step: Step, states: np.ndarray, step_length: float, rng: np.random.Generator) -> np.ndarray:
    """Straight and turning paths from each state, which is their first point: (b, 2) → (b, paths, steps + 1, 2)."""
    count, paths = len(states), STRAIGHT + TURNING
    angle = 2 * np.pi * (np.arange(paths) / STRAIGHT + rng.uniform(size=(count, 1)))
    turning = np.arange(paths) >= STRAIGHT
    x = np.repeat(states, paths, axis=0)
    visited = [states[:, None].repeat(paths, 1)]
    for _ in range(round(2 * WIDTHS / step_length)):
        turned = turning & (rng.uniform(size=angle.shape) < TURN_PROBABILITY)
        angle = np.where(turned, rng.uniform(0, 2 * np.pi, angle.shape), angle)
        x = step(x, np.stack([np.cos(angle), np.sin(angle)], -1).reshape(-1, 2))
        visited.append(x.reshape(count, paths, 2))
    return np.stack(visited, axis=2)


def on_a_path(paths: np.ndarray, goals: np.ndarray, reached: Reached) -> np.ndarray:
    """Whether a point of a row's paths reaches its goal: (b, paths, steps + 1, 2), (b, 2) → (b,)."""
    count = paths.shape[1] * paths.shape[2]
    found = reached(paths.reshape(-1, 2), np.repeat(goals, count, axis=0))
    return np.logical_or.reduce(found.reshape(-1, count), axis=1)
