"""The medium a vehicle moves in: current, own speed, anisotropic metric and walls on a grid of the plane.

A velocity v is feasible at a node if |v − W|_M ≤ s, with the current W, the metric M of own motion and the speed s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["Medium"]


@dataclass(frozen=True)
class Medium:
    """Entry [i, j] of an array belongs to the point origin + (j · spacing_x, i · spacing_y) and the cell around it.

    `metric` defaults to the identity, which is isotropic. Cells that are not passable are walls.

    >>> Medium(np.zeros((3, 5, 2)), spacing=(0.5, 0.5)).corner.tolist()
    [2.0, 1.0]
    """

    current: np.ndarray  # (h, w, 2): (W_x, W_y)
    speed: float | np.ndarray = 1.0  # (h, w)
    metric: np.ndarray | None = None  # (h, w, 2, 2) or (2, 2)
    passable: np.ndarray | None = None  # (h, w)
    origin: tuple[float, float] = (0.0, 0.0)
    spacing: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        current = np.asarray(self.current, dtype=np.float64)
        if current.ndim != 3 or current.shape[2] != 2 or min(current.shape[:2]) < 2:
            raise InputError(f"current must be (h, w, 2) with h, w ≥ 2, but its shape is {current.shape}.")
        if len(self.spacing) != 2 or not min(self.spacing) > 0:
            raise InputError(f"spacing must be two positive lengths (x, y), but {self.spacing} was given.")
        object.__setattr__(self, "current", current)
        _ = self.field, self.free  # validates speed, metric and passable

    @property
    def shape(self) -> tuple[int, int]:
        return self.current.shape[0], self.current.shape[1]

    @property
    def corner(self) -> np.ndarray:
        """The corner opposite to the origin, (2,)."""
        return self.points([[self.shape[0] - 1, self.shape[1] - 1]])[0]

    @cached_property
    def field(self) -> np.ndarray:
        """(W_x, W_y, G_xx, G_xy, G_yy) with G = M/s², (h, w, 5): v is feasible if |v − W|_G ≤ 1."""
        speed = _broadcast(self.speed, self.shape, "speed")
        metric = _broadcast(np.eye(2) if self.metric is None else self.metric, (*self.shape, 2, 2), "metric")
        found = {"current": self.current, "speed": speed, "metric": metric}
        for name, array in found.items():
            if not np.isfinite(array).all():
                raise InputError(f"{name} must be finite, also inside walls, but it holds NaN or infinite values.")
        if (speed <= 0).any():
            raise InputError(f"speed must be positive everywhere, but its minimum is {speed.min():g}.")
        xx, xy, yx, yy = (metric[..., a, b] for a in (0, 1) for b in (0, 1))
        if not np.allclose(xy, yx) or (xx <= 0).any() or (xx * yy - xy**2 <= 0).any():
            raise InputError("metric must be symmetric and positive definite at every node.")
        return np.stack([*np.moveaxis(self.current, -1, 0), *(np.stack([xx, xy, yy]) / speed**2)], axis=-1)

    @cached_property
    def free(self) -> np.ndarray:
        """Mask of the passable cells, (h, w)."""
        if self.passable is None:
            return np.ones(self.shape, dtype=bool)
        free = np.asarray(self.passable)
        if free.shape != self.shape or free.dtype != bool:
            raise InputError(f"passable must be a boolean array {self.shape}, not {free.dtype} {free.shape}.")
        return free.copy()

    @property
    def reversed(self) -> Self:
        """The medium with the current reversed: a path from x to y here is a path from y to x there, in equal time."""
        return replace(self, current=-self.current)

    def places(self, points: np.ndarray) -> np.ndarray:
        """Fractional row and column of points (..., 2). Points outside the grid are an InputError."""
        points = np.asarray(points, dtype=np.float64)
        if points.shape[-1:] != (2,):
            raise InputError(f"points must be (..., 2), but their shape is {points.shape}.")
        places = ((points - self.origin) / self.spacing)[..., ::-1]
        outside = ~((places >= -1e-9) & (places <= np.array(self.shape) - 1 + 1e-9)).all(-1)  # NaN counts as outside
        if outside.any():
            raise InputError(
                f"The point {points[outside][0].tolist()} is outside the grid, which spans "
                f"{list(map(float, self.origin))} to {self.corner.tolist()}."
            )
        return np.clip(places, 0, np.array(self.shape) - 1)

    def points(self, places: np.ndarray | list) -> np.ndarray:
        """The points at fractional rows and columns, (..., 2) → (..., 2)."""
        return np.asarray(places)[..., ::-1] * self.spacing + self.origin


def _broadcast(values: float | np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    try:
        return np.broadcast_to(np.asarray(values, dtype=np.float64), shape)
    except ValueError as error:
        raise InputError(f"{name} has shape {np.shape(values)}, which does not broadcast to {shape}.") from error
