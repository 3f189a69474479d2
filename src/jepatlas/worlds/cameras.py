"""Cameras and images of flat worlds: the box [−1, 1]² rotated, mirrored, scaled and coloured.

Two cameras in one world give different pixels for the same state. Continuous pixel coordinates are (row, column) from
the upper left corner of the image; pixel (i, j) covers [i, i + 1] × [j, j + 1].

The static ground is drawn once; for each state only a patch around the agent is drawn. The agent is a disc at its
exact position with an edge that fades over two pixels, so images change smoothly with the state, and the state can be
read from the image to a small fraction of a pixel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from jepatlas.core.config import check_literals
from jepatlas.core.errors import check_argument
from jepatlas.worlds.walls import Walls

__all__ = ["PALETTES", "SIDE", "Camera", "Palette", "draw_agents", "draw_ground"]

SIDE = 64  # pixels along a side of an image
SUPERSAMPLING = 8  # sample points along a side of a pixel
ARROW_LENGTH = 0.15  # of the arrows on a door

Rgb = tuple[int, int, int]


@dataclass(frozen=True)
class Palette:
    floor: Rgb
    wall: Rgb
    door: Rgb
    """The ground of a one-way door."""
    arrow: Rgb
    """The arrows on a one-way door, which point in its direction."""
    agent: Rgb


PALETTES = {
    "day": Palette((236, 232, 222), (52, 62, 80), (190, 208, 196), (38, 132, 96), (214, 62, 48)),
    "night": Palette((22, 27, 43), (124, 138, 168), (44, 66, 84), (98, 198, 204), (252, 200, 72)),
    "clay": Palette((206, 148, 112), (98, 52, 40), (222, 188, 140), (250, 240, 208), (28, 92, 142)),
}


@dataclass(frozen=True)
class Camera:
    """Looks straight down on the world.

    >>> Camera().project(np.array([[-1.0, 1.0], [0.0, 0.0]])).tolist()
    [[0.0, 0.0], [32.0, 32.0]]
    """

    angle: float = 0.0
    """Counter-clockwise rotation of the image, in degrees."""
    mirror: bool = False
    """Whether left and right are swapped, before the rotation."""
    zoom: float | None = None
    """Size of the world relative to the image; none for the largest size at which it fits."""
    palette: Literal["day", "night", "clay"] = "day"
    """Colours of the image."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_argument("angle", self.angle, math.isfinite(self.angle), "a finite number of degrees")
        if self.zoom is not None:
            allowed = f"above 0 and at most {self.largest_zoom:.4f}, where the world still fits, or none for that value"
            check_argument("zoom", self.zoom, 0 < self.zoom <= self.largest_zoom, allowed)

    @property
    def largest_zoom(self) -> float:
        """The largest zoom at which no corner of the world is cut off."""
        angle = math.radians(self.angle)
        return 1.0 / (abs(math.cos(angle)) + abs(math.sin(angle)))

    @cached_property
    def scale(self) -> float:
        """Pixels per unit of length."""
        return SIDE / 2 * (self.largest_zoom if self.zoom is None else self.zoom)

    @property
    def colours(self) -> Palette:
        return PALETTES[self.palette]

    def project(self, x: np.ndarray) -> np.ndarray:
        """World coordinates to continuous pixels, (..., 2) → (..., 2) as (row, column)."""
        return SIDE / 2 + np.asarray(x, dtype=np.float64) @ self._matrix.T

    def unproject(self, pixels: np.ndarray) -> np.ndarray:
        """Continuous pixels (..., 2) to world coordinates."""
        return (np.asarray(pixels, dtype=np.float64) - SIDE / 2) @ np.linalg.inv(self._matrix).T

    @cached_property
    def _matrix(self) -> np.ndarray:
        """From (x, y) to (row, column) about the centre of the image; rows count downwards."""
        angle = math.radians(self.angle)
        cosine, sine = math.cos(angle), math.sin(angle)
        side = -1.0 if self.mirror else 1.0
        return self.scale * np.array([[-sine * side, -cosine], [cosine * side, -sine]])


def draw_ground(camera: Camera, walls: Walls, thickness: float) -> np.ndarray:
    """Floor, walls and one-way doors: (SIDE, SIDE, 3) uint8."""
    samples = (np.arange(SIDE * SUPERSAMPLING) + 0.5) / SUPERSAMPLING
    x = camera.unproject(np.stack(np.meshgrid(samples, samples, indexing="ij"), -1))
    colours = camera.colours
    image = np.full((*x.shape[:-1], 3), colours.floor, dtype=np.float32)
    image[walls.inside(x) | (np.abs(x) > 1).any(-1)] = colours.wall
    for door in np.flatnonzero(~walls.solid):
        low, high, direction = walls.low[door], walls.high[door], walls.direction[door]
        across_axis = np.abs(direction[::-1])
        from_middle = x - (low + high) / 2
        along, across = from_middle @ direction, from_middle @ across_axis
        width = float((high - low) @ across_axis)
        image[(np.abs(along) <= thickness / 2) & (np.abs(across) <= width / 2)] = colours.door
        image[_arrows(along, across, width)] = colours.arrow
    pixels = image.reshape(SIDE, SUPERSAMPLING, SIDE, SUPERSAMPLING, 3).mean((1, 3))
    return np.rint(pixels).astype(np.uint8)


def _arrows(along: np.ndarray, across: np.ndarray, width: float) -> np.ndarray:
    """A row of triangles that point along the door's direction."""
    count = max(1, int(width / (1.3 * ARROW_LENGTH)))
    pitch = width / count
    from_axis = np.abs((across + width / 2) % pitch - pitch / 2)
    to_tip = 0.5 - along / ARROW_LENGTH  # 1 at the base, 0 at the tip
    return (to_tip >= 0) & (to_tip <= 1) & (from_axis <= to_tip * 0.45 * ARROW_LENGTH) & (np.abs(across) < width / 2)


def draw_agents(ground: np.ndarray, camera: Camera, x: np.ndarray, radius: float) -> np.ndarray:
    """Images of an agent at each position, (b, 2) → (b, SIDE, SIDE, 3) uint8."""
    centre, size = camera.project(x), radius * camera.scale
    patch = 2 * math.ceil(size + 1) + 1
    # The agent is at most its radius outside the image, so a patch moved back inside still contains all of it.
    corner = np.maximum(np.minimum(centre.astype(np.int64) - patch // 2, SIDE - patch), 0)
    pixels = corner[:, :, None] + np.arange(patch)  # (b, 2, patch): rows and columns
    offset = (pixels + 0.5 - centre[:, :, None]).astype(np.float32)
    row, column = pixels[:, 0, :, None], pixels[:, 1, None, :]
    squared_distance = np.square(offset[:, 0, :, None]) + np.square(offset[:, 1, None, :])
    cover = _smooth_disc(squared_distance, size)[..., None]
    under = ground[row, column]
    blended = under + cover * (np.array(camera.colours.agent, dtype=np.float32) - under)
    images = np.empty((len(centre), *ground.shape), dtype=np.uint8)
    images[:] = ground
    images[np.arange(len(centre))[:, None, None], row, column] = np.rint(blended)
    return images


def _smooth_disc(squared_distance: np.ndarray, radius: float) -> np.ndarray:
    """Opacity of the disc: 1 inside, 0 outside, a smooth step of two pixels between."""
    within = np.clip((radius + 1 - np.sqrt(squared_distance)) / 2, 0, 1)
    return within * within * (3 - 2 * within)
