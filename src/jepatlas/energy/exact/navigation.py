"""Zermelo's navigation problem in a constant current: the least time from x to y for a vehicle of speed s.

With d = y − x, n = d/|d|, and W⊥ the part of the current W perpendicular to d, the vehicle has the speed
√(s² − |W⊥|²) left along d after it cancels W⊥, so

    T = |d| / v,    v = W·n + √(s² − |W⊥|²),    +∞ if the root is not real or v ≤ 0

for currents slower than, as fast as and faster than the vehicle. Against the current both terms of v nearly cancel as
|W| → s; there the equal form v = (s² − |W|²) / (√(s² − |W⊥|²) − W·n) avoids the cancellation.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["zermelo"]


def zermelo(x: np.ndarray, y: np.ndarray, current: np.ndarray, speed: float | np.ndarray = 1.0) -> np.ndarray:
    """The least time from x to y, (..., d), (..., d) → (...); +∞ outside the reachable cone.

    `current` is (..., d) and `speed` is (...); all arguments broadcast.

    >>> zermelo(np.zeros(2), np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.5, 0.0])).round(4).tolist()
    [0.6667, 2.0]
    """
    d, current, speed = _broadcast(x, y, current, speed)
    length = np.linalg.norm(d, axis=-1)
    pace = _ground_speed(d / np.where(length > 0, length, 1.0)[..., None], current, speed)
    time = np.divide(length, pace, out=np.full(length.shape, np.inf), where=pace > 0)
    return np.where(length > 0, time, 0.0)


def _ground_speed(n: np.ndarray, current: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """The attainable speed along unit vectors n; NaN if the current is too strong to stay on that line."""
    along = (current * n).sum(-1)
    across = np.linalg.norm(current - along[..., None] * n, axis=-1)
    drift = np.linalg.norm(current, axis=-1)
    room = (speed - across) * (speed + across)
    forward = np.sqrt(room, out=np.full(room.shape, np.nan), where=room >= 0)
    against = along < 0
    gap = np.where(against, forward - along, 1.0)
    return np.where(against, (speed - drift) * (speed + drift) / gap, along + forward)


def _broadcast(
    x: np.ndarray, y: np.ndarray, current: np.ndarray, speed: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The displacement, current and speed, broadcast to a common shape."""
    given = {"x": x, "y": y, "current": current, "speed": speed}
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in given.items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InputError(f"{name} must be finite, but it holds NaN or infinite values.")
    if (arrays["speed"] <= 0).any():
        raise InputError(f"speed must be positive, but {arrays['speed'].min():g} was given.")
    try:
        d, current, rate = np.broadcast_arrays(arrays["y"] - arrays["x"], arrays["current"], arrays["speed"][..., None])
    except ValueError as error:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InputError(
            f"Shapes do not broadcast: {shapes}. Points and currents are (..., d), speeds (...)."
        ) from error
    return d, current, rate[..., 0]
