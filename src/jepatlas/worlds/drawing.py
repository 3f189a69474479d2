"""Pictures of a flat world: what stands still is drawn once, and only a patch round the agent for each state.

The agent is a disc whose edge fades over two pixels, at its exact place: so the picture changes smoothly with the
state, and the state can be read off the picture to a small part of a pixel.
"""

from __future__ import annotations

import math

import numpy as np

from jepatlas.worlds.cameras import SIDE, Camera
from jepatlas.worlds.walls import Walls

__all__ = ["draw_agents", "draw_ground"]

FINE = 8  # points along a side of a pixel, whose colours are averaged
ARROW = 0.15  # length of the arrows of a door


def draw_ground(camera: Camera, walls: Walls, thickness: float) -> np.ndarray:
    """Floor, walls and one-way doors: (SIDE, SIDE, 3) uint8."""
    at = (np.arange(SIDE * FINE) + 0.5) / FINE
    x = camera.unproject(np.stack(np.meshgrid(at, at, indexing="ij"), -1))
    colours = camera.colours
    shown = np.full((*x.shape[:-1], 3), colours.floor, dtype=np.float32)
    shown[walls.inside(x) | (np.abs(x) > 1).any(-1)] = colours.wall
    doors = np.flatnonzero(~walls.solid)
    for low, high, way in zip(walls.low[doors], walls.high[doors], walls.way[doors], strict=True):
        along, across, width = _in_door(x, low, high, way)
        shown[(np.abs(along) <= thickness / 2) & (np.abs(across) <= width / 2)] = colours.door
        shown[_arrows(along, across, width)] = colours.arrow
    return np.rint(shown.reshape(SIDE, FINE, SIDE, FINE, 3).mean((1, 3))).astype(np.uint8)


def _in_door(x: np.ndarray, low: np.ndarray, high: np.ndarray, way: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Coordinates along a door's way and across it, from its middle; and how wide it is."""
    from_middle = x - (low + high) / 2
    side = np.abs(way[::-1])
    return from_middle @ way, from_middle @ side, float((high - low) @ side)


def _arrows(along: np.ndarray, across: np.ndarray, width: float) -> np.ndarray:
    """Triangles side by side, from their base to their tip along the way."""
    count = max(1, int(width / (1.3 * ARROW)))
    pitch = width / count
    from_axis = np.abs((across + width / 2) % pitch - pitch / 2)
    left = 0.5 - along / ARROW  # 1 at the base, 0 at the tip
    return (left >= 0) & (left <= 1) & (from_axis <= left * 0.45 * ARROW) & (np.abs(across) < width / 2)


def draw_agents(ground: np.ndarray, camera: Camera, x: np.ndarray, radius: float) -> np.ndarray:
    """A picture for each place, (b, 2) → (b, SIDE, SIDE, 3) uint8, of an agent on the ground."""
    centre, size = camera.project(x), radius * camera.scale
    patch = 2 * math.ceil(size + 1) + 1
    # An agent is never further out than its radius, so a patch pushed back inside still holds all of it.
    corner = np.maximum(np.minimum(centre.astype(np.int64) - patch // 2, SIDE - patch), 0)
    pixels = corner[:, :, None] + np.arange(patch)  # (b, 2, patch): rows and columns
    offset = (pixels + 0.5 - centre[:, :, None]).astype(np.float32)
    row, column = pixels[:, 0, :, None], pixels[:, 1, None, :]
    cover = _disc(np.square(offset[:, 0, :, None]) + np.square(offset[:, 1, None, :]), size)[..., None]
    under = ground[row, column]
    blended = under + cover * (np.array(camera.colours.agent, dtype=np.float32) - under)
    pictures = np.empty((len(centre), *ground.shape), dtype=np.uint8)
    pictures[:] = ground
    pictures[np.arange(len(centre))[:, None, None], row, column] = np.rint(blended)
    return pictures


def _disc(square: np.ndarray, radius: float) -> np.ndarray:
    """How much of the agent covers a pixel, by the squared distance of their middles: 1 within, 0 without, smooth."""
    within = np.clip((radius + 1 - np.sqrt(square)) / 2, 0, 1)
    return within * within * (3 - 2 * within)
