"""How a flat world is seen: the box [−1, 1]² turned, mirrored and scaled into a picture, in colours.

Two cameras on one world give other pixels of the same state. Continuous pixel coordinates are (row, column) from the
upper left corner of the picture; the pixel (i, j) covers [i, i + 1] × [j, j + 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from jepatlas.core.config import check_literals
from jepatlas.core.errors import check_argument

__all__ = ["PALETTES", "SIDE", "Camera", "Colours"]

SIDE = 64  # pixels along a side of a picture

Rgb = tuple[int, int, int]


@dataclass(frozen=True)
class Colours:
    floor: Rgb
    wall: Rgb
    door: Rgb
    """The ground of a one-way door."""
    arrow: Rgb
    """The arrows on it, which point where it leads."""
    agent: Rgb


PALETTES = {
    "day": Colours((236, 232, 222), (52, 62, 80), (190, 208, 196), (38, 132, 96), (214, 62, 48)),
    "night": Colours((22, 27, 43), (124, 138, 168), (44, 66, 84), (98, 198, 204), (252, 200, 72)),
    "clay": Colours((206, 148, 112), (98, 52, 40), (222, 188, 140), (250, 240, 208), (28, 92, 142)),
}


@dataclass(frozen=True)
class Camera:
    """Looks straight down; `angle` and `mirror` place it, `palette` colours what it sees.

    >>> Camera().project(np.array([[-1.0, 1.0], [0.0, 0.0]])).tolist()
    [[0.0, 0.0], [32.0, 32.0]]
    """

    angle: float = 0.0
    """By how many degrees the picture is turned, to the left."""
    mirror: bool = False
    """Whether left and right change places, before it is turned."""
    zoom: float | None = None
    """Size of the world in the picture; 1 is from side to side. None for the largest at which it fits."""
    palette: Literal["day", "night", "clay"] = "day"
    """Colours of the picture."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_argument("angle", self.angle, math.isfinite(self.angle), "a finite number of degrees")
        if self.zoom is not None:
            most = f"above 0 and at most {self.fits:.4f}, at which the world still fits; or none for that"
            check_argument("zoom", self.zoom, 0 < self.zoom <= self.fits, most)

    @property
    def fits(self) -> float:
        """The largest zoom at which no corner of the world is cut off."""
        turn = math.radians(self.angle)
        return 1.0 / (abs(math.cos(turn)) + abs(math.sin(turn)))

    @cached_property
    def scale(self) -> float:
        """Pixels to a unit of length."""
        return SIDE / 2 * (self.fits if self.zoom is None else self.zoom)

    @property
    def colours(self) -> Colours:
        return PALETTES[self.palette]

    def project(self, x: np.ndarray) -> np.ndarray:
        """Places of the world in pixels, (..., 2) → (..., 2) as (row, column)."""
        return SIDE / 2 + np.asarray(x, dtype=np.float64) @ self._matrix.T

    def unproject(self, pixels: np.ndarray) -> np.ndarray:
        """The places that are seen at continuous pixels (..., 2)."""
        return (np.asarray(pixels, dtype=np.float64) - SIDE / 2) @ np.linalg.inv(self._matrix).T

    @cached_property
    def _matrix(self) -> np.ndarray:
        """From (x, y) to (row, column) round the middle of the picture; rows count downwards."""
        turn = math.radians(self.angle)
        cosine, sine, side = math.cos(turn), math.sin(turn), -1.0 if self.mirror else 1.0
        return self.scale * np.array([[-sine * side, -cosine], [cosine * side, -sine]])
