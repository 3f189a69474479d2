"""What an update of the eikonal solver reads: the field, the walls, and T₀, the closed form at the source."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from jepatlas.energy.exact.legs import Field, travel_time

__all__ = ["Frame", "Problem", "plain_time"]


class Frame(NamedTuple):
    """Lengths between nodes, (x, y), and what T₀ is made of: row and column of the source, and the field there."""

    steps: tuple[float, float]
    source: tuple[float, float]
    origin: Field
    factored: bool  # else T₀ = 0


class Problem(NamedTuple):
    """All that an update reads."""

    frame: Frame
    halfway: np.ndarray  # (2h − 1, 2w − 1, 5) the field at nodes and halfway between them
    passable: np.ndarray  # (h, w)
    start: np.ndarray  # (h, w) times along straight lines from the sources near by, +∞ elsewhere
    plain: np.ndarray  # (h, w) T₀
    by_wall: np.ndarray  # (h, w)
    seen: np.ndarray  # (h, w, 4R(R + 1)) what nodes near walls see of the rings round them
    smooth: bool  # parabolas, or straight lines between nodes
    torrent: bool  # whether the current is faster than the vehicle anywhere


@numba.njit(cache=True, error_model="numpy")
def plain_time(frame: Frame, row: float, column: float) -> float:
    """T₀ at a place."""
    if not frame.factored:
        return 0.0
    dx, dy = (column - frame.source[1]) * frame.steps[0], (row - frame.source[0]) * frame.steps[1]
    return travel_time(dx, dy, frame.origin)
