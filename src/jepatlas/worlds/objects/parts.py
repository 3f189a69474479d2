"""Parts of objects: MuJoCo's primitives with size, position, frame and colour; and random numbers for building them.

An object stands upright (z), faces along x, and is scaled to a common size.
"""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

__all__ = ["Colour", "Dice", "Part", "ball", "box", "disc", "fit_to_ball", "rod"]

Colour = tuple[float, float, float]
Shape = Literal["box", "capsule", "cylinder", "ellipsoid"]
Point = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Part:
    """`size`: half lengths along its own axes, or (radius, radius, half length of the straight part) if round."""

    shape: Shape
    size: np.ndarray  # (3,)
    centre: np.ndarray  # (3,)
    frame: np.ndarray  # (3, 3), its axes as columns
    colour: Colour

    def half_extent(self) -> np.ndarray:
        """Half the axis-aligned bounding box: (3,)."""
        if self.shape == "box":
            return np.abs(self.frame) @ self.size
        if self.shape == "ellipsoid":
            return np.sqrt(self.frame**2 @ self.size**2)
        axis, radius, half = self.frame[:, 2], self.size[0], self.size[2]
        across = np.sqrt(np.clip(1 - axis**2, 0, None)) if self.shape == "cylinder" else 1.0
        return np.abs(axis) * half + radius * across


def box(centre: Point, half: Point, colour: Colour, lean: float = 0.0) -> Part:
    """`lean`: rotation about y in radians; positive values move the top backwards."""
    c, s = np.cos(lean), -np.sin(lean)
    frame = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    return Part("box", np.array(half, float), np.array(centre, float), frame, colour)


def ball(centre: Point, radii: Point, colour: Colour) -> Part:
    return Part("ellipsoid", np.array(radii, float), np.array(centre, float), np.eye(3), colour)


def rod(start: Point, end: Point, radius: float, colour: Colour, *, rounded: bool = True) -> Part:
    """A capsule (rounded ends) or a cylinder (flat ends) between two points."""
    a, b = np.array(start, float), np.array(end, float)
    size = np.array([radius, radius, np.linalg.norm(b - a) / 2])
    return Part("capsule" if rounded else "cylinder", size, (a + b) / 2, _frame_along(b - a), colour)


def disc(centre: Point, radius: float, half: float, colour: Colour) -> Part:
    """An upright cylinder."""
    return Part("cylinder", np.array([radius, radius, half]), np.array(centre, float), np.eye(3), colour)


def _frame_along(direction: np.ndarray) -> np.ndarray:
    """A frame whose third axis has this direction."""
    z = direction / np.linalg.norm(direction)
    other = [0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0]
    x = np.cross(other, z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], 1)


def fit_to_ball(parts: list[Part], radius: float) -> list[Part]:
    """Centre the object's bounding box at 0 and scale it to the inside of a ball."""
    low = np.min([part.centre - part.half_extent() for part in parts], 0)
    high = np.max([part.centre + part.half_extent() for part in parts], 0)
    middle, scale = (low + high) / 2, radius / np.linalg.norm((high - low) / 2)
    return [replace(part, size=part.size * scale, centre=(part.centre - middle) * scale) for part in parts]


@dataclass(frozen=True)
class Dice:
    """Random lengths and colours of an instance."""

    rng: np.random.Generator

    def between(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def count(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most, endpoint=True))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def colour(self) -> Colour:
        """Any hue, so that colours carry no information about the category."""
        return colorsys.hsv_to_rgb(self.between(0, 1), self.between(0.4, 0.95), self.between(0.4, 0.95))
