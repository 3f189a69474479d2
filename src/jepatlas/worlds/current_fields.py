"""Currents of the plane: what carries a vehicle along, as a velocity W(x) at each place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jepatlas.core.errors import check_argument

__all__ = ["AnyCurrent", "ConstantCurrent", "JetCurrent", "ShearCurrent", "VortexCurrent"]


@dataclass(frozen=True)
class ConstantCurrent:
    """W(x) = W, for which the least time is known in closed form.

    >>> ConstantCurrent(0.5, 0.0).velocity(np.array([[1.0, 2.0]]))
    array([[0.5, 0. ]])
    """

    kind: ClassVar[str] = "constant"

    along: float = 0.5
    """Velocity along the first axis; 1 is the speed of the usual vehicle."""
    across: float = 0.0
    """Velocity along the second axis."""

    def __post_init__(self) -> None:
        _check_finite(along=self.along, across=self.across)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to([self.along, self.across], np.shape(x)).astype(np.float64)


@dataclass(frozen=True)
class ShearCurrent:
    """W(x) = (rate · x₁, 0): one way on one side, the other way on the other."""

    kind: ClassVar[str] = "shear"

    rate: float = 0.9
    """How much faster the current is for each unit along the second axis."""

    def __post_init__(self) -> None:
        _check_finite(rate=self.rate)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        return _along(self.rate * x[..., 1])


@dataclass(frozen=True)
class JetCurrent:
    """W(x) = (speed · exp(−x₁² / 2 width²), 0): a stream along the middle of the box."""

    kind: ClassVar[str] = "jet"

    speed: float = 0.9
    """Velocity in the middle of the stream."""
    width: float = 0.3
    """Half of the stream's width, as the standard deviation of its profile."""

    def __post_init__(self) -> None:
        _check_finite(speed=self.speed)
        _check_positive(width=self.width)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        return _along(self.speed * np.exp(-0.5 * (x[..., 1] / self.width) ** 2))


@dataclass(frozen=True)
class VortexCurrent:
    """W(x) = speed · (r/R) · exp((1 − (r/R)²) / 2), turning left around the origin; fastest at r = R."""

    kind: ClassVar[str] = "vortex"

    speed: float = 0.8
    """Velocity on the circle where it is fastest; negative to turn right."""
    radius: float = 0.5
    """Radius R of that circle."""

    def __post_init__(self) -> None:
        _check_finite(speed=self.speed)
        _check_positive(radius=self.radius)

    def velocity(self, x: np.ndarray) -> np.ndarray:
        scaled = np.asarray(x, dtype=np.float64) / self.radius
        turned = np.stack([-scaled[..., 1], scaled[..., 0]], -1)
        return self.speed * turned * np.exp((1 - np.square(scaled).sum(-1, keepdims=True)) / 2)


# What recipe files and the command line offer; a new current is added here.
AnyCurrent = ConstantCurrent | ShearCurrent | JetCurrent | VortexCurrent


def _along(first: np.ndarray) -> np.ndarray:
    return np.stack([first, np.zeros_like(first)], -1)


def _check_finite(**given: float) -> None:
    for name, value in given.items():
        check_argument(name, value, math.isfinite(value), "finite")


def _check_positive(**given: float) -> None:
    for name, value in given.items():
        check_argument(name, value, 0 < value < math.inf, "positive and finite")
