"""A flat world on a grid: what a solver of the eikonal equation takes.

The names are those of the solver's medium. Entry [i, j] of an array stands for the place origin + (j, i) · spacing; the
vehicle goes `speed` in a step, and the current carries it `current` further, so that least times are in steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jepatlas.worlds.current_fields import AnyCurrent

__all__ = ["on_grid"]


def on_grid(
    limit: float,
    resolution: int,
    current: AnyCurrent | None,
    speed: float,
    passable: Callable[[np.ndarray], np.ndarray],
) -> dict[str, Any]:
    """The box [−limit, limit]² with `resolution` places along a side; the current is in units of the speed."""
    axis = np.linspace(-limit, limit, resolution)
    places = np.stack(np.meshgrid(axis, axis), -1)
    carried = np.zeros_like(places) if current is None else current.velocity(places)
    spacing = float(axis[1] - axis[0])
    return {
        "current": speed * carried,
        "speed": speed,
        "passable": passable(places),
        "origin": (-limit, -limit),
        "spacing": (spacing, spacing),
    }
