"""Exact travel times in a current: the closed form where it is the same everywhere, the eikonal solver where it varies.

A straight way stays in the box, so the closed form holds there as it does in the open.
"""

from __future__ import annotations

import numpy as np

from jepatlas.energy.exact import Medium, energies_from, zermelo
from jepatlas.worlds import ConstantCurrent, CurrentWorld

__all__ = ["closed_form", "current_energies", "medium_of"]

RESOLUTION = 101  # nodes along a side: errors far below what learning leaves


def medium_of(world: CurrentWorld, resolution: int = RESOLUTION) -> Medium:
    """The world as the solver takes it: rows are the second coordinate, columns the first."""
    axis, current = world.on_grid(resolution)
    step = float(axis[1] - axis[0])
    corner = (float(axis[0]), float(axis[0]))
    return Medium(current, speed=world.speed, origin=corner, spacing=(step, step))


def closed_form(world: CurrentWorld, x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """Zermelo's times from x to y, which broadcast; None where the current varies."""
    if not isinstance(world.current, ConstantCurrent):
        return None
    return zermelo(x, y, world.velocity(np.zeros(2)), world.speed)


def current_energies(world: CurrentWorld, z: np.ndarray) -> np.ndarray:
    """From every place to every other, (n, 2) → (n, n)."""
    exact = closed_form(world, z[:, None], z[None])
    if exact is not None:
        return exact
    medium = medium_of(world)
    return np.stack([energies_from(medium, place)(z) for place in z]) * ~np.eye(len(z), dtype=bool)
