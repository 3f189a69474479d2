"""Zermelo's navigation in a constant current: the least time from x to y for a vehicle of a given speed s.

With d = y − x, n = d/|d|, and the current W split along and across the way, the vehicle spends √(s² − |W⊥|²) of its
speed forward, so

    T = |d| / v,    v = W·n + √(s² − |W⊥|²),    +∞ where the root is not real or v ≤ 0

which is one formula for currents slower than, as fast as and faster than the vehicle. Against the current both terms
of v nearly cancel as |W| → s; there v = (s² − |W|²) / (√(s² − |W⊥|²) − W·n) is the same number without the loss.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["zermelo", "zermelo_heading"]


def zermelo(x: np.ndarray, y: np.ndarray, current: np.ndarray, speed: float | np.ndarray = 1.0) -> np.ndarray:
    """Least time from x to y, (..., d) and (..., d) → (...); +∞ outside the cone that can be reached.

    `current` is (..., d), `speed` (...); all broadcast.

    >>> zermelo(np.zeros(2), np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.5, 0.0])).round(4).tolist()
    [0.6667, 2.0]
    """
    d, current, speed = _checked(x, y, current, speed)
    length = np.linalg.norm(d, axis=-1)
    pace = _ground_speed(d / np.where(length > 0, length, 1.0)[..., None], current, speed)
    time = np.divide(length, pace, out=np.full(length.shape, np.inf), where=pace > 0)
    return np.where(length > 0, time, 0.0)


def zermelo_heading(x: np.ndarray, y: np.ndarray, current: np.ndarray, speed: float | np.ndarray = 1.0) -> np.ndarray:
    """The unit vector to steer along for the least time, (..., d): (d/T − W)/s; NaN where x = y or there is no way."""
    time = zermelo(x, y, current, speed)
    d, current, speed = _checked(x, y, current, speed)
    some = (time > 0) & np.isfinite(time)
    heading = (d / np.where(some, time, 1.0)[..., None] - current) / speed[..., None]
    return np.where(some[..., None], heading, np.nan)


def _ground_speed(n: np.ndarray, current: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """How fast one can move along unit vectors n; NaN where the current carries away from that line."""
    along = (current * n).sum(-1)
    across = np.linalg.norm(current - along[..., None] * n, axis=-1)
    drift = np.linalg.norm(current, axis=-1)
    room = (speed - across) * (speed + across)
    forward = np.sqrt(room, out=np.full(room.shape, np.nan), where=room >= 0)
    against = along < 0
    gap = np.where(against, forward - along, 1.0)
    return np.where(against, (speed - drift) * (speed + drift) / gap, along + forward)


def _checked(
    x: np.ndarray, y: np.ndarray, current: np.ndarray, speed: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The displacement, the current and the speed, all of one shape."""
    given = {"x": x, "y": y, "current": current, "speed": speed}
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in given.items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InputError(f"{name} holds NaN or infinite numbers. Give finite ones.")
    if (arrays["speed"] <= 0).any():
        raise InputError(f"A speed of {arrays['speed'].min():g} was given. A vehicle's own speed must be positive.")
    try:
        d, current, rate = np.broadcast_arrays(arrays["y"] - arrays["x"], arrays["current"], arrays["speed"][..., None])
    except ValueError as error:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InputError(f"These shapes do not go together: {shapes}. Points and currents are (..., d).") from error
    return d, current, rate[..., 0]
